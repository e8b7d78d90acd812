"""Estimators in scikit-learn's pipelines: frames by their names, arrays on disk that nobody may write to."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import onepass as op

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((200, 3))
LABELS = np.where(ROWS[:, 0] * ROWS[:, 1] > 0, "same", "other")


def pipeline():
    return make_pipeline(StandardScaler(), op.OnlineKernelClassifier())


@pytest.mark.parametrize("output", ["pandas", "polars"])
def test_frames_between_steps_change_nothing_and_their_names_are_known(output):
    frame = pl.DataFrame(ROWS, schema=["a", "b", "c"])
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"]) if output == "pandas" else frame
    plain = pipeline().fit(ROWS, LABELS)
    framed = pipeline().set_output(transform=output).fit(frame, LABELS)
    assert framed[-1].feature_names_in_.tolist() == ["a", "b", "c"]
    assert (framed.predict(frame) == plain.predict(ROWS)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        framed.predict(frame[["b", "a", "c"]])


def test_read_only_rows_on_disk_are_learned(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    disk = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert not disk.flags.writeable
    found, known = (op.OnlineKernelClassifier().fit(rows, LABELS) for rows in (disk, ROWS))
    assert (found.predict_proba(disk) == known.predict_proba(ROWS)).all()
    assert (np.load(tmp_path / "rows.npy") == ROWS).all()
