"""The oracle of late conversions: its terms are those of the site, and it learns in all three ways."""

from itertools import islice

import numpy as np
import pytest
from scipy.special import expit

from late_oracle import DIM, FIRST, HOURS, WAYS, Learner, clicks, law, terms
from onepass.lab.news.late_conversions import STUDY, true_law
from onepass.lab.news.simulator import BASE


def site_theta(site):
    """True weights of the oracle's terms."""
    parts = {
        "base": BASE, "country": site.country, "topic": site.topic, "author": site.author,
        "country x topic": site.country_topic, "device x topic": site.device_topic,
        "country x author": site.country_author, "age x topic": site.age_topic, "interest": site.interest,
        "days": -HOURS / 50.0,
    }  # fmt: skip
    assert list(parts) == list(FIRST)
    return np.concatenate([np.ravel(part) for part in parts.values()])


def test_terms_have_the_chances_of_the_site():
    site, found = STUDY.site(3), 0
    for request in islice(site.requests(), 60):
        if request.user["age"] not in (None, 16, 85):  # younger and older ones are known as these
            places, values = terms(request)
            odds = (site_theta(site)[places] * values).sum(axis=1)
            np.testing.assert_allclose(expit(odds), request.chances, rtol=0.05)  # the oracle rounds nothing, ages do
            found += 1
    assert found > 30


def test_the_law_is_that_of_the_study():
    ages = np.array(true_law().ages)
    known = law(ages / 3600.0) / law(168.0)
    np.testing.assert_allclose(true_law().cdf(ages), known, atol=0.01)


@pytest.mark.parametrize("way", WAYS)
def test_a_learner_finds_the_weights_it_is_told(way):
    site = STUDY.site(3)
    learner, before = Learner(way, 3), 0.0
    for request in islice(site.requests(), 200):
        learner.serve(request, *terms(request))
        before = request.hour
    learner.fit(before + 1e6)  # all is known
    assert learner.theta.shape == (DIM,)
    twin = Learner("now", 3)
    twin.places, twin.values, twin.log = learner.places, learner.values, learner.log
    for _ in range(3):
        twin.fit(before + 1e6)
        learner.fit(before + 1e6)
    if way != "law":  # where conversions after a week are missing
        np.testing.assert_allclose(learner.theta, twin.theta, atol=1e-3)
    assert np.abs(learner.theta - twin.theta).max() < 0.2


def test_shares_are_printed_for_all_ways():
    found = clicks(3, rounds=30)
    assert list(found) == [*WAYS, "best", "uniform"]
    assert found["best"] >= max(found[way] for way in WAYS) > 0.0
