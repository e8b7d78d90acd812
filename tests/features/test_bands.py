"""Numbers of arms have a band for each of their first values: prices earn as numbers what they earn as names."""

import itertools
import math

import numpy as np
import pytest

import onepass as op
from counts import repetitions
from onepass.features.bands import LINE, band_name, part_of
from onepass.features.flatten import flatten_record
from onepass.model.interaction.interactions import rescale


class Naive:
    """Rows as dictionaries by the names of terms; numbers as they came, for nothing is standardized."""

    def __init__(self, bands):
        self.bands, self.knots, self.rows, self.straight = bands, {}, {}, set()

    def learn(self, record):
        for name, value in flatten_record(record).items():
            if "=" not in name and "[" not in name and "@" not in name:
                mine, rows = self.knots.setdefault(name, []), self.rows.get(name, 0)
                if value not in mine and len(mine) < self.bands:
                    mine.append(value)
                elif value not in mine and rows < 8 * self.bands:
                    self.straight.add(name)
                self.rows[name] = rows + 1

    def row(self, record):
        out = {}
        for name, value in flatten_record(record).items():
            mine = sorted(self.knots.get(name, []))
            out[name] = value
            if len(mine) < 3 or name in self.straight:
                continue
            out[name] = LINE * value
            if value in mine or len(mine) == self.bands:
                for k, knot in enumerate(mine):
                    low = mine[k - 1] if k else -math.inf
                    high = mine[k + 1] if k + 1 < len(mine) else math.inf
                    if value <= knot:
                        share = 1.0 if low == -math.inf else (value - low) / (knot - low)
                    else:
                        share = 1.0 if high == math.inf else (high - value) / (high - knot)
                    if share > 0.0:
                        out[f"{name}[={knot!r}]"] = share
            else:
                out["unseen"] = out.get("unseen", 0.0) + 1.0
        return out


def arm(rng):
    return {
        "topic": str(rng.choice(["x", "y"])),
        "price": float(rng.integers(3, 9)),
        "step": float(rng.integers(3)) + 10.0 * (rng.random() < 0.02),
        "length": round(float(rng.normal(1990.0, 10.0)), 2),
        "sold": bool(rng.integers(2)),
        "same": 3,
        "vector": [0.5, float(rng.normal())],
        "inner": {"stars": int(rng.integers(1, 6))},
    }


@pytest.mark.parametrize("bands", [2, 5])
def test_rows_are_the_naive_ones(bands):
    records, naive, rng = op.Records(size=256, bands=bands), Naive(bands), np.random.default_rng(1)
    for _ in range(repetitions(60, 600)):
        for each in (arm(rng), {**arm(rng), "price": 1e6, "length": -1e6}):
            row, names = records.transform(each), records.feature_names()
            found = {names[place]: row[place] for place in np.flatnonzero(row) if not names[place].startswith("hash#")}
            wanted = naive.row(each)
            wanted.pop("unseen", None)
            known = {name for name in names if not name.startswith(("free#", "hash#"))}
            wanted = {name: value for name, value in wanted.items() if value != 0.0 and name in known}
            assert found == pytest.approx(wanted, rel=1e-12)
            assert (records.transform([each] * 3) == row).all()  # key by key
            assert records.pairs_of_terms([flatten_record(each)]).values.sum() == pytest.approx(row.sum())
        taught = arm(rng)
        naive.learn(taught)
        places, values = records.learn_terms(flatten_record(taught))
        out = np.zeros(256)
        np.add.at(out, places, values)
        assert (out == records.transform(taught)).all()  # a row is learned as it is seen afterwards
    assert records.copy().feature_names() == records.feature_names()
    assert not any("vector" in name and "[=" in name for name in records.feature_names())


