"""The Open Bandit Dataset, small version: the published estimates, the intervals, and which log is refused.

Figures: obp's quickstart (IPW .004553, relative error .0840), and a table of all six pairs made with 100,000 simulated
rounds of the other policy. It took Bernstein limits at 2 alpha.
"""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from onepass import evaluation as ev
from onepass.evaluation import intervals
from onepass.evaluation.gamma_mixture import gamma_mixture
from open_bandit import load_log, thompson_probabilities

CLICKS = ev.Range(0.0, 1.0)
TABLE = {  # campaign, logger: truth, IPW and SNIPW errors, ESS / n, largest weight; limits
    ("all", "random"): (0.0042, 0.084, 0.137, 0.164, 19.6, (0.0005, 0.0087), 0.0271, 0.141, (0.0009, 0.0128),
                        (0.0007, 0.0151), (0.0015, 0.0159)),
    ("men", "random"): (0.0069, 0.343, 0.333, 0.247, 10.7, (0.0022, 0.0069), 0.0169, 0.091, (0.0023, 0.0088),
                        (0.0013, 0.0113), (0.0019, 0.0112)),
    ("women", "random"): (0.0046, 0.481, 0.481, 0.195, 12.6, (0.0031, 0.0105), 0.0228, 0.091, (0.0031, 0.0125),
                          (0.0023, 0.0153), (0.0016, 0.0152)),
    ("all", "bts"): (0.0038, 0.379, 0.386, 0.034, 278.0, (0.0007, 0.0041), 0.24, 0.228, (0.0007, 0.068), (0.0, 0.102),
                     (0.0006, 0.169)),
    ("men", "bts"): (0.0046, 0.346, 0.307, 0.066, 178.0, (0.0015, 0.0045), 0.16, 0.213, (0.0015, 0.060), (0.0, 0.070),
                     (0.0016, 0.110)),
    ("women", "bts"): (0.0046, 0.617, 0.484, 0.0002, 21_739.0, (0.0, 0.0155), 1.0, 1.0, (0.0, 1.0), (0.0, 1.0),
                       (0.0007, 1.0)),
}  # fmt: skip


def log_of(logger, campaign, contexts=None):
    items, slots, clicks, p = load_log(logger, campaign)
    return ev.Log(
        arms=items,
        rewards=clicks,
        propensities=p,
        n_arms=len(thompson_probabilities(campaign)),
        slots=slots,
        contexts=contexts,
    )


def policy_of(logger, campaign):
    """The policy that did not write the log."""
    p = thompson_probabilities(campaign)
    return p if logger == "random" else np.full(len(p), 1 / len(p))


def near(found, told, digits):
    """Whether limits are those of the table, to its digits."""
    return np.allclose(found, told, rtol=0.01, atol=0.51 * 10.0**-digits + 5e-5)


def test_the_quickstart_is_reproduced_to_its_digits():
    found = ev.evaluate(log_of("random", "all"), policy_of("random", "all"), estimators=("ips",))
    truth = load_log("bts", "all")[2].mean()
    assert truth == pytest.approx(0.0042)
    assert f"{found.estimates['ips'].value:.6f}" == "0.004553"
    assert f"{abs(found.estimates['ips'].value - truth) / truth:.4f}" == "0.0840"


def test_dm_and_dr_are_within_the_spread_of_a_random_model():
    """obp's quickstart has DM .003545 and DR .004727 by a logistic regression on all rows; ours are fitted on the past,
    with the seed of a model that does not depend on it: the spread is that of deviations."""

    class Chance:
        def fit(self, rows, rewards):
            self.model = LogisticRegression(C=100.0, max_iter=1000).fit(rows, rewards > 0.5)

        def predict(self, rows):
            return self.model.predict_proba(rows)[:, 1]

    found = ev.evaluate(log_of("random", "all"), policy_of("random", "all"), model=Chance())
    dm, dr = found.estimates["dm"], found.estimates["dr"]
    assert abs(dm.value - 0.003545) < 0.0015
    assert abs(dr.value - 0.004727) < 0.5 * dr.deviation


@pytest.mark.parametrize(("campaign", "logger"), TABLE)
def test_every_row_of_the_table_is_reproduced(campaign, logger):
    truth, ipw, snipw, share, most, normal, bernstein, gamma, cressie, clopper, betting = TABLE[campaign, logger]
    log = log_of(logger, campaign)
    found = ev.evaluate(log, policy_of(logger, campaign), estimators=("ips", "snips"))
    m, other = ev.compute_moments(found.sample.weights, found.sample.rewards), "bts" if logger == "random" else "random"
    assert load_log(other, campaign)[2].mean() == pytest.approx(truth)
    assert abs(m.ips - truth) / truth == pytest.approx(ipw, abs=6e-4)
    assert abs(m.snips - truth) / truth == pytest.approx(snipw, abs=6e-4)
    assert m.effective / m.rows == pytest.approx(share, abs=6e-4)
    assert m.max_weight == pytest.approx(most, rel=0.005)
    assert near(found.estimates["ips"].normal, normal, 4)
    assert intervals.bernstein(m, CLICKS, 0.1).upper == pytest.approx(bernstein, rel=0.05)
    assert gamma_mixture(found.sample, CLICKS, 0.05).upper == pytest.approx(gamma, abs=6e-4)
    assert near(found.intervals["cressie-read"], cressie, 4)
    assert near(found.intervals["clopper-pearson"], clopper, 4)
    assert ("betting" in found.intervals) == found.bound_known == (logger == "random")
    bets = ev.BettingSequence(
        CLICKS, m.max_weight if logger == "bts" else found.bound
    )  # the table's took the largest seen
    bets.add(found.sample.weights, found.sample.rewards)
    limits = bets.interval()  # the bets are others: near the table's, and at most a fifth wider
    assert limits.upper - limits.lower <= 1.2 * (betting[1] - betting[0])
    assert limits == pytest.approx(betting, rel=0.45)


def test_the_last_row_is_refused_with_its_reason():
    found = ev.evaluate(log_of("bts", "women"), policy_of("bts", "women"))
    assert (found.verdict, found.value) == ("refused", None)
    assert "the mean weight is 3.134 and must be 1" in found.diagnosis.reasons[0]
    assert any("worth 2.1 rows" in why for why in found.diagnosis.reasons)
    assert not found.bound_known


@pytest.mark.parametrize(("campaign", "logger"), [pair for pair in TABLE if pair != ("women", "bts")])
def test_the_other_rows_are_not_refused_and_the_truth_is_within_their_limits(campaign, logger):
    found = ev.evaluate(log_of(logger, campaign), policy_of(logger, campaign))
    assert found.verdict == "ok"
    assert found.limits.contains(TABLE[campaign, logger][0])
    assert found.bound_known == (logger == "random")


def test_no_policy_is_called_better_than_random_on_ten_thousand_rows():
    """The true gain on all items is .0004: far below what 10,000 rows with weights up to 20 can show."""
    found = ev.compare(
        log_of("random", "all"), {"thompson": thompson_probabilities("all"), "same": np.full(80, 1 / 80)}
    )
    assert found.best is None
    assert all(one.limits.contains(0.0) for one in found.differences)
    assert found.differences[0].limits.upper - found.differences[0].limits.lower < 0.03
