"""Settings of a loop: what is wrong is said, all of it, in a sentence each; what may change and what must not."""

from inspect import signature

import pytest

import onepass as op
from onepass import recipes
from onepass.service.keys import Keys, make_key
from onepass.service.messages import ApiError
from onepass.service.server import check_keys
from onepass.service.settings import OF_KERNELS, RECOMMENDED, diff_settings, make_bandit, parse_settings, read_file
from service_process import write_settings

RIGHT = {"name": "a", "features": {"context": ["x", "y"], "arms": 1}}

WRONG = {
    "name must be": {"name": "A b"},
    "features.context must be": {"features": {"context": -1}},
    "features.arms must name every number once": {"features": {"context": 1, "arms": ["x", "x"]}},
    "features must have a number at least": {"features": {"context": 0}},
    "features.records must be false": {"features": {"records": True, "context": 2}},
    "features.arms must have a number at least": {"features": {"context": 2}, "model": {"recipe": "OFUL"}},
    "arms must name every arm once": {"arms": ["a", "a"]},
    "arms must be at most limits.arms": {"arms": ["a", "b"], "limits": {"arms": 1}},
    "exploring must be from 0 to 1": {"mode": "logging", "exploring": 1.5},
    "exploring must be 0 where": {"exploring": 0.1},
    "reward.wait must be above 0": {"reward": {"wait": 0.0}},
    "reward.range must be the least": {"reward": {"range": [1.0, 0.0]}},
    "reward.range must be .* within": {"reward": {"range": [0.0, float("inf")]}},
    r"reward.range must be .* within 1e\+30": {"reward": {"range": [-1e31, 1e31]}},
    "reward.default must be in reward.range": {"reward": {"default": -1.0}},
    'reward.default must be a number, or "none"': {"reward": {"default": "nothing"}},
    "operation.checkpoint must be .* above 0, got 0": {"operation": {"checkpoint": 0.0}},
    "operation.checkpoint must be a finite number": {"operation": {"checkpoint": float("inf")}},
    "operation.publish must be .* at least 0, got -1": {"operation": {"publish": -1.0}},
    "operation.publish must be a finite number": {"operation": {"publish": float("inf")}},
    "arms must have names of at most 256 characters": {"arms": ["a", "b" * 257]},
    "arms must have names .* none of them NUL": {"arms": ["a", "b\0"]},
    "model.recipe must name a function or class .* got 'collections:OrderedDict'": {
        "model": {"recipe": "collections:OrderedDict"}
    },
    "model.recipe must return a bandit, but 'collections:Counter' returns Counter": {
        "model": {"recipe": "collections:Counter"}
    },
    "limits.body must be at least 1": {"limits": {"body": 0}},
    "limits.id must be at most 256": {"limits": {"id": 257}},
    "model.recipe must be one of": {"model": {"recipe": "Nothing"}},
    "model.arguments must leave out dim": {"model": {"arguments": {"dim": 3}}},
    "model.arguments has 'beta'": {"model": {"arguments": {"beta": 3}}},
    "model.arguments: reg must be": {"model": {"arguments": {"reg": -1.0}}},
    "is not a registered class": {"model": {"arguments": {"exploration": {"kind": "os.system"}}}},
    "share must be above 0": {"share": 1.0},
    "promotion.automatic must be false": {"promotion": {"automatic": True}},
    "promotion.level must be": {"promotion": {"level": 1.0}},
    "settings do not fit: .*aggregation": {"reward": {"aggregation": "last"}},
    "settings do not fit: .*colour": {"colour": "red"},
    "settings do not fit: .*wait": {"reward": {"wait": "long"}},
}


@pytest.mark.parametrize(("sentence", "part"), WRONG.items(), ids=WRONG)
def test_what_is_wrong_is_said_in_a_sentence(sentence, part):
    with pytest.raises(ValueError, match=sentence):
        parse_settings({**RIGHT, **part})


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(ValueError, match="name must be") as error:
        parse_settings({**RIGHT, "name": "", "exploring": 3.0, "reward": {"wait": -1.0, "default": 7.0}})
    assert len(str(error.value).splitlines()) == 5


