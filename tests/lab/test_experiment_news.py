"""The simulated news site: the same requests for everybody, clicks that come late, and who is better at it."""

from itertools import islice

import numpy as np

from counts import repetitions
from onepass.lab import find, report, run, select
from onepass.lab.news import delays, late_conversions
from onepass.lab.news.simulator import LEAST, MOST, STOCK, Site
from onepass.lab.news.study import Server

NAMES = ("InteractionBandit", "Popularity", "Uniform")


def test_a_site_is_its_seed_and_offers_what_it_says():
    requests, again = (list(islice(Site(3, own=0.5).requests(), 700)) for _ in range(2))
    for one, other in zip(requests, again, strict=True):
        assert (one.user, one.articles, one.lot, one.delay) == (other.user, other.articles, other.lot, other.delay)
        assert np.array_equal(one.chances, other.chances)
        assert LEAST <= len(one.articles) == len(one.chances) <= MOST
        assert all(article["age"] >= 0.0 for article in one.articles.values())
    assert len({name for one in requests for name in one.articles}) == STOCK + 6  # one in a hundred requests is new


class Recorder:
    """Takes the first article and writes down when rewards come."""

    def __init__(self):
        self.decided, self.learned, self.now = {}, [], 0

    def decide(self, user, articles):
        self.now += 1
        return Decided(0, self.now)

    def learn(self, decision, reward):
        self.learned.append((decision.number, self.now, reward))

    def memory_usage(self):
        return 0


class Decided:
    def __init__(self, index, number):
        self.index, self.number = index, number


def test_every_decision_has_one_reward_which_is_learned_at_its_deadline():
    requests, server = list(islice(Site(0).requests(), 2000)), Server(Recorder())
    for request in requests:
        server.serve(request)
    waits = {reward: [] for reward in (0.0, 1.0)}
    for number, when, reward in server.policy.learned:
        clicked = requests[number - 1].lot < requests[number - 1].chances[0]
        assert reward == float(clicked and requests[number - 1].delay < 0.5)
        waits[reward].append(when - number)
    numbers = [number for number, _, _ in server.policy.learned]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 1900
    assert set(waits[0.0]) == set(waits[1.0]) == {41}  # half an hour at 2,000 requests a day
    assert 0.03 < len(waits[1.0]) / len(numbers) < 0.15


def test_crossing_users_with_articles_beats_popularity_which_beats_any_article(tmp_path):
    study = find("news")
    results = run(study, policies=select(study, NAMES), seeds=1, rounds=repetitions(3000, 20_000), quiet=True)
    rates = {row["policy"]: row["click_rate"] for row in results.rows}
    assert rates["InteractionBandit"] > 1.15 * rates["Popularity"] > 1.15 * 1.1 * rates["Uniform"]
    assert "click rate" in report.keep(results, tmp_path)
    assert (tmp_path / report.PICTURE).is_file()


def test_clicks_that_come_minutes_or_hours_late_cost_little_for_every_kind_of_bandit():
    study, rounds, seeds = delays.STUDY, repetitions(4_000, 40_000), repetitions(1, 2)
    waits = [delays.NO_DELAY, "5 minutes", "2 hours"]
    recipes = repetitions(("InteractionBandit", "LinTS"), tuple(delays.BANDITS))
    labels = [f"{recipe}, {wait}" for recipe in recipes for wait in waits]
    results = run(study, policies=select(study, labels), seeds=seeds, rounds=rounds, quiet=True)
    late = {label: np.mean([row["last_half"] for row in results.rows if row["policy"] == label]) for label in labels}
    for recipe in recipes:
        without, *others = (late[f"{recipe}, {wait}"] for wait in waits)
        assert min(others) >= repetitions(0.75, 0.9) * without, late  # two days, or twenty
    table = {line["policy"]: line["of no delay"] for line in delays.lines(results.rows)}
    assert table[f"{recipes[0]}, {delays.NO_DELAY}"] == "1.000"
    assert float(table["LinTS, 2 hours"]) == round(late["LinTS, 2 hours"] / late[f"LinTS, {delays.NO_DELAY}"], 3)


def test_conversions_that_come_days_late_are_learned_better_by_censored_rewards_than_by_any_wait():
    study = late_conversions.STUDY
    labels = [late_conversions.CENSORED, "wait an hour", "wait a week", late_conversions.NO_DELAY]
    results = run(study, policies=select(study, labels), seeds=1, rounds=repetitions(600, 20_000), quiet=True)
    rates = {row["policy"]: row["click_rate"] for row in results.rows}
    table = {line["policy"]: line["of no delay"] for line in late_conversions.lines(results.rows)}
    assert table[late_conversions.NO_DELAY] == "1.000"
    if repetitions(0, 1):  # in seven hours there is little to learn from
        assert rates["censored"] > 1.3 * max(rates["wait an hour"], rates["wait a week"])
        assert rates["censored"] > 0.85 * rates[late_conversions.NO_DELAY]
