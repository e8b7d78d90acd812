"""From a file of another system to a service that goes on learning: import, learn, evaluate, serve, verify."""

import json
import shutil
import subprocess
import sys
import tomllib
from collections import Counter

import numpy as np
import pytest

import dsjson_logs
import onepass as op
from onepass import cli
from onepass import evaluation as ev
from onepass.client import Client
from onepass.features.flatten import flatten_record
from onepass.log import Decision, Event, Outcome, formats
from onepass.log.formats import dsjson
from onepass.log.formats.requests import adopt_decision, json_from_decision, request_from_decision
from onepass.log.import_export import export_file, import_file
from onepass.log.memory import MemoryStore
from onepass.log.open_store import open_store
from onepass.log.replay import Fold
from onepass.log.sqlite import SqliteStore
from onepass.log.verification import FOREIGN, verify
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest
from onepass.service.settings import parse_settings
from patience import PATIENCE, until
from service_process import RunningService

LOOP = """
name = "shop"
[model]
recipe = "InteractionBandit"
seed = 3
[reward]
wait = 0.2
range = [0.0, 1.0]
[operation]
publish = 0.0
"""
N = 240


def onepass(capsys, *arguments):
    """Exit code, and what `onepass ARGUMENTS --json` says."""
    with pytest.raises(SystemExit) as done:
        cli.main([*map(str, arguments), "--json"])
    said = capsys.readouterr()
    return int(done.value.code or 0), json.loads(said.out) if said.out else said.err


def kinds(store):
    return Counter(type(one).__name__ for one in store.read())


# ---- requests ----


def test_a_request_is_what_decide_takes(tmp_path):
    (first, *_) = dsjson.read(dsjson_logs.write_log(tmp_path / "a.dsjson", 1))
    found = request_from_decision(first.decision)
    assert found.context["GUser"] == {"age": found.context["GUser"]["age"], "country": "fr"}
    assert found.context[" FromUrl"] == {"weekday": True, "likes": ["a", "b"]}
    assert [name.split()[0] for name in found.arms] == ["article"] * 3
    arm = found.arm(first.decision.places[0])
    ((name, features),) = arm.items()
    assert flatten_record(features).keys() == {f"TAction.topic={features['TAction']['topic']}", "j.Vision.person",
                                      "j._text=good", "j._text=words"}  # fmt: skip
    for bandit in (op.InteractionBandit(), op.ContextualBandit()):
        bandit.learn(found.context, 1.0, arm=arm)
        assert bandit.decide(found.context, found.arms).arm in found.arms
        assert bandit.arms == (name,)


def test_actions_without_tags_have_no_names_and_lazy_features_are_read_too(tmp_path):
    path = dsjson_logs.write_log(tmp_path / "a.dsjson", 2, named=False)
    for lazy in (False, True):
        for event in dsjson.read(path, lazy=lazy):
            found = request_from_decision(event.decision)
            assert isinstance(found.arms, list)
            assert found.arm(0) == [found.arms[0]]


def test_lines_without_features_of_actions_offer_places(tmp_path):
    (tmp_path / "a.vw").write_text("2:-1:0.8 | user_a hour:9\n")
    (event,) = formats.read(tmp_path / "a.vw", n_arms=3)
    assert request_from_decision(event.decision)[:2] == ({"user_a": 1.0, "hour": 9.0}, [0, 1, 2])
    assert adopt_decision(event.decision).contexts == {
        "context": {"user_a": 1.0, "hour": 9.0},
        "arms": [{"arm": "0"}, {"arm": "1"}, {"arm": "2"}],
    }


ROWS = [[1.0, 0.5], [0.0, 2.0]]
RECORDS = {"context": {"hour": 9, "_text": ["good", "words"]}, "arms": [{"topic": "a"}, {"topic": "b"}]}


