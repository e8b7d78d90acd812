"""The routing strategy of LiteLLM, with the real package and its mock responses: no network."""

import asyncio
import time

import pytest

import onepass as op
from patience import PATIENCE, until

litellm = pytest.importorskip("litellm", reason="litellm needs another python-dateutil than the pinned one")

from litellm.types.router import Deployment, LiteLLM_Params  # noqa: E402

from onepass.adapters.litellm import BanditRouting, prompt_record  # noqa: E402

# LiteLLM warns of its own types and of calls that it makes itself
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

CODE, PROSE = "```def f(): return {}```", "Tell me about the sea"
GOOD = {CODE: "strong", PROSE: "cheap"}


def deployment(id, answer=None):
    params = {"model": f"openai/{id}", "api_key": "none", "mock_response": answer or id}
    return {"model_name": "chat", "litellm_params": params, "model_info": {"id": id}}


def is_right(call, response):
    return float(response.choices[0].message.content == GOOD[call["messages"][0]["content"]])


def ask(router, text, **metadata):
    return router.completion(model="chat", messages=[{"role": "user", "content": text}], metadata=metadata)


@pytest.fixture
def make():
    installed = []

    def make(*ids, retries=0, **options):
        router = litellm.Router(model_list=[deployment(id) for id in ids], num_retries=retries)
        features = lambda messages: [1.0, prompt_record(messages)["code"] > 0]  # noqa: E731
        bandit = op.LinUCB(dim=2, model="disjoint", exploration=0.5)
        routing = BanditRouting(router, bandit, **{"context": features, **options})
        routing.install()
        installed.append(routing)
        return router, routing

    yield make
    for routing in installed:
        routing.uninstall()


def test_the_callback_teaches_which_prompt_needs_which_model(make):
    router, routing = make("cheap", "strong", reward=is_right)
    for turn in range(20):
        ask(router, (CODE, PROSE)[turn % 2])
        until(lambda seen=turn + 1: routing.bandit.n_learned == seen)
    for text, good in GOOD.items():
        assert ask(router, text).choices[0].message.content == good


def test_asynchronous_calls_are_decided_and_learned(make):
    router, routing = make("cheap", "strong", reward=is_right)

    async def play():
        await router.acompletion(model="chat", messages=[{"role": "user", "content": CODE}])
        end = time.monotonic() + PATIENCE
        while not routing.bandit.n_learned and time.monotonic() < end:
            await asyncio.sleep(0.05)

    asyncio.run(play())
    assert routing.bandit.n_learned == 1


def test_rewards_that_come_later_are_learned_by_the_id_that_the_caller_gave(make):
    router, routing = make("cheap", "strong")
    answer = ask(router, CODE, decision_id="ticket 7").choices[0].message.content
    with pytest.raises(ValueError, match=r"finite|reward"):
        routing.learn("ticket 7", float("nan"))
    routing.learn("ticket 7", 0.3)
    assert routing.bandit.arms == (answer,)
    with pytest.raises(KeyError):
        routing.learn("ticket 7", 0.3)


def test_models_come_and_go_with_the_deployments_of_the_router(make):
    router, routing = make("cheap", "strong")
    new = Deployment(
        model_name="chat",
        litellm_params=LiteLLM_Params(model="openai/new", api_key="none", mock_response="new"),
        model_info={"id": "new"},
    )
    for id in ("cheap", "strong"):
        routing.bandit.learn([1.0, 0.0], -1.0, id)
    router.add_deployment(new)
    assert ask(router, PROSE, decision_id="a").choices[0].message.content == "new"
    router.delete_deployment(id="new")
    assert ask(router, PROSE, decision_id="b").choices[0].message.content in ("cheap", "strong")
    assert set(routing.bandit.arms) == {"cheap", "strong"}
    routing.learn("a", 1.0)
    assert "new" in routing.bandit.arms  # what was learned stays, until remove_arm
    routing.bandit.remove_arm("new")


def test_failures_are_learned_and_a_retry_asks_another_deployment(make):
    router, routing = make("cheap", "strong", retries=1)
    with pytest.raises(litellm.exceptions.InternalServerError):
        router.completion(model="chat", messages=[{"role": "user", "content": PROSE}], mock_response=Exception("down"))
    until(lambda: routing.bandit.n_learned >= 1)
    call = {"previous_models": [{"deployment_id": "cheap"}]}
    chosen = routing.get_available_deployment(
        "chat", [{"role": "user", "content": PROSE}], request_kwargs={"metadata": call}
    )
    assert chosen["model_info"]["id"] == "strong"


@pytest.mark.parametrize("failure_reward", [0.0, None])
def test_the_reward_of_a_retried_call_is_that_of_its_last_deployment(make, failure_reward):
    _, routing = make("cheap", "strong", failure_reward=failure_reward)
    messages, metadata = [{"role": "user", "content": PROSE}], {"decision_id": "ticket 7"}
    first = routing.get_available_deployment("chat", messages, request_kwargs={"metadata": metadata})
    failed = {"litellm_params": {"metadata": dict(metadata), "model_info": first["model_info"]}}
    routing.log_failure_event(failed, None, None, None)
    metadata["previous_models"] = [{"deployment_id": first["model_info"]["id"]}]
    second = routing.get_available_deployment("chat", messages, request_kwargs={"metadata": metadata})
    assert metadata["decision_id"] == "ticket 7"
    routing.log_failure_event(failed, None, None, None)  # reported twice, or late
    routing.learn("ticket 7", 1.0)
    assert routing.bandit.model.rows_of(second["model_info"]["id"]) == 1
    assert routing.bandit.n_learned == (1 if failure_reward is None else 2)
    with pytest.raises(KeyError):
        routing.learn("ticket 7", 1.0)


def test_a_single_deployment_and_a_named_one_ask_no_bandit_and_unknown_groups_are_refused(make):
    router, routing = make("only")
    assert ask(router, PROSE).choices[0].message.content == "only"
    assert routing.get_available_deployment("only", specific_deployment=True)["model_info"]["id"] == "only"
    with pytest.raises(ValueError, match="model must name a group"):
        routing.get_available_deployment("nothing")
    assert not routing._pending


def test_decisions_that_wait_are_bounded(make):
    _, routing = make("cheap", "strong", pending_limit=2)
    for _ in range(5):
        routing.get_available_deployment("chat", [{"role": "user", "content": PROSE}], request_kwargs={})
    assert len(routing._pending) == 2


def test_a_prompt_of_parts_is_described_by_its_texts():
    parts = [{"type": "text", "text": "Is 12 odd?"}, {"type": "image_url", "image_url": {"url": "x"}}]
    record = prompt_record([{"role": "user", "content": parts}])
    assert (record["characters"], record["digits"], record["questions"]) == (10.0, 2.0, 1.0)


def test_bandits_without_named_arms_are_refused():
    with pytest.raises(ValueError, match="bandit must know arms by name"):
        BanditRouting(litellm.Router(model_list=[]), op.LinUCB(dim=2))
