"""Long logs: whole checkpoints cut them into pieces, which are verified one by one, in parallel, and once for ever."""

import itertools

import numpy as np
import pytest

import onepass as op
from onepass.log.memory import MemoryStore
from onepass.log.replay import Fold
from onepass.log.verifying import verify
from onepass.service.loop import Loop
from onepass.service.messages import DecideRequest, OutcomeRequest
from onepass.service.settings import begun, checked
from patience import learned

MODEL = {"recipe": "OFUL", "seed": 2, "arguments": {"parameters": "disjoint", "reg": 0.5,
                                  "exploration": {"kind": "Thompson", "exploration": 0.4, "draws": 5}}}  # fmt: skip


def rules(whole=20, **more):
    return checked({
        "name": "news", "features": {"context": 3}, "arms": ["a", "b", "c"], "model": MODEL, "reward": {"wait": 0.02},
        "operation": {"publish": 0.0, "whole": whole}, **more,
    })  # fmt: skip


def played(loop, begin, end):
    for t in range(begin, end):
        context = np.random.default_rng(t).standard_normal(3).tolist()
        record = loop.decide(DecideRequest(context=context, id=f"{t}")).result()
        if t % 2:
            loop.outcomes([OutcomeRequest(id=record.id, value=float(record.places[0] == t % 3), key="k")])[1].result()
    learned(loop)


@pytest.fixture
def started(tmp_path):
    loops = []

    def start(settings, store):
        loops.append(Loop(settings, store, tmp_path / "models"))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()


def wholes(store):
    return [one for one in store.read(kinds=["checkpoint"]) if one.data is not None]


def test_a_service_makes_whole_checkpoints_by_joins_and_goes_on_counting_after_a_restart(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole.SPARSE", 0)
    store = MemoryStore()
    for life in range(4):
        loop = started(rules(whole=40), store)
        played(loop, 25 * life, 25 * (life + 1))
        loop.stop()
    found = wholes(store)
    joins = [one.seq for one in store.read(kinds=["join"])]
    between = [sum(one.through < place <= other.through for place in joins) for one, other in itertools.pairwise(found)]
    assert len(between) == 2
    assert all(40 <= one < 60 for one in between)
    for one in found:
        fold = Fold(store, "news", begun(rules()))
        fold.advance(one.through)
        assert op.to_bytes(fold.bandit) == one.data
    result = verify(Fold.resumed(store, "news", first=True))
    assert (result.ok, result.equal) == (True, 100)


def test_a_large_model_waits_for_twenty_times_its_bytes_of_other_records(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole.SPARSE", 2)
    store = MemoryStore()
    for life in range(2):
        loop = started(rules(whole=1), store)
        played(loop, 60 * life, 60 * (life + 1))
        loop.stop()
    first, *found = wholes(store)
    sizes = {row.seq: len(row.body) for row in store.rows(0, None, None, None)}
    assert found
    last = first
    for one in found:
        others = sum(size for seq, size in sizes.items() if last.seq < seq < one.seq)
        assert others >= 2 * len(one.data)
        last = one


def test_no_whole_checkpoints_are_made_where_settings_say_never_and_others_are_refused(started, monkeypatch):
    monkeypatch.setattr("onepass.service.whole.SPARSE", 0)
    store = MemoryStore()
    loop = started(rules(whole=0), store)
    played(loop, 0, 40)
    loop.stop()
    assert len(wholes(store)) == 1
    for wrong in (-1, 1_000_000_001):
        with pytest.raises(ValueError, match=r"operation\.whole must be from 1 to 1,000,000,000 joins, or 0 for never"):
            rules(whole=wrong)
