"""Blocks of Python on the pages that are no sessions: those of a page run from the first to the last, after what a
reader has at hand.

Some of them in `make test`; all in `make docs` and `make test-long`.
"""

import doctest
import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import onepass as op
from counts import LONG, repetitions

DOCS = Path(__file__).parents[2] / "docs"


def of_adapters():
    rng = np.random.default_rng(0)
    decisions, rewards = ["a", "b"] * 10, rng.random(20)
    return {
        "decisions": decisions,
        "rewards": rewards,
        "contexts": rng.random((20, 3)),
        "row": rng.random((1, 3)),
        "reward": 1.0,
    }


def of_formats():
    import dsjson_logs

    dsjson_logs.write_log(Path("clicks.dsjson"), 60)
    return {}


def of_tuning():
    return {"objective": lambda trial: trial.suggest_float("x", 0.0, 1.0)}


HAD = {"adapters": of_adapters, "clicks": lambda: {"op": op}, "formats": of_formats, "tuning": of_tuning}
NEEDS = {  # packages of others, which `make test` does without
    "adapters": "mabwiser",
    "route_prompts": "litellm",
    "tuning": "optuna",
}
CHEAP = [
    "clicks",
    "formats",
    "late_conversions",
    "late_conversions/cut_logs",
    "news",
    "processes",
    "systems",
    "systems_control",
]
ALL = [
    *("adapters", "clicks", "evaluation", "formats", "late_conversions", "merging", "news", "processes"),
    "late_conversions/cut_logs",
    *("recommended", "route_prompts", "systems", "systems_control", "threads", "tuning"),
]
HERE = [page for page in repetitions(CHEAP, ALL) if page not in NEEDS or find_spec(NEEDS[page])]


@pytest.mark.parametrize("page", HERE)
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = HAD.get(page, dict)()
    found = re.findall(r"^```python\n(.*?)^```$", (DOCS / f"{page}.md").read_text(), re.M | re.S)
    assert found
    for block in found:
        exec(compile(block, page, "exec"), names)


if LONG:  # it starts a service

    def test_the_session_on_the_page_of_personalizer_runs(tmp_path):
        from azure.ai.personalizer import PersonalizerClient
        from azure.core.credentials import AzureKeyCredential

        from service_process import RunningService

        page = (DOCS / "personalizer.md").read_text()
        (settings,) = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
        (tmp_path / "shop.toml").write_text(settings)
        served = RunningService(tmp_path / "data", tmp_path / "shop.toml")
        try:
            (session,) = re.findall(r"^```pycon\n(.*?)^```$", page, re.M | re.S)
            session = session.replace("http://127.0.0.1:8080", served.address)
            names = {"PersonalizerClient": PersonalizerClient, "AzureKeyCredential": AzureKeyCredential, "KEY": "any"}
            test = doctest.DocTestParser().get_doctest(session, names, "personalizer", None, 0)
            assert doctest.DocTestRunner().run(test).failed == 0
        finally:
            served.stop()