@pytest.mark.parametrize("contexts", [ROWS, [0.5, 1.0, 2.0], RECORDS])
@pytest.mark.parametrize("offered", [["a1", "a2"], None])
def test_what_we_write_is_ours_again(tmp_path, contexts, offered):
    decision = Decision(
        loop="imported", time=0, id="x", places=[1], propensities=[0.25], probabilities=[0.75, 0.25], offered=offered,
        contexts=contexts,
    )  # fmt: skip
    dsjson.write(tmp_path / "a.dsjson", [Event(decision)])
    (event,) = dsjson.read(tmp_path / "a.dsjson")
    again = adopt_decision(event.decision)
    assert (again.contexts, again.offered) == (contexts, offered)
    assert json_from_decision(again) == event.decision.contexts


def test_features_that_no_model_takes_are_told_with_their_decision(tmp_path):
    lines = list(dsjson_logs.lines(3))
    lines[1]["c"]["mixed"] = ["word", 3]
    path = tmp_path / "a.dsjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    with pytest.raises(ValueError, match="decision 'e1': mixed must be a list of strings or of numbers"):
        import_file(MemoryStore(), path)
    bad = []
    assert import_file(MemoryStore(), path, bad="skip", report=lambda *one: bad.append(one))["decision"] == 2
    assert [number for number, _ in bad] == [2]


# ---- import ----


@pytest.mark.parametrize("default", [None, 0.0])
def test_a_file_that_is_imported_again_adds_nothing(tmp_path, default):
    path, store = dsjson_logs.write_log(tmp_path / "a.dsjson", 50), MemoryStore()
    counts = import_file(store, path, loop="shop", default=default)
    assert counts["decision"] == counts["outcome"] == 50
    assert counts["join"] == (0 if default is None else 50)
    last = store.last
    again = import_file(store, path, loop="shop", default=default)
    assert (again["known"] >= 50, store.last) == (True, last)
    export_file(store, tmp_path / "b.dsjson")
    import_file(store, tmp_path / "b.dsjson", loop="shop", default=default)
    export_file(store, tmp_path / "b.jsonl")
    import_file(store, tmp_path / "b.jsonl")
    assert store.last == last
    import_file(store, dsjson_logs.write_log(tmp_path / "a.dsjson", 60), loop="shop", default=default)
    assert kinds(store)["Decision"] == kinds(store)["Outcome"] == 60


def test_a_line_that_is_there_twice_counts_once(tmp_path):
    path = dsjson_logs.write_log(tmp_path / "a.dsjson", 3)
    path.write_text(path.read_text() * 2)
    store = MemoryStore()
    counts = import_file(store, path)
    assert (counts["decision"], counts["outcome"], counts["known"]) == (3, 3, 6)


def test_an_outcome_that_came_later_is_added_to_its_decision(tmp_path):
    path, store = tmp_path / "a.dsjson", MemoryStore()
    whole = list(dsjson_logs.lines(4))
    path.write_text("".join(json.dumps({k: v for k, v in one.items() if k != "_label_cost"}) + "\n" for one in whole))
    assert import_file(store, path)["outcome"] == 0
    assert import_file(store, dsjson_logs.write_log(path, 4))["outcome"] == 4


def test_decisions_without_names_of_two_files_are_not_the_same(tmp_path):
    text = "shared | a\n0:{cost}:0.5 | x\n| y\n\n"
    store = MemoryStore()
    for number, cost in enumerate((0, -1, -1)):
        (tmp_path / f"{number}.vw").write_text(text.format(cost=cost))
        import_file(store, tmp_path / f"{number}.vw")
    assert kinds(store) == {"Decision": 2, "Outcome": 2}  # the third file is the second one