def test_a_value_that_is_new_is_little_known_until_the_bands_are_full():
    records = op.Records(size=64, bands=4, seed=4)

    def said(value):
        names = records.feature_names()
        return {names[p]: v for p, v in enumerate(records.transform({"price": value})) if v}

    records.learn([{"price": 4.0}, {"price": 12.0}])
    assert said(8.0) == {"price": 8.0}  # a line goes through two values
    records.learn({"price": 20.0})
    assert said(12.0) == {"price": LINE * 12.0, "price[=12.0]": 1.0}
    assert list(said(8.0).values()) == [LINE * 8.0, 1.0]
    assert [name.startswith("hash#") for name in said(8.0)] == [False, True]
    records.learn([{"price": 28.0}] * 40)
    assert said(9.0) == {"price": LINE * 9.0, "price[=4.0]": 0.375, "price[=12.0]": 0.625}
    assert said(50.0) == {"price": LINE * 50.0, "price[=28.0]": 1.0}
    records.learn({"price": 8.0})  # late: bands stay as they are
    assert said(8.0) == {"price": LINE * 8.0, "price[=4.0]": 0.5, "price[=12.0]": 0.5}


def test_means_stay_as_they_are_when_bands_begin_and_end():
    bandit = op.InteractionBandit(op.Records(size=32), op.Records(size=64, bands=4), seed=1)
    arms = [{"price": 2.0, "kind": "x"}, {"price": 5.0, "kind": "y"}]
    for t in range(20):
        decision = bandit.decide({"age": float(t % 5)}, arms)
        bandit.learn(decision, decision.context["arms"][0]["price"] * (1.0 + 0.1 * (t % 5)))

    def of_price():
        terms = bandit.explain({"age": 2.0}, 1, arms=arms).terms
        return {term.name: term.contribution for term in terms if term.name.endswith("price")}

    before = of_price()
    assert any(value != 0.0 for value in before.values())
    for value, factor in (
        (7.0, LINE),
        (8.0, None),
        (9.0, 1.0 / LINE),
    ):  # bands from the first on, a line from the last on
        bandit.model.item.learn_terms({"price": value})
        found = bandit.model.item.take_rescaled()
        assert found == ([] if factor is None else [(0, factor)])
        rescale(bandit.model.state, [], found)
        assert of_price() == pytest.approx(before, rel=1e-12)


def test_a_number_of_many_values_is_a_straight_line():
    records = op.Records(size=64, bands=4)
    for t in range(30):
        records.learn({"hours": t / 7.0})
    assert records.n_names == 6
    assert records.feature_names()[records.n_names - 1] == "hours[=]"
    assert np.count_nonzero(records.transform({"hours": 2.5})) == 1


def test_bands_leave_half_of_the_places_to_other_names():
    records = op.Records(size=40, hashed=8, bands=12)
    for t in range(20):
        records.learn({f"number {k}": float(t % 3 * k) for k in range(5)})
    bands = [name for name in records.feature_names() if "[=" in name]
    assert len([name for name in bands if not name.endswith("[=]")]) == 11
    again = op.from_bytes(op.to_bytes(records))
    for value in (0.5, 7.25, 1e9):
        row = {f"number {k}": value for k in range(5)}
        assert (again.transform(row) == records.transform(row)).all()
        again.learn(row)
        records.learn(row)
    assert op.to_bytes(again) == op.to_bytes(records)


def test_names_of_bands_are_those_of_nothing_else():
    for knot in (4.0, -0.1, 1e300, 0.1 + 0.2):
        assert part_of(band_name("a.b", knot)) == ("a.b", knot)
    assert part_of(band_name("a", np.nan))[0] == "a"
    for record in (
        {"price[=4.0]": 1.0},
        {"price": "[=4.0]"},
        {"price[": "4.0]"},
        {"price": [4.0]},
        {"price[": {"=4.0]": 1}},
    ):
        for name in flatten_record(record):
            assert part_of(name)[0] == ""
    for name in ("[=]", "a[=x]", "a[=inf]", "a[=4.0", "a=b[=4.0]", "a?[=4.0]"):
        assert part_of(name)[0] == ""


SEGMENTS = ("student", "family", "business", "retired")
PRICES = np.linspace(4.0, 40.0, 10)