def test_settings_go_through_plain_data_and_back():
    settings = parse_settings({**RIGHT, "model": {"recipe": "OFUL", "arguments": {"half_life": {"seconds": 60.0}}}})
    assert parse_settings(settings.to_dict()) == settings
    assert make_bandit(settings).needs_time
    assert diff_settings(settings, parse_settings({**settings.to_dict(), "exploring": 0.1, "mode": "logging"})) == [
        "mode",
        "exploring",
    ]


def test_a_file_that_is_wrong_is_named(tmp_path):
    path = write_settings(tmp_path, top="mode = 'sleeping'")
    with pytest.raises(ValueError, match=r"news\.toml: settings do not fit: .*mode"):
        read_file(path)
    with pytest.raises(ValueError, match="No such file"):
        read_file(tmp_path / "nothing.toml")


def test_a_key_may_do_what_its_roles_say_and_only_its_hash_is_kept(tmp_path):
    decide, lines = make_key(["decide"])
    admin, more = make_key(["admin"])
    assert decide not in lines
    settings, found = read_file(write_settings(tmp_path, keys=f"\n{lines}\n{more}\n"))
    keys = Keys(found)
    assert settings.name == "news"
    keys.require(decide, "decide")
    for role in ("decide", "reward", "read", "admin"):
        keys.require(admin, role)
    for key, status in ((decide, 403), (None, 401), (decide[:-1], 401)):
        with pytest.raises(ApiError) as error:
            keys.require(key, "reward")
        assert error.value.status == status


def test_without_keys_a_service_listens_on_this_machine_only():
    for host in ("127.0.0.1", "localhost", "::1"):
        check_keys(host, {"a": Keys()})
    for host in ("0.0.0.0", "::", "example.org", "10.0.0.1"):
        with pytest.raises(ValueError, match="has no keys"):
            check_keys(host, {"a": Keys()})
        check_keys(host, {"a": Keys([{"sha256": "0" * 64, "roles": ["read"]}])})
    with pytest.raises(ValueError, match="every loop must have keys where one has"):
        check_keys("127.0.0.1", {"a": Keys(), "b": Keys([{"sha256": "0" * 64, "roles": ["read"]}])})


@pytest.mark.parametrize("wrong", [{"sha256": "x", "roles": ["read"]}, {"sha256": "0" * 64, "roles": []},
                                   {"sha256": "0" * 64, "roles": ["root"]}, {"roles": ["read"]}])  # fmt: skip
def test_keys_that_are_none_are_refused(wrong):
    with pytest.raises(ValueError, match="keys"):
        Keys([wrong])


def test_every_recipe_makes_a_loop_by_its_name_and_explores_where_its_rule_allows():
    """But those that ask for the same arm several times, which decisions of people cannot be."""
    sizes = {"size": 2, "rank": 2, "error": 1.0}
    for name in recipes.__all__:
        if name not in ("MENU", "CRMM", "InteractionBandit", *OF_KERNELS):
            wanted = {} if name == RECOMMENDED else signature(getattr(recipes, name)).parameters
            given = {size: value for size, value in sizes.items() if size in wanted}
            bandit = make_bandit(parse_settings({**RIGHT, "model": {"recipe": name, "arguments": given}}))
            rule = op.OptimisticGap if name == RECOMMENDED else op.InverseGap
            assert isinstance(bandit.exploration, rule) == (name not in ("HeavyOFUL", "HvtUCB")), name


def test_the_recommended_bandit_serves_where_nothing_is_said():
    assert parse_settings(RIGHT).model.recipe == "ContextualBandit"
    assert isinstance(make_bandit(parse_settings(RIGHT)).model, op.model.AutoModel)


