from pathlib import Path

import numpy as np
import pytest

from onepass.lab import DataNotFound, ExperimentError, datasets, find, run, select
from onepass.lab.learners import kuairec

MATRIX = """user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio
14,148,4381,6067,2020-07-05 05:27:48.378,20200705.0,1593898068.378,0.722103
14,183,11635,6100,2020-07-05 05:28:00.057,20200705.0,1593898080.057,1.907377
19,148,20000,6067,2020-07-06 05:00:00,20200706.0,1593982800.0,3.29
19,183,100,6100,,,,0.016
14,148,6000,6067,2020-07-05 05:00:00,20200705.0,1593896400.0,0.75
"""
USERS = "user_id,user_active_degree,is_lowactive_period,onehot_feat4\n14,full_active,0,3.0\n19,high_active,1,\n"
VIDEOS = (
    "video_id,date,author_id,video_type,play_cnt\n"
    "148,20200705,1,NORMAL,10\n148,20200706,1,NORMAL,30\n183,20200705,7,AD,5\n"
)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "KuaiRec" / "data"
    folder.mkdir(parents=True)
    for name, content in (("small_matrix", MATRIX), ("user_features", USERS), ("item_daily_features", VIDEOS)):
        (folder / f"{name}.csv").write_text(content)
    monkeypatch.setenv("ONEPASS_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(kuairec, "load_kuairec", kuairec.load_kuairec.__wrapped__)
    return folder


def test_events_come_in_the_order_of_time_with_users_and_videos_of_that_day(files: Path) -> None:
    stream = kuairec.KuaiRec(0)
    rows, labels = stream.examples(0, 4)
    assert labels.tolist() == [-1.0, -1.0, 1.0, 1.0]  # 0.75 is not above 0.75; the row without a time is left out
    users = np.array([[-1.0, -1.0, 1.0], [1.0, 1.0, -1.0]])  # 14 and 19, standardized
    np.testing.assert_allclose(rows[:, :3], users[[0, 0, 0, 1]])
    plays = (np.array([10.0, 30.0, 5.0]) - 15.0) / np.std([10.0, 30.0, 5.0])
    np.testing.assert_allclose(rows[:, -1], plays[[0, 0, 2, 1]])
    assert rows.shape == (4, 6)
    np.testing.assert_array_equal(stream.examples(5, 2).rows, rows[1:3])


def test_the_suites_run_on_the_files(files: Path) -> None:
    for name in ("learners-kuairec", "learners-kuairec-squared-hinge"):
        study = find(name)
        policies = select(study, ["BOGD B=100", "constant"])
        rows = run(study, policies=policies, rounds=8, seeds=1, quiet=True).rows
        assert {row["policy"] for row in rows} == {"BOGD B=100", "constant"}


def test_missing_and_damaged_files_are_named(files: Path) -> None:
    (files / "user_features.csv").write_text("nothing\n1\n")
    with pytest.raises(ExperimentError, match="cannot be read"):
        kuairec.KuaiRec(0)
    (files / "user_features.csv").unlink()
    with pytest.raises(DataNotFound, match=r"https://kuairec.com.*user_features.csv"):
        kuairec.KuaiRec(0)
