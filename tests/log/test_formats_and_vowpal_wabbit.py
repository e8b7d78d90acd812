"""Files of ours are read by Vowpal Wabbit with the loss that it has on theirs, and files of its own tools are read."""

import numpy as np
import pandas as pd
import pytest

import onepass as op
from foreign_logs import events
from onepass.log import Decision, Outcome, formats
from onepass.log.import_export import export_file
from onepass.log.memory import MemoryStore

pytest.importorskip("vowpalwabbit", reason="vowpalwabbit has no wheel for this Python")
import vowpalwabbit
from vowpalwabbit import dftovw

CB = "--cb_explore_adf --epsilon 0.1 -q :: --quiet"
SLOTS = "--ccb_explore_adf --epsilon 0 -q :: --quiet"  # without sampling: it would not draw alike in both


def loss(path, options):
    """The progressive loss of Vowpal Wabbit over a file, and how many examples it saw."""
    workspace = vowpalwabbit.Workspace(f"{options} -d {path}")
    found = workspace.get_sum_loss(), workspace.get_weighted_examples()
    workspace.finish()
    return found


@pytest.mark.parametrize(("options", "slots"), [(CB, 0), (SLOTS, 2)])
def test_a_model_of_one_spelling_has_the_same_loss_on_the_other(tmp_path, options, slots):
    """Its JSON parser and its text parser hash every feature alike: one spelled otherwise would be new to the model."""
    held = list(events(400, slots=slots))
    formats.write(tmp_path / "learned.dsjson", held[:200])
    loss(tmp_path / "learned.dsjson", f"{options} --dsjson -f {tmp_path / 'model'}")
    for name in ("asked.dsjson", "asked.vw"):
        formats.write(tmp_path / name, held[200:])
    tested = f"--quiet -t -i {tmp_path / 'model'}"
    json, text = loss(tmp_path / "asked.dsjson", f"{tested} --dsjson"), loss(tmp_path / "asked.vw", tested)
    assert text == pytest.approx(json, rel=1e-5)
    assert json[0] < -40.0  # it learned something of these rewards
    assert json[1] == 200.0


@pytest.mark.parametrize(("options", "slots"), [(CB, 0), (SLOTS, 2)])
def test_text_that_is_read_and_written_again_has_the_same_loss(tmp_path, options, slots):
    formats.write(tmp_path / "a.vw", events(200, slots=slots))
    formats.write(tmp_path / "b.vw", formats.read(tmp_path / "a.vw"))
    assert loss(tmp_path / "b.vw", options) == pytest.approx(loss(tmp_path / "a.vw", options), rel=1e-6)


@pytest.mark.parametrize(("options", "slots"), [(CB, 1), (SLOTS, 2)])
@pytest.mark.parametrize("kind", ["records", "rows"])
def test_a_log_of_ours_is_one_of_its_own(tmp_path, options, slots, kind):
    """What a bandit decided, exported: every decision is an example, from which it learns as much as from text."""
    store, rng = MemoryStore(), np.random.default_rng(0)
    bandit = op.InteractionBandit() if kind == "records" else op.OFUL(dim=3, model="disjoint")
    arms = {"a1": {"topic": "sport"}, "a2": {"topic": "news"}, "a3": {"topic": "food"}}
    for t in range(200):
        age, names = float(rng.integers(20, 60)), list(arms)
        context = {"age": age, "country": "de"} if kind == "records" else [1.0, age / 60.0, 0.5]
        found = bandit.decide(context, arms if kind == "records" else names, k=slots, id=f"{t}")
        contexts = {"context": context, "arms": list(arms.values())} if kind == "records" else context
        store.append([Decision.from_decision(found, loop="a", time=t, contexts=contexts)])
        each = enumerate(found.arms) if slots > 1 else [(None, found.arm)]
        store.append([Outcome(loop="a", time=t, id=f"{t}", slot=at, value=float(arm == "a1")) for at, arm in each])
    export_file(store, tmp_path / "a.dsjson")
    formats.write(tmp_path / "a.vw", formats.read(tmp_path / "a.dsjson"))
    json, text = loss(tmp_path / "a.dsjson", f"{options} --dsjson"), loss(tmp_path / "a.vw", options)
    assert json[1] == text[1] == 200.0
    assert text == pytest.approx(json, rel=1e-4)
    assert json[0] < -40.0


def test_a_file_of_its_data_frame_tool_is_read(tmp_path):
    frame = pd.DataFrame(
        {"action": [1, 3, 2], "cost": [0.0, -1.0, -0.5], "p": [0.5, 0.25, 0.75], "topic": ["x", "y", "z"],
         "size": [1.5, 2.0, 3.25]}
    )  # fmt: skip
    tool = dftovw.DFtoVW(
        df=frame,
        label=dftovw.ContextualbanditLabel(action="action", cost="cost", probability="p"),
        namespaces=[dftovw.Namespace(name="Item", features=[dftovw.Feature("topic"), dftovw.Feature("size")])],
    )
    path = tmp_path / "a.vw"
    path.write_text("\n".join(tool.convert_df()) + "\n")
    found = list(formats.read(path, n_arms=3))
    assert [event.decision.places[0] + 1 for event in found] == frame["action"].tolist()
    assert [event.decision.propensities[0] for event in found] == frame["p"].tolist()
    assert [event.outcomes[0].value for event in found] == (-frame["cost"]).tolist()
    assert [event.decision.contexts["Item"]["size"] for event in found] == frame["size"].tolist()
    formats.write(tmp_path / "b.vw", found)
    assert loss(tmp_path / "b.vw", "--cb 3 --quiet") == pytest.approx(loss(path, "--cb 3 --quiet"), rel=1e-6)
