"""The page from dsjson to a service runs from the first to the last command, on a file of 200 decisions."""

import json
import re
import shlex
from pathlib import Path

import pytest

import dsjson_logs
import onepass as op
from counts import LONG
from onepass import cli
from onepass.client import Client
from patience import PATIENCE
from service_process import RunningService

PAGE = Path(__file__).parents[2] / "docs" / "dsjson.md"
BLOCK = re.compile(r"^```(sh|python|toml)\n(.*?)^```$", re.M | re.S)


def test_the_page_from_dsjson_to_a_service_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    dsjson_logs.write_log(Path("clicks.dsjson"), 200)
    dsjson_logs.write_log(Path("later.dsjson"), 200, seed=1, begin=200)
    Path("data").mkdir()
    told, names = {}, {}
    for language, body in BLOCK.findall(PAGE.read_text()):
        if language == "toml":
            Path("shop.toml").write_text(body)
        elif language == "python":
            exec(compile(body, "dsjson", "exec"), names)
        else:
            _, *words = shlex.split(body)
            if words[0] == "serve":
                serve(words)
                continue
            with pytest.raises(SystemExit) as done:
                cli.main(words)
            assert not done.value.code, capsys.readouterr().err
            told[" ".join(words[:2])] = capsys.readouterr().out
    assert op.load("learned.safetensors").n_learned == 200
    assert names["result"].rows == 200
    assert {"log import", "evaluate clicks.dsjson", "log replay", "log verify"} == told.keys()
    with pytest.raises(SystemExit):
        cli.main(shlex.split("log import past.sqlite clicks.dsjson --loop shop --default-reward 0 --json"))
    assert json.loads(capsys.readouterr().out)["counts"] == {"known": 200}


def serve(words):
    """Start the service of the page, which has learned the import, and let it decide; only in long runs."""
    if not LONG:
        return
    assert words == ["serve", "--data", "data", "shop.toml"]
    served = RunningService(Path("data"), Path("shop.toml"))
    try:
        arms = {"article 1": {"topic": "sport"}, "article 2": {"topic": "news"}}
        assert Client(served.address, "shop", timeout=PATIENCE).decide({"age": 30}, arms).arm in arms
    finally:
        assert served.stop() == 0
