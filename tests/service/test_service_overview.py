"""The overview of a log, beside naive counts of the whole log; however it is read, its sums are the same."""

import time
from collections import Counter

import msgspec
import numpy as np
import pytest

from counts import LONG, repetitions
from onepass.log import Activation, Decision, Join, Outcome, Settings
from onepass.log.memory import MemoryStore
from onepass.log.sqlite import SqliteStore
from onepass.log.store import make_row
from onepass.service.overview import LAPSED, NAMED, OTHERS, PIECES, REMEMBERED, Overview, Sums
from onepass.service.overview_thread import HELD, LOOK, RECENT, OverviewThread
from onepass.service.settings import parse_settings
from patience import until

SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND


def rules(**fields):
    found = {"name": "a", "features": {"context": 1, "arms": 1}, "reward": {"wait": 5.0}}
    return parse_settings({**found, **fields})


def log_of(n, seed=0, arms=3, gap=0.4, wait=5.0):
    """Decisions, outcomes and joins of a loop, in order; some are deferred, and lapse."""
    rng, timed = np.random.default_rng(seed), []
    for i in range(n):
        at = BEGIN + round(SECOND * gap * (i + 0.3 * rng.random()))
        p = rng.dirichlet(np.ones(arms))
        place, lapses = int(rng.choice(arms, p=p)), rng.random() < 0.05
        decision = Decision(
            loop="a", time=at, id=f"e{i}", places=[place], propensities=[float(p[place])], probabilities=p.tolist(),
            offered=[f"arm {(j + i // 40) % (arms + i // 40)}" for j in range(arms)], deferred=bool(lapses),
            means=rng.random(arms).tolist(), extra={"due": at + round(wait * SECOND)},
        )  # fmt: skip
        timed.append((at, decision))
        reward, late = float(rng.random() < 0.2 + 0.2 * place), rng.random() < 0.1
        if lapses:
            continue
        paid = bool(reward) and not late
        if reward:
            timed.append((at + (6 if late else 1) * SECOND, Outcome(loop="a", time=at + SECOND, id=f"e{i}", value=1.0)))
        due = at + round(wait * SECOND) + 1
        how = "earliest" if paid else "default"
        timed.append((due, Join(loop="a", time=due, id=f"e{i}", rewards=[float(paid)], how=how, count=int(paid))))
    records = [record for _, record in sorted(timed, key=lambda one: one[0])]
    return [
        Settings(loop="a", time=BEGIN - 1, settings={"from": "file", "loop": rules().to_dict()}, version="1"),
        *records,
    ]


def placed(records):
    return [msgspec.structs.replace(record, seq=seq) for seq, record in enumerate(records, 1)]


def taken(records, sums=None, find=lambda identity: []):
    overview = Overview(rules(), sums, find)
    for record in records:
        overview.add_record(record)
    return overview


def test_counts_and_sums_are_those_of_the_whole_log():
    log = placed(log_of(300))
    found = taken(log).to_dict()
    decisions = {one.id: one for one in log if isinstance(one, Decision)}
    joins = [one for one in log if isinstance(one, Join)]
    assert found["counts"]["decision"] == len(decisions) == sum(piece[0] for piece in found["pieces"])
    assert found["counts"]["join"] == len(joins) == found["value"]["rewards"]
    assert found["counts"]["outcome"] == sum(isinstance(one, Outcome) for one in log)
    assert found["counts"]["default"] == sum(one.how == "default" for one in joins)
    rewards = [one.rewards[0] for one in joins]
    assert found["value"]["shown"][0] == pytest.approx(np.mean(rewards))
    apart = np.mean([1.0 - max(one.probabilities) for one in decisions.values()])
    price = np.mean([max(one.means) - np.dot(one.probabilities, one.means) for one in decisions.values()])
    assert (found["apart"], found["price"]) == pytest.approx((apart, price))
    names = Counter(one.offered[one.places[0]] for one in decisions.values())
    assert found["names"] == [name for name, _ in names.most_common(6)]
    for which, name in enumerate(found["names"]):
        assert sum(piece[1][which] for piece in found["pieces"]) == names[name]
    weights, earned = 0.0, 0.0
    for one in joins:
        of = decisions[one.id]
        weight = (of.places[0] == 0) / of.probabilities[0]
        weights, earned = weights + weight, earned + weight * one.rewards[0]
    assert found["value"]["first"][0] == pytest.approx(earned / weights)