def customers(seed):
    """Customers without end, and how likely each buys at every price: logistic in what it is worth to them."""
    rng = np.random.default_rng([seed, 5])
    worth = dict(zip(SEGMENTS, 8.0 + 1.7 * rng.permutation([-6.0, 0.0, 6.0, 14.0]), strict=True))
    while True:
        who = {"segment": str(rng.choice(SEGMENTS)), "device": str(rng.choice(["phone", "desktop"])),
               "income": float(np.exp(rng.normal(3.5, 0.4)))}  # fmt: skip
        most = worth[who["segment"]] + (2.0 if who["device"] == "desktop" else -2.0)
        most += 5.0 * (math.log(who["income"]) - 3.5)
        yield who, 1.0 / (1.0 + np.exp((PRICES - most) / 4.0)), rng.random()


def revenue(bandit, arms, seed, rounds):
    """What was earned a customer, by expectation, and what the best single price would have."""
    earned, fixed = 0.0, np.zeros(PRICES.size)
    for who, chances, lot in itertools.islice(customers(seed), rounds):
        decision = bandit.decide(who, arms)
        earned += PRICES[decision.index] * chances[decision.index]
        fixed += PRICES * chances
        bandit.learn(decision, float(PRICES[decision.index] * (lot < chances[decision.index])))
    return earned / rounds, fixed.max() / rounds


VARIANTS = {
    "prices": lambda p: p,
    "years": lambda p: 1984.0 + p,
    "log-normal": lambda p: np.exp(p / 6.0),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_prices_as_numbers_earn_more_than_the_best_price_for_all(variant):
    """As one standardized number they earned .44 of it, where arms have no names, and .79 where they have."""
    shares = []
    for seed in range(repetitions(3, 20)):
        arms = [{"price": float(x), "always": 7.5} for x in VARIANTS[variant](PRICES)]
        earned, fixed = revenue(op.InteractionBandit(seed=seed), arms, seed, repetitions(2500, 8000))
        shares.append(earned / fixed)
    assert np.mean(shares) > 0.93
    assert min(shares) > 0.75


def test_the_unit_and_the_origin_of_a_number_and_the_order_of_keys_do_not_matter():
    chosen = []
    for scale, shift, turn in ((1.0, 0.0, 1), (4.0, 0.0, 1), (-0.5, 0.0, 1), (1.0, 1024.0, 1), (1.0, 0.0, -1)):
        bandit, own = op.InteractionBandit(seed=2), []
        for t, (who, chances, lot) in enumerate(itertools.islice(customers(3), 250)):
            arms = {}
            for k, x in enumerate(PRICES):
                record = {"price": scale * (x + (t % 7) / 4.0) + shift, "kind": f"k{k % 3}", "weight": float(t % 3)}
                arms[f"p{k}"] = dict(list(record.items())[::turn])
            decision = bandit.decide(dict(list(who.items())[::turn]), arms, id=f"{t}")
            own.append(decision.propensity)
            bandit.learn(decision, float(PRICES[decision.index] * (lot < chances[decision.index])))
        chosen.append(own)
    for other in chosen[1:]:
        assert other == pytest.approx(chosen[0], rel=1e-6)


def test_a_file_goes_on_bit_for_bit_and_records_teach_what_decisions_teach():
    one, rng = op.InteractionBandit(seed=1), np.random.default_rng(0)
    for t in range(60):
        who, arms = {"age": float(rng.integers(20, 60))}, {f"a{k}": arm(rng) for k in range(4)}
        other = op.from_bytes(op.to_bytes(one))
        mine, theirs = (bandit.decide(who, arms, id=f"{t}") for bandit in (one, other))
        assert mine.to_dict() == theirs.to_dict()
        assert one.explain(who, mine.arm, arms=arms).mean == pytest.approx(mine.means[mine.index], rel=1e-9, abs=1e-9)
        one.learn(mine, 0.25 * t)
        other.learn(op.Decision.from_dict(theirs.to_dict()), 0.25 * t)
        assert op.to_bytes(one) == op.to_bytes(other)