ROUTER = {"name": "router", "features": {"context": 2}, "arms": ["small", "large"]}
ACCOUNTING = {
    "outcomes.dollars.budget must be at least the price of the cheapest arm, 'small' at 0.2, else no arm fits": {
        "outcomes": {"dollars": {"prices": {"small": 0.2, "large": 5.0}, "budget": {"amount": 0.1}}}
    },
    "outcomes.dollars.prices must name arms of arms, got 'smal': did you mean 'small'": {
        "outcomes": {"dollars": {"prices": {"smal": 0.2}}}
    },
    "outcomes.dollars.prices.small must be": {"outcomes": {"dollars": {"prices": {"small": -1.0}}}},
    "outcomes.dollars.prices.large must be at most 1e+09 times the budget's amount": {
        "outcomes": {"dollars": {"prices": {"small": 0.2, "large": 1e10}, "budget": {"amount": 1.0}}}
    },
    "outcomes.dollars.budget: amount must be": {"outcomes": {"dollars": {"budget": {"amount": 0.0}}}},
    "outcomes.dollars.budget: zone must be a time zone": {
        "outcomes": {"dollars": {"budget": {"amount": 1.0, "per": "day", "zone": "Mars"}}}
    },
    "outcomes.dollars.budget: horizon must be": {"outcomes": {"dollars": {"budget": {"amount": 1.0, "horizon": 5}}}},
    "outcomes.dollars.default must be at least 0": {
        "outcomes": {"dollars": {"default": -1.0, "budget": {"amount": 1.0}}}
    },
    "outcomes.refund.guardrail must be left out without a baseline": {
        "outcomes": {"refund": {"guardrail": {"at_most": 1.0}}}
    },
    "outcomes.refund.guardrail: give one of at_most and at_least": {
        "baseline": {}, "outcomes": {"refund": {"guardrail": {}}}
    },
    "outcomes.refund.default must be a finite number up to 1e+30, got 1e+31": {
        "outcomes": {"refund": {"default": 1e31}}
    },
    "outcomes.refund.default must be a finite number up to 1e+30, got nan": {
        "outcomes": {"refund": {"default": float("nan")}}
    },
    "outcomes.refund.default must be a number, or": {"outcomes": {"refund": {"default": "nothing"}}},
    'none of them "reward"': {"outcomes": {"reward": {}}},
    "outcomes must be left out where model.recipe does not take them": {
        "outcomes": {"dollars": {}}, "model": {"recipe": "OFUL"}
    },
    "shares must be left out without outcomes": {"shares": {"least": 0.1}},
    "shares.least of all arms must be at most 1 together": {"outcomes": {"dollars": {}}, "shares": {"least": 0.6}},
    "shares.most of all arms must be at least 1 together": {"outcomes": {"dollars": {}}, "shares": {"most": 0.4}},
    "shares.arms must name arms of arms": {"outcomes": {"dollars": {}}, "shares": {"arms": {"huge": {}}}},
    "shares must have least and most of every arm, or arms": {
        "outcomes": {"dollars": {}}, "shares": {"most": 0.9, "arms": {"small": {}}}
    },
    "baseline.arm must name arms of arms": {"baseline": {"arm": "old"}},
    "baseline must have one of arm, field and file": {"baseline": {"arm": "small", "field": "now"}},
    "baseline.field must be left out where contexts are numbers": {"baseline": {"field": "now"}},
    "baseline: loss must be above 0 and below 1": {"baseline": {"loss": 1.0}},
    "baseline must be left out beside shares": {
        "baseline": {}, "outcomes": {"dollars": {}}, "shares": {"most": 0.6}
    },
    'mode must be "online" where there are budgets': {"baseline": {}, "mode": "canary"},
}  # fmt: skip


@pytest.mark.parametrize("sentence", ACCOUNTING)
def test_budgets_shares_and_baselines_that_do_not_fit_are_refused_with_a_sentence(sentence):
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        parse_settings({**ROUTER, **ACCOUNTING[sentence]})
    assert sentence in str(refused.value)