def test_pieces_are_of_equal_width_and_never_more_than_fit_however_long_it_runs():
    for gap in (0.001, 3.0, 4000.0):
        log = placed(log_of(250, gap=gap))
        found = taken(log).to_dict()
        assert len(found["pieces"]) <= PIECES
        width, begin = found["width"] * SECOND, found["begin"] * SECOND
        naive = Counter(int((one.time - round(begin)) // width) for one in log if isinstance(one, Decision))
        assert [piece[0] for piece in found["pieces"]] == [naive[place] for place in range(len(found["pieces"]))]


def test_very_many_arms_are_counted_together_and_memory_stays():
    many = 60 * NAMED
    names = [f"n{i % many}" if i % 3 else "hit" for i in range(2 * many)]
    log = placed(
        Decision(loop="a", time=BEGIN + i * SECOND, id=f"e{i}", places=[0], offered=[name])
        for i, name in enumerate(names)
    )
    overview = taken(log)
    found = overview.to_dict()
    assert found["names"][0] == "hit"
    assert sum(piece[1][0] for piece in found["pieces"]) == 2 * many // 3
    assert all(len(piece.arms) <= 2 * NAMED + 1 for piece in overview.sums.pieces)
    assert sum(sum(piece.arms.values()) for piece in overview.sums.pieces) == 2 * many
    assert OTHERS in overview.sums.arms
    assert OTHERS not in found["names"]
    assert found["arms"] is None


def test_what_lapsed_is_not_waited_for_for_ever():
    log = placed(log_of(1200, gap=1.0))
    overview = taken(log)
    due = max(one.time for one in log if isinstance(one, Join))
    assert sum(isinstance(one, Decision) and one.deferred for one in log) > 30
    assert len(overview.waiting) <= (LAPSED + (log[-1].time - due)) / SECOND + 5


@pytest.mark.parametrize("cut", [1, 37, 400])
def test_sums_from_a_file_go_on_as_if_nothing_had_happened(cut):
    log = placed(log_of(250))
    whole = taken(log)
    kept = msgspec.json.decode(taken(log[:cut]).to_bytes(), type=Sums)
    again = taken(log[cut:], kept, lambda identity: [one for one in log if one.event == identity])
    one, other = (msgspec.json.decode(each.to_bytes()) for each in (whole, again))
    for each in (one, other):  # a cut closes the block of rewards that are added at once: sums differ in rounding
        each.update(worth=None, pieces=[{**piece, "worth": None} for piece in each["pieces"]])
    assert one == other
    np.testing.assert_allclose(again.policy_gain.to_dict()["sums"], whole.policy_gain.to_dict()["sums"], rtol=1e-9)
    assert again.to_dict()["latest"] == whole.to_dict()["latest"]


def test_limits_begin_anew_with_another_range_of_rewards():
    log = log_of(100)
    wider = rules(reward={"wait": 5.0, "range": [0.0, 2.0]}).to_dict()
    said = Settings(loop="a", time=log[-1].time + 1, settings={"from": "api", "loop": wider}, version="2")
    found = taken(placed([*log, said])).to_dict()
    assert (found["range"], found["value"], found["settings"]) == ([0.0, 2.0], None, "2")
    assert found["counts"]["decision"] == 100


def test_a_first_arm_that_shows_itself_alone_is_no_comparison():
    at, log = BEGIN, []
    for i in range(200):
        log += [
            Decision(loop="a", time=at + i, id=f"e{i}", places=[1], probabilities=[0.0, 1.0], offered=["x", "y"],
                     shown=[0], baseline=[0], mode="apprentice"),
            Join(loop="a", time=at + i, id=f"e{i}", rewards=[1.0]),
        ]  # fmt: skip
    overview = Overview(rules(mode="apprentice"))
    for record in placed(log):
        overview.add_record(record)
    found = overview.to_dict()
    assert (found["verdict"], found["names"], found["first"]) == ("same", ["x"], "x")
    assert any("apprentice" in note for note in found["notes"])


# ---- the thread ----


def watched(store, place, then=()):
    """What a watcher of a store shows when it has read and been told everything."""
    watcher = OverviewThread(rules(), store, "a", place)
    watcher.start()
    for part in then:
        seqs = store.append(part)
        watcher.add_records([msgspec.structs.replace(record, seq=seq) for record, seq in zip(part, seqs, strict=True)])
    until(lambda: watcher.is_current and watcher.last_seq >= store.last)
    watcher.stop()
    return watcher.to_dict()


def without_worth(found):
    return {
        name: value
        for name, value in found.items()
        if name not in ("value", "pieces", "sentence", "verdict", "through")
    }


def test_a_watcher_shows_the_whole_log_whoever_told_it_and_after_a_restart(tmp_path):
    log, store = log_of(900), MemoryStore()
    expected = taken(placed(log)).to_dict()
    store.append(log[:900])
    parts = [log[900:905], log[905:2000], [*log[2000:], Activation(loop="a", time=log[-1].time, id="e1")]]
    found = watched(store, tmp_path / "a.overview", parts)
    assert found["read"] == 1.0
    counts = {**expected["counts"], "activation": 1}
    assert without_worth(found) == {**without_worth(expected), "counts": counts, "read": 1.0}
    assert found["value"]["shown"] == pytest.approx(expected["value"]["shown"])
    again = watched(store, tmp_path / "a.overview")
    assert without_worth(again) | {"rate": 0.0} == without_worth(found) | {"rate": 0.0}
    assert again["value"]["over_first"] == pytest.approx(found["value"]["over_first"])


def test_a_watcher_that_was_told_too_much_reads_the_log_instead(tmp_path):
    log, store = log_of(500, seed=3), MemoryStore()
    watcher = OverviewThread(rules(), store, "a", tmp_path / "a.overview")
    watcher.look()  # nothing is in the log yet
    for start in range(0, len(log), 7):
        part = log[start : start + 7]
        seqs = store.append(part)
        told = [msgspec.structs.replace(record, seq=seq) for record, seq in zip(part, seqs, strict=True)]
        watcher.add_records(told * (HELD if start == 70 else 1))
    watcher.look()
    assert watcher.to_dict()["counts"] == taken(placed(log)).to_dict()["counts"]


def test_a_file_of_another_log_and_a_damaged_one_are_passed_over(tmp_path):
    place, store, other = tmp_path / "a.overview", MemoryStore(), MemoryStore()
    store.append(log_of(200, seed=1))
    watched(store, place)
    other.append(log_of(200, seed=2))
    counts = taken(placed(log_of(200, seed=2))).to_dict()["counts"]
    assert watched(other, place)["counts"] == counts
    place.write_bytes(place.read_bytes()[:-10])
    assert watched(other, place)["counts"] == counts


def test_decisions_of_any_origin_are_counted():
    odd = [
        Decision(loop="a", time=BEGIN, id="no probabilities", places=[3]),
        Decision(loop="a", time=BEGIN, id="of slots", places=[2, 0], offered=["x", "y", "z"]),
        Decision(loop="a", time=BEGIN, id="a mask", places=[0], offered=["x", "y"], probabilities=[1.0, 0.0],
                 eligible=[True, False]),
        Decision(loop="a", time=BEGIN, id="drawn without a chance", places=[1], probabilities=[1.0, 0.0]),
        Decision(loop="a", time=BEGIN, id="canary", places=[1], shown=[0], showing=[0.25, 0.75], offered=["x", "y"]),
    ]  # fmt: skip
    joins = [Join(loop="a", time=BEGIN, id=one.id, rewards=[1.0] * len(one.places)) for one in odd]
    found = taken(placed([*odd, *joins, Join(loop="a", time=BEGIN, id="nobody", rewards=[1.0])])).to_dict()
    assert found["counts"]["decision"] == found["value"]["rewards"] == len(odd)
    assert set(found["names"]) == {"3", "z", "x", "1"}


def long_log(store, count, joined):
    """Decisions with outcomes of which some were joined: rows that are put as they are."""
    at, part = BEGIN, []
    store.append([Settings(loop="a", time=at, settings={"from": "file", "loop": rules().to_dict()}, version="1")])
    for i in range(count):
        at += 1_000
        fields = {"propensities": [0.5], "probabilities": [0.5, 0.5], "offered": ["x", "y"], "means": [0.2, 0.3]}
        part.append(Decision(loop="a", time=at, id=f"{i}", places=[i % 2], extra={"due": at + 5 * SECOND}, **fields))
        if i < joined:
            part.append(Join(loop="a", time=at, id=f"{i}", rewards=[float(i % 3 == 0)]))
        if len(part) >= 5_000:
            store.put([make_row(one) for one in part])
            part = []
    store.put([make_row(one) for one in part])


class CountingStore(SqliteStore):
    """A store that counts the records that were read."""

    n_read = 0

    def read(self, *args, **named):
        for record in super().read(*args, **named):
            self.n_read += 1
            yield record


def test_the_overview_of_a_long_log_of_which_half_waits_is_there_within_a_second_of_a_start(tmp_path):
    """Records read after the start count, in the long run also the time: this thread's, as others may still run."""
    count = repetitions(100_000, 10_000_000)
    with CountingStore(tmp_path / "a.sqlite", synced=False) as store:
        long_log(store, count, count // 2)
        watcher = OverviewThread(rules(), store, "a", tmp_path / "a.overview")
        watcher.look()
        watcher._save()
        assert len(watcher._overview.waiting) <= REMEMBERED
        waiting = range(count // 2, count // 2 + 1_000)
        store.append([Join(loop="a", time=BEGIN + count * 1_000, id=f"{i}", rewards=[1.0]) for i in waiting])
        begun, store.n_read = time.thread_time(), 0
        again = OverviewThread(rules(), store, "a", tmp_path / "a.overview")
        first = again.to_dict()
        again.look()
        assert store.n_read <= 1_000 + RECENT
        assert not LONG or time.thread_time() - begun < 1.0
        time.sleep(1.1 * LOOK)  # what is shown is as of so long ago
        found = again.to_dict()
        assert first["counts"]["decision"] == found["counts"]["decision"] == count
        assert (found["counts"]["join"], found["read"], again.is_current) == (count // 2 + 1_000, 1.0, True)
        assert found["value"]["rewards"] == count // 2 + 1_000
