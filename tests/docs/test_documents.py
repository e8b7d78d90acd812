"""What is shown runs: the examples, and the promise of a light import."""

import doctest
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import onepass as op

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_examples_run(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert capsys.readouterr().out.strip()


PAGES = [
    "ab_test",
    "cluster",
    "cluster_shards",
    "concepts/regret_bound",
    "decisions",
    "decisions_slots",
    "exploration",
    "faq",
    "features",
    "features_records",
    "first_loop",
    "frames",
    "safe_baseline",
    "saving",
    "sketches",
    "forgetting",
    "heavy_tails",
    "how/budgets",
    "how/heavy_tails",
    "how/kernel_bandits",
    "how/linear",
    "how/sketches",
    "kernel_bandits",
    "kernel_learners",
    "lists",
    "lists_one_reward",
    "log",
    "log_archive",
    "pending_rewards",
    "recommender",
    "reference/estimators",
    "tasks",
    "tour",
    "warm_start",
    "which",
]


@pytest.mark.parametrize("page", PAGES)
def test_pages_run(page):
    found = doctest.testfile(str(ROOT / "docs" / f"{page}.md"), module_relative=False)
    assert found.attempted > 0
    assert found.failed == 0


def test_ten_tasks_of_a_new_user_take_at_most_fifteen_lines_each():
    tasks = (ROOT / "docs" / "tasks.md").read_text().split("\n## ")[1:]
    lines = [sum(line.startswith((">>> ", "... ")) for line in task.splitlines()) for task in tasks]
    assert len(tasks) == 10
    assert 0 < min(lines) <= max(lines) <= 15


def test_importing_onepass_loads_no_experiment_package():
    heavy = {"msgspec", "psycopg", "polars", "ray", "matplotlib", "sklearn", "typer", "rich", "pooch"}
    heavy |= {"coba", "gymnasium", "mabwiser", "optuna", "river"}
    heavy |= {"scipy.linalg", "scipy.special", "scipy.stats", "scipy.optimize"}
    code = "import sys, onepass; onepass.ContextualBandit, onepass.BKB; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not heavy & set(loaded)


def test_a_recipe_loads_no_other_one_and_files_of_all_are_read(tmp_path):
    """The first name takes a fifth less time so."""
    op.BKB(np.eye(3), op.RBF(0.5)).save(tmp_path / "kernel")
    op.ContextualBandit().save(tmp_path / "records")
    code = (
        "import sys, onepass as op; op.LinUCB;"
        "print(*sorted(name for name in sys.modules if 'onepass.recipes.' in name));"
        f"print(*(op.load({str(tmp_path)!r} + name).name for name in ('/kernel', '/records')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["onepass.recipes.compose onepass.recipes.linear", "BKB ContextualBandit"]


def test_public_names_are_sorted_and_documented():
    classes = [n for n in op.__all__ if n[0].isupper()]
    assert op.__all__ == sorted(op.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert all((getattr(op, n).__doc__ or "").strip() for n in classes)
