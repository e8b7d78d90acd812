"""The betting sequence: its cells by definition, limits beside those of a fine grid, misses at any time, its cost."""

import numpy as np
import pytest
from scipy import stats

import dense_evaluation as dense
from counts import repetitions
from onepass import evaluation as ev
from onepass.evaluation.betting import init_bets

CLICKS = ev.Range(0.0, 1.0)
RATES = (0.001, 0.03, 0.5, 0.97, 0.999)


def allowed(level, runs):
    """Misses of `runs` runs that 1 - level does not explain at 1 in 10,000."""
    return int(stats.binom.isf(1e-4, runs, level))


def clicks(rng, rows, rate, weight):
    """Weights of 0 and `weight` whose mean is 1, rewards of 1 at a rate."""
    return (rng.random(rows) < 1.0 / weight) * weight, (rng.random(rows) < rate) * 1.0


def rising(rows=1_200):
    """Rows whose largest weight rises on the way, and the largest weights."""
    rng = np.random.default_rng(9)
    max_weights = np.repeat([1.5, 2.0, 3.0, 6.0], rows // 4)
    w, r = np.where(rng.random(rows) < 1 / max_weights, max_weights, 0.0), rng.random(rows)
    r[907:] *= 0.4  # the highest wealth is not that of the end
    return w, r, max_weights


def test_cells_and_their_wealth_are_those_of_the_loop_by_definition():
    w, r, max_weights = rising()
    sequence = ev.BettingSequence(CLICKS, 1.0, cells=8)
    for part in (slice(0, 7), slice(7, 1_001), slice(1_001, len(w))):
        sequence.add(w[part], r[part], max_weights[part])
    state = sequence._state
    cells, _ = dense.betting_cells(w, r, max_weights, init_bets(8).ends)
    assert state.ends == pytest.approx([*[one["low"] for one in cells], cells[-1]["high"]], abs=1e-12)
    below, above = state.below + np.log(state.under), state.above + np.log(state.over)
    assert below == pytest.approx([one["below"] for one in cells], abs=1e-8)
    assert above == pytest.approx([one["above"] for one in cells], abs=1e-8)
    peak = np.maximum(state.peak, np.minimum(below, above))
    assert peak == pytest.approx([one["peak"] for one in cells], abs=1e-8)


def test_between_the_ends_of_a_cell_bets_earned_no_less_than_the_line():
    w, r, max_weights = rising(800)
    values = np.random.default_rng(2).random(60)
    cells, exact = dense.betting_cells(w, r, max_weights, init_bets(8).ends, values)
    inside = 0
    for v, wealth in exact.items():
        own = next((one for one in cells if one["low"] <= v <= one["high"]), None)
        if own is not None:
            line = np.interp(v, [own["low"], own["high"]], [own["below"], own["above"]])
            assert wealth >= line - 1e-9
            inside += 1
    assert inside > 20


@pytest.mark.parametrize(("rate", "weight"), [(0.5, 1.0), (0.5, 2.0), (0.05, 20.0), (0.001, 2.0), (0.999, 2.0)])
def test_limits_are_near_those_of_a_fine_grid(rate, weight):
    """Within a twelfth of their width, at 2,000 rows; nearer at most by what looking after 8 rows may tell."""
    w, r = clicks(np.random.default_rng(5), 2_000, rate, weight)
    sequence = ev.BettingSequence(CLICKS, weight)
    sequence.add(w, r)
    low, high = sequence.interval()
    around = (high - low) * np.linspace(-0.1, 0.1, 81)
    grid = np.unique(np.clip(np.concatenate([low + around, high + around]), 0.0, 1.0))
    least, largest = dense.betting_limits(w, r, weight, 0.05, grid)
    assert low == pytest.approx(least, abs=(largest - least) / 12)
    assert high == pytest.approx(largest, abs=(largest - least) / 12)


def test_near_a_half_limits_go_on_closing_in():
    """The fixed grid had steps of .019 there: limits of 50,000 rows were .038 apart, those of a fine grid .0165."""
    rng, widths = np.random.default_rng(1), []
    for rows in (50_000, 800_000):
        w, r = clicks(rng, rows, 0.5, 1.0)
        sequence = ev.BettingSequence(CLICKS, 1.0)
        sequence.add(w, r)
        low, high = sequence.interval()
        assert low < 0.5 < high
        widths.append(high - low)
    assert widths[0] < 0.018  # those of a fine grid: .0155 to .0168 over six logs, these .0161 to .0173
    assert widths[1] < widths[0] / 3.5


@pytest.mark.parametrize("rate", RATES)
def test_limits_miss_at_any_time_in_at_most_one_run_in_twenty_at_every_rate(rate):
    """Looked at after every 20 rows; what was refuted in between stays refuted."""
    rng, missed, runs, rows = np.random.default_rng(2), 0, repetitions(60, 2_000), repetitions(1_000, 3_000)
    for run in range(runs):
        weight = (1.0, 2.0, 20.0)[run % 3]
        w, r = clicks(rng, rows, rate, weight)
        sequence, out = ev.BettingSequence(CLICKS, weight), False
        for start in range(0, rows, 20):
            sequence.add(w[start : start + 20], r[start : start + 20])
            out |= not sequence.interval().contains(rate)
        missed += out
    assert missed <= allowed(0.05, runs)


def test_rows_may_come_to_a_sequence_in_any_parts():
    w, r, max_weights = rising(800)
    whole, parts = ev.BettingSequence(CLICKS, 1.0), ev.BettingSequence(CLICKS, 1.0)
    whole.add(w, r, max_weights)
    for part in np.array_split(np.arange(800), [1, 7, 300, 301]):
        parts.add(w[part], r[part], max_weights[part])
    assert whole.interval() == parts.interval()


def test_wealths_of_parts_multiply_on_the_cells_of_both():
    rng = np.random.default_rng(4)
    w, r = clicks(rng, 4_000, 0.3, 2.0)
    whole, first, second = (ev.BettingSequence(CLICKS, 2.0) for _ in range(3))
    whole.add(w, r)
    first.add(w[:2_500], r[:2_500])
    second.add(w[2_500:], r[2_500:])
    joined = first.concat(second)
    assert joined.interval().contains(0.3)
    wide, narrow = (one.upper - one.lower for one in (joined.interval(), whole.interval()))
    assert narrow < wide < 1.5 * narrow
    assert wide < first.interval().upper - first.interval().lower
    for value in np.linspace(*joined.interval(), 7)[1:-1]:
        parts = [line_at(one._state, value) for one in (first, second)]
        assert line_at(joined._state, value) <= sum(parts) + 1e-9
    joined.add(w[:500], r[:500])  # it can go on
    assert joined.interval().lower <= 0.3 <= joined.interval().upper
    with pytest.raises(ValueError, match="other must have the range of rewards"):
        first.concat(ev.BettingSequence(ev.Range(0.0, 2.0), 2.0))


def line_at(state, value):
    """The wealth that a state claims at a value."""
    i = int(np.searchsorted(state.ends, value, side="right")) - 1
    ends = state.below[i] + np.log(state.under[i]), state.above[i] + np.log(state.over[i])
    return np.interp(value, state.ends[i : i + 2], ends)


def test_where_no_value_is_left_limits_are_none():
    sequence = ev.BettingSequence(CLICKS, 2.0)
    sequence.add(np.full(500, 2.0), np.full(500, 0.5))  # a mean weight of 2
    assert np.isnan(sequence.interval()).all()
    other = ev.BettingSequence(CLICKS, 2.0)
    assert np.isnan(sequence.concat(other).interval()).all()
    assert np.isnan(other.concat(sequence).interval()).all()


def test_cells_stay_few():
    """A row costs in proportion to them: 64 before the first row, 256 at most, on long logs some 60."""
    rng = np.random.default_rng(3)
    for rate in RATES:
        sequence = ev.BettingSequence(CLICKS, 20.0)
        for rows, most in ((300, 256), (20_000, 128)):
            sequence.add(*clicks(rng, rows, rate, 20.0))
            assert len(sequence._state.a) <= most
