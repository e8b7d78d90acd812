"""Rows are cut into parts of workers, also within one file: every row is in one part, in its order."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onepass as op
from counts import repetitions
from onepass.cluster import fit
from onepass.cluster.parallel_fit import (
    MIN_PART_ROWS,
    PARTS_PER_WORKER,
    Columns,
    Part,
    count_rows,
    read_blocks,
    split_rows,
)

SIZES = st.lists(st.one_of(st.integers(0, 9), st.integers(0, 5 * MIN_PART_ROWS)), min_size=1, max_size=6)


@settings(max_examples=repetitions(40, 1_000), deadline=None)
@given(sizes=SIZES, workers=st.integers(1, 5))
def test_every_row_is_in_one_part_and_parts_are_of_one_length(sizes, workers):
    whole = [Part(f"{number}", 0, size) for number, size in enumerate(sizes)]
    parts = list(split_rows(whole, workers))
    found = [(one.path, row) for part in parts for one in part for row in (one.start, one.stop)]
    assert found == sorted(found, key=lambda place: int(place[0]))
    for number, size in enumerate(sizes):
        mine = [one for part in parts for one in part if one.path == f"{number}" and one.start < one.stop]
        assert [one.start for one in mine] == [0, *(one.stop for one in mine)][: len(mine)]
        assert sum(one.stop - one.start for one in mine) == size
    lengths = [sum(one.stop - one.start for one in part) for part in parts]
    assert max(lengths) - min(lengths) <= 1
    assert len(parts) == max(
        1, min(sum(sizes), max(workers, min(PARTS_PER_WORKER * workers, sum(sizes) // MIN_PART_ROWS)))
    )


def test_a_part_of_a_file_has_its_rows_whatever_its_columns_are(tmp_path):
    x = np.random.default_rng(0).standard_normal((50, 3))
    lists, arrays = pl.Series(x.tolist()), pl.Series(x, dtype=pl.Array(pl.Float64, 3))
    for name, column in (("lists", lists), ("arrays", arrays)):
        path = tmp_path / f"{name}.parquet"
        pl.DataFrame({"features": column, "reward": x[:, 0]}).write_parquet(path, row_group_size=7)
        assert count_rows([path]) == [Part(str(path), 0, 50)]
        blocks = list(read_blocks(Part(str(path), 5, 31), Columns(("features",), "reward", None), 10))
        assert [len(block[0]) for block in blocks] == [10, 10, 6]
        np.testing.assert_array_equal(np.vstack([block[0] for block in blocks]), x[5:31])
        found = fit(path, op.Exact(dim=3, reg=0.3), workers=3)  # one file for three
        np.testing.assert_allclose(found.matrix(), 0.3 * np.eye(3) + x.T @ x, rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("rows", [[[1.0, 2.0], [3.0]], [[1.0, 2.0, 3.0], [1.0]]])
def test_lists_of_several_lengths_are_refused(rows, tmp_path: Path):
    pl.DataFrame({"features": rows}).write_parquet(tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="lists of one length"):
        fit(tmp_path, op.Exact(dim=2), workers=1)
