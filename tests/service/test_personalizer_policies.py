"""Learning settings of Vowpal Wabbit, features, times: what they become here, without a service."""

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onepass.adapters.vowpal_wabbit import IGNORED_FLAGS, REFUSED_FLAGS, USED_FLAGS, exploration_from_arguments
from onepass.features.flatten import flatten_record
from onepass.foundation.registry import build
from onepass.service.crossed_features import merge_features
from onepass.service.personalizer.policies import (
    exploration_share,
    policy_json,
    remove_policy,
    set_exploration_share,
    set_policy,
)
from onepass.service.personalizer.ranking import reinsert_excluded
from onepass.service.personalizer.times import format_duration, format_time, parse_duration, parse_time
from onepass.service.settings import parse_settings

TRANSLATED = {
    "--cb_explore_adf": {"kind": "Greedy", "uniform_share": 0.05},
    "--cb_explore_adf --epsilon 0.2 --power_t 0 -l 0.001 --cb_type mtr -q ::": {"kind": "Greedy", "uniform_share": 0.2},
    "--cb_explore_adf --epsilon=0.1 --interactions ab": {"kind": "Greedy", "uniform_share": 0.1},
    "--cb_explore_adf --squarecb --gamma_scale 30": {
        "kind": "InverseGap", "scale": 30.0, "uniform_share": 0.001, "exploration": None,
    },
    "--cb_explore_adf --squarecb --elim": {"kind": "InverseGap", "scale": 10.0, "uniform_share": 0.001},
    "--cb_explore_adf --softmax --lambda 5 --epsilon 0.01": {
        "kind": "Softmax", "temperature": 0.2, "uniform_share": 0.01,
    },
    "--cb_explore_adf --bag 7": {"kind": "Thompson", "exploration": 0.5, "draws": 7, "uniform_share": 0.001},
    "--cb_explore_adf --regcbopt": {"kind": "OptimisticGap", "uniform_share": 0.001},
    'onepass {"kind": "Thompson", "draws": 5}': {"kind": "Thompson", "draws": 5},
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "found"), TRANSLATED.items())
def test_arguments_of_vowpal_wabbit_become_an_exploration(arguments, found):
    assert exploration_from_arguments(arguments) == found
    build(found)


@pytest.mark.parametrize("flag", REFUSED_FLAGS)
def test_a_flag_without_a_counterpart_is_refused_with_one_sentence(flag):
    with pytest.raises(ValueError, match=f"^{flag} is refused: [^.]+$"):
        exploration_from_arguments(f"--cb_explore_adf {flag} 3")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("", "how to explore"),
        ("--unheard_of 3", "is not known here"),
        ("--cb_explore_adf --epsilon", "followed by a value"),
        ("--cb_explore_adf --epsilon much", "followed by a finite number"),
        ("--cb_explore_adf --bag inf", "followed by a finite number"),
        ("--cb_explore_adf --epsilon 1.5", "uniform_share"),
        ("--squarecb --softmax", "two ways"),
        ("--cb_explore_adf --lambda 3", "belongs to --softmax"),
        ("--cb_explore_adf --cb_type dr", "mtr"),
        ("--cb_explore_adf --interactions abc", "pairs"),
        ("--squarecb --gamma_exponent 0.3", "gamma_exponent"),
        ("--softmax --lambda 0", "above 0"),
        ("--bag 0", "--bag must be followed by a number from 1 to 10,000"),
        ("--bag 1e9", "--bag must be followed by a number from 1 to 10,000"),
        ('onepass {"kind": "Thompson", "draws": 1000000000}', "draws must be at most 10,000"),
        ("--cb_explore_adf 'half", "closing quotation"),
        ("onepass {", "delimiter|property name"),
        ('onepass {"kind": "Records"}', "exploration"),
        ('onepass {"kind": "Thompson", "deep": 1}', "cannot be built from its arguments"),
        ("--cb_explore_adf " + "-q :: " * 300, "1024"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments, says):
    with pytest.raises(ValueError, match=says):
        exploration_from_arguments(arguments)


@given(st.lists(st.sampled_from(sorted(IGNORED_FLAGS)), max_size=5))
def test_flags_that_set_steps_and_hashes_change_nothing(flags):
    rest = " ".join(f"{flag} 3" if IGNORED_FLAGS[flag] else flag for flag in flags)
    assert exploration_from_arguments(f"--cb_explore_adf --epsilon 0.3 {rest}") == {
        "kind": "Greedy",
        "uniform_share": 0.3,
    }


def rules(**model):
    return parse_settings(
        {"name": "shop", "model": {"recipe": "InteractionBandit", **model}, "reward": {"range": [-1.0, 1.0]}}
    )


