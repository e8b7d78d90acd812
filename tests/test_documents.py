"""What is shown runs: the examples, the skeleton in CONTRIBUTING, and the promise of a light import."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import onepass as op
from onepass.testing import check_design

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_the_skeleton_in_contributing_is_a_complete_design():
    skeleton, *_ = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    names: dict = {"__name__": "skeleton"}
    exec(skeleton, names)
    check_design(lambda dim, reg: names["Diagonal"](dim=dim, reg=reg))
    assert "Diagonal" in repr(op.Bandit(op.Ridge(names["Diagonal"](dim=3)), op.UCB(0.1)))


def test_importing_onepass_loads_no_experiment_package():
    heavy = {"polars", "matplotlib", "sklearn", "typer", "rich", "pooch"}
    code = "import sys, onepass; print(' '.join(m for m in sys.modules if '.' not in m))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & set(loaded)


def test_public_names_are_sorted_and_documented():
    classes = [n for n in op.__all__ if n[0].isupper()]
    assert op.__all__ == sorted(op.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert all((getattr(op, n).__doc__ or "").strip() for n in classes)