def test_an_import_that_joins_is_replayed_as_if_it_were_learned_line_by_line(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = dsjson_logs.write_log(tmp_path / "a.dsjson", 80)
    op.InteractionBandit(seed=1).save("begin")
    assert onepass(capsys, "log", "import", "log", path, "--default-reward", "0")[1]["counts"]["join"] == 80
    code, found = onepass(capsys, "log", "replay", "log", "--model", "begin", "--out", "end")
    assert (code, found["joins"]) == (0, 80)
    naive = op.InteractionBandit(seed=1)
    for event in dsjson.read(path):
        request = request_from_decision(event.decision)
        naive.learn(request.context, event.outcomes[0].value, request.arm(event.decision.places[0]))
    learned = op.load("end")
    assert learned.n_learned == naive.n_learned == 80
    for event in dsjson.read(path):
        request = request_from_decision(event.decision)[:2]
        assert np.array_equal(learned.score(*request), naive.score(*request))
    code, found = onepass(capsys, "log", "verify", "log", "--model", "begin")
    assert (code, found["ok"], found["loops"]["imported"]["left"]) == (0, True, {FOREIGN: 80})


def test_a_file_that_the_loops_model_cannot_learn_is_refused_and_nothing_is_stored(tmp_path):
    path, store = dsjson_logs.write_log(tmp_path / "a.dsjson", 5), MemoryStore()
    store.append([Fold(store, "shop", op.OFUL(dim=2)).checkpoint(0)])
    with pytest.raises(ValueError, match=r"model of loop 'shop' cannot learn decision 'e0': .*another name"):
        import_file(store, path, loop="shop")
    assert store.last == 1
    assert import_file(store, path, loop="other")["decision"] == 5


def test_a_loop_of_rows_learns_the_export_of_another(tmp_path):
    rng, store, other = np.random.default_rng(0), MemoryStore(), MemoryStore()
    begin = op.OFUL(dim=2, model="disjoint")
    for t in range(30):
        context = rng.standard_normal(2)
        decision = begin.decide(context, ["a", "b"], id=f"{t}")
        store.append([Decision.from_decision(decision, loop="shop", time=t, contexts=context),
                      Outcome(loop="shop", time=t, id=f"{t}", value=float(t % 2))])  # fmt: skip
    export_file(store, tmp_path / "a.dsjson")
    other.append([Fold(other, "shop", begin.copy()).checkpoint(0)])
    assert import_file(other, tmp_path / "a.dsjson", loop="shop", default=0.0)["join"] == 30
    fold = Fold.resume(other, "shop")
    assert fold.advance() == 30
    for decision in store.read(kinds=["decision"]):
        begin.learn(decision.to_decision(), float(int(decision.id) % 2))
    assert np.array_equal(fold.bandit.score(np.ones(2), ["a", "b"]), begin.score(np.ones(2), ["a", "b"]))


# ---- service ----


def asked(service, name, wanted):
    """Two real requests and their rewards, which are learned beside the import; `wanted` rounds in all then."""
    arms = {"article 1": {"TAction": {"topic": "news"}}, "article 3": {"TAction": {"topic": "sport"}}}
    with Client(service.address, "shop") as client:
        for number in range(2):
            client.decide({"GUser": {"age": 20}}, arms, id=f"{name} {number}")
            client.outcome(f"{name} {number}", 1.0, key="click")
        until(lambda: f'onepass_learned_rewards{{loop="shop"}} {float(wanted)}' in service.ready("shop"))
        assert client.problem() is None
        young, old = [client.decide({"GUser": {"age": age}}, arms, id=f"{name} of {age}") for age in (18, 70)]
        assert wanted <= young.rounds <= old.rounds
        scores = [{one.arm: one.score for one in found.ranking} for found in (young, old)]
        assert scores[0]["article 3"] > scores[0]["article 1"]
        assert scores[1]["article 1"] > scores[1]["article 3"]
        recipe, uniform = {"name": "recipe", "kind": "recipe"}, {"name": "uniform", "kind": "uniform"}
        client.evaluate(id=name.replace(" ", "-"), policies=[recipe, uniform])
        found = until(lambda: ended(client, name.replace(" ", "-")))
        assert found["status"] == "done", found
        assert [one["verdict"] in ("ok", "wide") for one in found["policies"]] == [True, True], found
        again = service.client.post("/v1/shop/decide", json={"context": {}, "arms": ["a"], "id": "e1"})
        assert again.status_code == 409, again.text
    service.ready("shop")


def ended(client, name):
    """An evaluation that has ended, else None."""
    found = client.evaluation(name)
    return found if found["status"] in ("done", "failed") else None


def test_a_service_goes_on_learning_on_an_import(tmp_path, capsys):
    data, settings = tmp_path / "data", tmp_path / "shop.toml"
    data.mkdir()
    settings.write_text(LOOP)
    log = data / "shop.sqlite"
    first = dsjson_logs.write_log(tmp_path / "first.dsjson", N)
    for _ in range(2):
        assert onepass(capsys, "log", "import", log, first, "--loop", "shop")[0] == 0
    for life, wanted in ((1, N + 2), (2, N + 63)):
        service = RunningService(data, settings)
        try:
            asked(service, f"life {life}", wanted)
        finally:
            assert service.stop() == 0
        if life == 1:
            more = dsjson_logs.write_log(tmp_path / "more.dsjson", 57, seed=1, begin=N)
            assert onepass(capsys, "log", "import", log, more, "--loop", "shop")[1]["counts"]["decision"] == 57
    with SqliteStore(log) as store:
        found = verify(Fold.resume(store, "shop", first=True))
        assert (found.ok, found.wrong, found.left) == (True, 0, {FOREIGN: N + 57})
        assert found.equal == found.decisions - N - 57 == 8
        assert [*store.check()] == []
    with open_store(str(log), readonly=True) as store:
        export_file(store, tmp_path / "all.dsjson", loop="shop")
    assert sum(1 for _ in dsjson.read(tmp_path / "all.dsjson")) == N + 57 + 8


@pytest.mark.parametrize("wait", [0.01, 3600.0], ids=["its own joins are learned", "its own decisions wait"])
def test_a_service_learns_the_joins_that_imports_made(tmp_path, wait):
    """Before its first start, while it is stopped, and after its checkpoints are lost; line by line is the truth."""
    settings, store = parse_settings({**tomllib.loads(LOOP), "reward": {"wait": wait}}), MemoryStore()
    parts = [dsjson_logs.write_log(tmp_path / f"{begin}.dsjson", 30, begin=begin) for begin in (0, 30, 60)]
    for number, part in enumerate(parts):
        assert import_file(store, part, loop="shop", default=0.0)["join"] == 30
        loop = Loop(settings, store, tmp_path / "models")
        try:
            assert loop.learner.snapshot.n_learned >= 30 * (number + 1)
            found = loop.decide(DecideRequest(context={"GUser": {"age": 20}}, arms=["a", "b"], id=f"own {number}"))
            assert found.result().rounds >= 30 * (number + 1)
            if wait < 1.0:
                until(lambda learner=loop.learner: learner.learned)
            assert loop.problem() is None
        finally:
            loop.stop()
        if number == 1:
            shutil.rmtree(tmp_path / "models")
    naive = op.InteractionBandit(seed=3)
    for join in store.read(kinds=["join"]):
        (decision,) = (one for one in store.find("shop", join.id) if isinstance(one, Decision))
        lesson = request_from_decision(decision)
        naive.learn(lesson.context, join.rewards[0], lesson.arm(decision.places[0]))
    learned = loop.learner.fold.bandit
    assert learned.n_learned == naive.n_learned == 90 + (3 if wait < 1.0 else 0)
    request = request_from_decision(next(store.read(kinds=["decision"])))[:2]
    assert np.array_equal(learned.score(*request), naive.score(*request))
    for first in (True, False):
        result = verify(Fold.resume(store, "shop", first=first))
        assert (result.ok, result.wrong, result.left[FOREIGN]) == (True, 0, 90)
        assert result.equal == 3
    assert [*store.check()] == []


@pytest.fixture
def little_memory(monkeypatch):
    for name, value in (("HELD", 8), ("PARKED", 4), ("RECALLED", 5)):
        monkeypatch.setattr(f"onepass.service.join.{name}", value)


@pytest.mark.usefixtures("little_memory")
def test_a_service_reads_an_imported_decision_once_to_join_and_to_learn_it(tmp_path, monkeypatch):
    asked, find_all, rows_about = [], SqliteStore.find_all, SqliteStore.rows_about

    def ask_for_many(store, loop, ids, kinds=None):
        asked.append([*ids])
        return find_all(store, loop, ids, kinds)

    def ask_for_one(store, loop, event):
        asked.append([event])
        return rows_about(store, loop, event)

    monkeypatch.setattr("onepass.log.import_export.BATCH", 4)  # an outcome comes while memory holds its decision
    with SqliteStore(tmp_path / "a.sqlite", synced=False) as store:
        import_file(store, dsjson_logs.write_log(tmp_path / "a.dsjson", N), loop="shop")
        monkeypatch.setattr(SqliteStore, "find_all", ask_for_many)
        monkeypatch.setattr(SqliteStore, "rows_about", ask_for_one)
        loop = Loop(parse_settings(tomllib.loads(LOOP)), store, tmp_path / "models")
        until(lambda: loop.learner.learned == N)
        loop.stop()
        assert sorted(id for ids in asked for id in ids) == sorted(f"e{number}" for number in range(N))
        assert len(asked) <= N / 5 + 8
        assert verify(Fold.resume(store, "shop", first=True)).ok


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("stops", [0, 3])
def test_a_service_that_stops_leaves_what_waits_to_the_next_start(tmp_path, monkeypatch, stops):
    """With stops or without, the same rewards in the same order."""
    monkeypatch.setattr("onepass.service.learner.BEHIND", 0)  # nothing is joined before the stop
    store = MemoryStore()
    import_file(store, dsjson_logs.write_log(tmp_path / "a.dsjson", 60), loop="shop")
    settings = parse_settings(tomllib.loads(LOOP))
    for _ in range(stops):
        loop = Loop(settings, store, tmp_path / "models")
        assert len(loop.joiner) == 60
        loop.stop()
        assert kinds(store)["Join"] == 0
    monkeypatch.undo()
    loop = Loop(settings, store, tmp_path / "models")
    until(lambda: loop.learner.learned == 60)
    loop.stop()
    assert [one.id for one in store.read(kinds=["join"])] == [f"e{number}" for number in range(60)]
    assert verify(Fold.resume(store, "shop", first=True)).ok


# ---- evaluation ----


def trained(path):
    """A bandit that has learned a file."""
    bandit = op.InteractionBandit(seed=1)
    for event in dsjson.read(path):
        request = request_from_decision(event.decision)
        bandit.learn(request.context, event.outcomes[0].value, request.arm(event.decision.places[0]))
    return bandit


def test_a_saved_bandit_is_evaluated_on_the_features_of_a_file_and_of_a_store(tmp_path, capsys, monkeypatch):
    """Its value is the mean of w r with w from `decide` line by line, and it learned whom sport pays with."""
    monkeypatch.chdir(tmp_path)
    bandit = trained(dsjson_logs.write_log(tmp_path / "past.dsjson", 400, seed=1))
    bandit.save("bandit")
    path = dsjson_logs.write_log(tmp_path / "a.dsjson", 400)
    policies = ["--policy", "bandit", "--policy", "uniform", "--policy", "logged"]
    code, said = evaluated(capsys, path, *policies)
    assert code == 0
    wanted, plain = [], []
    for event in dsjson.read(path):
        decision, request = event.decision, request_from_decision(event.decision)
        p = bandit.decide(request.context, request.arms, id="x").probabilities
        wanted.append(p[decision.places[0]] / decision.propensities[0] * event.outcomes[0].value)
        plain.append(event.outcomes[0].value)
    assert said["bandit"]["estimates"]["ips"]["value"] == pytest.approx(np.mean(wanted), rel=1e-12)
    assert said["bandit"]["value"] > said["uniform"]["value"] + 0.1
    assert said["uniform"]["logged"] == pytest.approx(np.mean(plain))
    assert onepass(capsys, "log", "import", "log", path)[0] == 0
    for place in ("log", "text.vw"):
        if place != "log":
            formats.write(place, formats.read(path))
        code, found = evaluated(capsys, place, *policies[:4])
        assert found["uniform"]["estimates"]["ips"]["value"] == pytest.approx(
            said["uniform"]["estimates"]["ips"]["value"]
        )
        if place == "log":
            assert found["bandit"]["estimates"]["ips"] == said["bandit"]["estimates"]["ips"]


def evaluated(capsys, path, *arguments):
    """Exit code, and what `onepass evaluate --json` says of each policy."""
    with pytest.raises(SystemExit) as done:
        cli.main(["evaluate", str(path), *map(str, arguments), "--json"])
    said = capsys.readouterr()
    assert said.out, said.err
    return int(done.value.code or 0), {one["policy"]: one for one in map(json.loads, said.out.splitlines())}


def test_a_bandit_learns_a_file_while_it_is_evaluated(tmp_path):
    path = dsjson_logs.write_log(tmp_path / "a.dsjson", 120)
    for make in (op.InteractionBandit, op.ContextualBandit):
        (log,) = ev.logs_from_events(dsjson.read(path), size=1_000)
        bandit, naive, wanted = make(seed=1), make(seed=1), []
        sample = ev.progressive(log, bandit)
        for number, event in enumerate(dsjson.read(path)):
            request, place = request_from_decision(event.decision), event.decision.places[0]
            p = naive.decide(request.context, request.arms, id="row 0").probabilities
            wanted.append(p[place] / event.decision.propensities[0])
            naive.learn(request.context, event.outcomes[0].value, request.arm(place))
            assert naive.n_learned == number + 1
        assert np.array_equal(sample.weights, wanted)
        assert bandit.n_learned == 120


def test_decisions_may_offer_different_arms_and_functions_get_requests(tmp_path):
    whole = list(dsjson_logs.lines(40))
    for one in whole[::2]:
        one["c"]["_multi"], one["a"], one["p"] = one["c"]["_multi"][:2], [1, 2], [0.5, 0.5]
        one |= {"_labelIndex": 0, "_label_Action": 1, "_label_probability": 0.5}
    path = tmp_path / "a.dsjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in whole))
    (log,) = ev.logs_from_events(dsjson.read(path))
    assert [len(request.arms) for request in log.requests[:4]] == [2, 3, 2, 3]
    bandit = trained(path)
    by_hand = lambda requests: np.array([  # noqa: E731
        np.pad(bandit.decide(one.context, one.arms, id=f"row {i}").probabilities, (0, 3 - len(one.arms)))
        for i, one in enumerate(requests)
    ])  # fmt: skip
    found = ev.evaluate_many(log, {"bandit": bandit, "by hand": by_hand})
    assert found["bandit"].to_dict() == found["by hand"].to_dict()
    assert log[10:].requests[0] == log.requests[10]


BAD = {
    "no chance": {"p": [0.0, 0.5, 0.5], "_label_probability": 0.0},
    "no chance known": {"p": [], "_label_probability": 0.0},
    "no propensity": {"p": [], "_label_probability": None},
    "no features that stand together": {"c": {"x": [1, "a"], "_multi": [{"y": 1}, {"y": [{"z": 1}, 2]}, {}]}},
}


@pytest.mark.parametrize("what", BAD)
def test_one_bad_line_does_not_stop_an_evaluation_that_skips(tmp_path, capsys, monkeypatch, what):
    monkeypatch.chdir(tmp_path)
    op.InteractionBandit().save("bandit")
    whole = list(dsjson_logs.lines(30))
    path = tmp_path / "a.dsjson"
    path.write_text("".join(json.dumps(one) + "\n" for one in whole[:29]))
    wanted = evaluated(capsys, path, "--policy", "bandit")[1]["bandit"]
    whole.insert(7, whole.pop() | BAD[what])
    path.write_text("".join(json.dumps(one) + "\n" for one in whole))
    with pytest.raises(SystemExit) as done:
        cli.main(["evaluate", str(path), "--policy", "bandit", "--json"])
    assert (done.value.code, capsys.readouterr().err.count("\n")) == (2, 1)
    with pytest.raises(SystemExit) as done:
        cli.main(["evaluate", str(path), "--policy", "bandit", "--json", "--skip"])
    said = capsys.readouterr()
    assert not done.value.code
    assert json.loads(said.out)["logged"] == wanted["logged"]
    assert "line 8:" in said.err or "decision e29:" in said.err


def test_a_probability_rounded_above_1_is_one(tmp_path):
    (one,) = dsjson_logs.lines(1)
    one |= {"p": [1.0000001, 0.0, 0.0], "_label_probability": 1.0000001}
    (tmp_path / "a.dsjson").write_text(json.dumps(one))
    (log,) = ev.logs_from_events(dsjson.read(tmp_path / "a.dsjson"))
    assert log.propensities.tolist() == [1.0]


def test_a_policy_of_a_module_in_the_current_folder(tmp_path):
    """As a user starts it: a process that has no such folder on its path."""
    dsjson_logs.write_log(tmp_path / "a.dsjson", 20)
    (tmp_path / "mine.py").write_text("def first(requests):\n    return [[1.0, 0.0, 0.0] for _ in requests]\n")
    command = ["-c", "import sys; sys.path[0] = '/'; from onepass.cli import main; main()", "evaluate", "a.dsjson"]
    policies = ["--policy", "mine:first", "--policy", "always:0", "--json"]
    done = subprocess.run([sys.executable, *command, *policies], cwd=tmp_path, capture_output=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr.decode()
    mine, always = map(json.loads, done.stdout.splitlines())
    assert (mine.pop("policy"), always.pop("policy")) == ("mine:first", "always:0")
    assert mine == always


@pytest.mark.parametrize("per_arm", [False, True])
def test_a_bandit_of_rows_is_asked_for_its_arms_by_name(tmp_path, capsys, monkeypatch, per_arm):
    """From a store of its own decisions, and from their export: the probabilities that it decided with."""
    monkeypatch.chdir(tmp_path)
    rng, bandit = np.random.default_rng(0), op.OFUL(dim=2, model="disjoint", exploration=op.Softmax(0.3))
    for t in range(60):
        bandit.learn(rng.standard_normal(2), float(t % 3 == 0), arm="abc"[t % 3])
    with SqliteStore("log") as store:
        for t in range(60):
            context = rng.standard_normal((3, 2) if per_arm else 2)
            found = bandit.decide(context, ["c", "a", "b"], id=f"{t}")
            store.append([Decision.from_decision(found, loop="shop", time=t, contexts=context),
                          Outcome(loop="shop", time=t, id=f"{t}", value=float(found.arm == "a"))])  # fmt: skip
        export_file(store, "a.dsjson")
    bandit.save("bandit")
    for place in ("log", "a.dsjson"):
        found = evaluated(capsys, place, "--policy", "bandit", "--policy", "logged")[1]
        assert found["bandit"]["estimates"]["ips"]["value"] == pytest.approx(found["logged"]["logged"], rel=1e-12)
        assert found["logged"]["estimates"]["ips"]["value"] == pytest.approx(found["logged"]["logged"], rel=1e-12)