def test_the_policy_of_a_loop_can_be_read_sent_back_and_taken_away():
    settings = rules()
    said = policy_json(settings)
    assert exploration_from_arguments(said["arguments"]) == {
        "kind": "OptimisticGap", "exploration": 0.8, "scale": 30.0, "uniform_share": 0.001,
    }  # fmt: skip
    new = parse_settings(set_policy(settings, "app1", "--cb_explore_adf --bag 3").to_dict())
    assert policy_json(new) == {"name": "app1", "arguments": "--cb_explore_adf --bag 3"}
    assert new.model.arguments["exploration"]["kind"] == "Thompson"
    assert remove_policy(new) == settings
    with pytest.raises(ValueError, match="256"):
        set_policy(settings, "x" * 257, said["arguments"])


def test_the_exploration_percentage_is_the_floor_of_the_exploration():
    settings = rules(arguments={"exploration": {"kind": "EpsilonGreedy", "epsilon": 0.2}})
    assert (exploration_share(rules()), exploration_share(settings)) == (0.001, 0.2)
    assert set_exploration_share(settings, 0.2) is settings
    assert exploration_share(parse_settings(set_exploration_share(settings, 0.5).to_dict())) == 0.5
    assert exploration_share(parse_settings(set_exploration_share(rules(), 0.5).to_dict())) == 0.5
    with pytest.raises(ValueError, match="uniform_share"):
        set_exploration_share(rules(), 1.5)


def test_features_of_a_list_become_one_record():
    found = merge_features([
        {"hour": 9, "_id": "x", "likes": "sport"}, {"likes": "food"}, {"device": {"os": "x", "_n": 1}},
        {"device": {"ram": 8}}, {"hour": 1}, {"list": [{"a": 1}, {"b": 2}]}, {"flag": True}, {"flag": True},
    ])  # fmt: skip
    assert found == {
        "hour": 10, "likes": ["sport", "food"], "device": {"os": "x", "ram": 8}, "list": {"a": 1, "b": 2}, "flag": True,
    }  # fmt: skip
    assert merge_features(None) == {}
    with pytest.raises(ValueError, match="different kinds"):
        merge_features([{"x": {"a": 1}}, {"x": 1}])


FEATURES = st.dictionaries(
    st.text(min_size=1, max_size=3), st.one_of(st.text(max_size=3), st.integers(-5, 5), st.booleans(), st.none()),
    max_size=4,
)  # fmt: skip


@given(FEATURES)
def test_a_single_record_of_features_stays_itself_but_for_underscores(features):
    kept = {key: value for key, value in features.items() if not key.startswith("_")}
    assert merge_features([features]) == kept
    assert flatten_record(merge_features([features])) == flatten_record(kept)


@given(st.data())
def test_excluded_actions_keep_their_place_and_are_never_first(data):
    names = [f"{j}" for j in range(data.draw(st.integers(1, 6)))]
    excluded = set(data.draw(st.lists(st.sampled_from(names), max_size=len(names) - 1, unique=True)))
    ranking = [{"id": name} for name in data.draw(st.permutations(names)) if name not in excluded]
    out = reinsert_excluded([*ranking, *({"id": name} for name in excluded)], names, excluded)
    assert sorted(one["id"] for one in out) == sorted(names)
    assert out[0]["id"] not in excluded
    assert [one for one in out if one["id"] not in excluded] == ranking


@given(st.integers(1, 3_000_000))
def test_durations_come_back_as_they_were(tenths):
    assert parse_duration(format_duration(tenths / 10)) == pytest.approx(tenths / 10, abs=1e-6)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("PT10M", 600.0), ("PT5S", 5.0), ("P2D", 172800.0), ("P1DT1H", 90000.0), ("PT0.5S", 0.5), ("00:10:00", 600.0),
     ("1.00:00:30", 86430.0)],
)  # fmt: skip
def test_durations_are_read_as_clients_write_them(text, seconds):
    assert parse_duration(text) == seconds
    assert format_duration(600.0) == "PT10M"
    for wrong in ("", "P", "PT", "10M", "soon", "P1Y"):
        with pytest.raises(ValueError, match="like PT10M"):
            parse_duration(wrong)


@pytest.mark.parametrize("text", ["soon", "9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_times_that_no_record_has_are_refused(text):
    with pytest.raises(ValueError, match="a time must be like"):
        parse_time(text)


@given(st.integers(0, 4_000_000_000_000_000))
def test_times_come_back_as_they_were(micros):
    assert parse_time(format_time(micros)) == micros
    assert json.loads(msgspec.json.encode(format_time(micros))).endswith("Z")


def test_the_page_for_people_who_come_from_vowpal_wabbit_names_every_flag():
    page = (Path(__file__).parents[2] / "docs" / "from_vowpal_wabbit.md").read_text()
    assert {
        flag
        for flag in {**IGNORED_FLAGS, **USED_FLAGS, **REFUSED_FLAGS}
        if f"`{flag}" not in page and f" {flag}" not in page
    } == set()
