"""LiteLLM: a bandit chooses the deployment of every call, and learns from the callback.

    routing = BanditRouting(router, onepass.ContextualBandit(), reward=lambda call, response: quality(response))
    routing.install()
    router.completion(model="chat", messages=messages)

LiteLLM's router calls a `CustomRoutingStrategyBase` before each attempt, and a `CustomLogger` after it. `BanditRouting`
is both. The arms are the deployments of the requested model group, by `model_info["id"]`, as the router has them at
that moment: a deployment that is added is offered with the next call, one that is deleted is not offered any more.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Any
from uuid import uuid4

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.router import CustomRoutingStrategyBase

from onepass.bandit.bandit import Bandit
from onepass.bandit.decision import Decision
from onepass.foundation import check
from onepass.foundation.check import quote

DECISION_ID = "decision_id"  # in the metadata of a call: given by the caller, or written by the strategy


def prompt_record(messages: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Describe a prompt by its form, without a model: lengths, and signs of code, numbers and questions.

    Parameters
    ----------
    messages : sequence of dict
        Messages of a call, each with "role" and "content".

    Returns
    -------
    dict of str to float
        A record of six counts: "messages", "characters", "lines", "digits", "questions" (question marks) and "code"
        (signs of code). It serves as a context of `ContextualBandit`.

    Examples
    --------
    >>> prompt_record([{"role": "user", "content": "What is 2 + 3?"}])["questions"]
    1.0
    """
    texts = [part for message in messages for part in _texts(message.get("content"))]
    text = "\n".join(texts)
    return {
        "messages": float(len(messages)),
        "characters": float(len(text)),
        "lines": float(text.count("\n") + 1),
        "digits": float(sum(map(str.isdigit, text))),
        "questions": float(text.count("?")),
        "code": float(text.count("```") + text.count("def ") + text.count("{")),
    }


def _texts(content: Any) -> list[str]:
    """Return the texts of a message, whose content is a string or a list of parts."""
    if isinstance(content, str):
        return [content]
    parts = content if isinstance(content, list) else []
    return [part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str)]


class BanditRouting(CustomRoutingStrategyBase, CustomLogger):
    """Routing strategy of a LiteLLM router that asks a bandit, and callback that teaches it.

    Parameters
    ----------
    router : litellm.Router
        The router whose deployments are chosen.
    bandit : Bandit
        A bandit with named arms, such as ``onepass.ContextualBandit()``. It may have learned before.
    context : function, default prompt_record
        Maps the messages of a call to a context of the bandit, such as the embedding of the last message.
    reward : function, default None
        Maps LiteLLM's description of a call (a dict with "response_cost", "messages", "litellm_params" and others) and
        the response to the reward, or to None if it is known later. None leaves all rewards to `learn`.
    failure_reward : float, default 0.0
        Reward of an attempt that raised an error. None learns nothing from failures.
    pending_limit : int, default 100_000
        Number of decisions kept until their reward comes, at least 1. The oldest are forgotten first.

    Raises
    ------
    ValueError
        If an argument is out of range.

    Notes
    -----
    The bandit is not asked about a model group with one deployment. A retry leaves out the deployments that failed,
    unless all have.
    """

    def __init__(
        self,
        router: litellm.Router,
        bandit: Bandit,
        *,
        context: Callable[[Sequence[Mapping[str, Any]]], Any] = prompt_record,
        reward: Callable[[dict[str, Any], Any], float | None] | None = None,
        failure_reward: float | None = 0.0,
        pending_limit: int = 100_000,
    ) -> None:
        super().__init__()
        if not bandit.model.has_named_arms:
            raise ValueError(f"bandit must know arms by name, got {quote(bandit)}")
        self.router, self.bandit, self.context, self.reward = router, bandit, context, reward
        self.failure_reward = None if failure_reward is None else check.real("failure_reward", failure_reward)
        self.pending_limit: int = check.integer("pending_limit", pending_limit, 1)
        # By the id of a call: the decision of each of its attempts by arm, the last one at the end, None once learned.
        self._pending: OrderedDict[str, dict[Any, Decision | None]] = OrderedDict()
        self._lock = Lock()

    def install(self) -> None:
        """Register the strategy with the router, and the callback with LiteLLM."""
        register = getattr(self.router, "register_plugin", None) or self.router.set_custom_routing_strategy
        register(self)
        if self not in litellm.callbacks:
            litellm.callbacks.append(self)

    def uninstall(self) -> None:
        """Remove the callback. The router keeps its strategy until it gets another one."""
        for listed in (
            litellm.callbacks, litellm.success_callback, litellm.failure_callback,
            litellm._async_success_callback, litellm._async_failure_callback, litellm.input_callback,
        ):  # fmt: skip
            listed[:] = [each for each in listed if each is not self]

    # ---- before the call ----

    def get_available_deployment(
        self,
        model: str,
        messages: Any = None,
        input: Any = None,
        specific_deployment: bool | None = False,
        request_kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Choose a deployment of the model group, as the router asks for it before each attempt.

        Parameters
        ----------
        model : str
            Name of the model group, or id of a deployment.
        messages : list of dict, default None
            Messages of the call.
        input : str or list, default None
            Input of an embedding call; used as one message if there are no messages.
        specific_deployment : bool, default False
            True if `model` names a deployment.
        request_kwargs : dict, default None
            Arguments of the call. The id of the decision is written into their metadata.

        Returns
        -------
        dict
            The deployment.

        Raises
        ------
        ValueError
            If the router has no such model group.
        """
        every = self._deployments()
        offered = {each["model_info"]["id"]: each for each in every if each["model_name"] == model}
        named = [each for each in every if model in (each["model_info"]["id"], each["litellm_params"]["model"])]
        if named and (specific_deployment or not offered):
            return named[0]
        if not offered:
            raise ValueError(f"model must name a group of the router, got {quote(model)}")
        call = {} if request_kwargs is None else request_kwargs
        metadata = call.setdefault("litellm_metadata" if "litellm_metadata" in call else "metadata", {})
        if metadata is None:
            metadata = call["metadata"] = {}
        failed = {each.get("deployment_id") for each in metadata.get("previous_models") or ()}
        names = [name for name in offered if name not in failed] or list(offered)
        if len(names) == 1 and not failed:
            return offered[names[0]]
        wanted = metadata.get(DECISION_ID)
        with self._lock:
            is_known = isinstance(wanted, str) and (bool(failed) or wanted not in self._pending)
        id = wanted if is_known else uuid4().hex
        own = self.bandit.decide(self.context(_messages(messages, input)), names, id=uuid4().hex if failed else id)
        with self._lock:
            each = self._pending.setdefault(id, {})
            each.pop(own.arm, None)
            each[own.arm] = own
            while len(self._pending) > self.pending_limit:
                self._pending.popitem(last=False)
        metadata[DECISION_ID] = id
        return offered[own.arm]

    async def async_get_available_deployment(self, *args: Any, **options: Any) -> Any:
        """Choose a deployment as `get_available_deployment` does, for `acompletion` and other asynchronous calls.

        Parameters
        ----------
        *args : Any
            Arguments of `get_available_deployment`.
        **options : Any
            Keyword arguments of `get_available_deployment`.

        Returns
        -------
        dict
            The deployment.
        """
        return self.get_available_deployment(*args, **options)

    def _deployments(self) -> list[Any]:
        """Return all deployments that the router has now."""
        registry = getattr(self.router, "registry", None)
        return list(self.router.model_list if registry is None else registry().all())

    # ---- after the call ----

    def learn(self, id: str, reward: float) -> None:
        """Learn the reward of a call by the id of its decision. After retries it is the last attempt's reward.

        Parameters
        ----------
        id : str
            The id that the caller gave as ``metadata={"decision_id": id}``.
        reward : float
            The reward, the larger the better, in any unit.

        Raises
        ------
        KeyError
            If no decision with this id waits for a reward.
        ValueError
            If the reward is not finite. The decision waits on.
        """
        with self._lock:
            each = self._pending[id]
            decision = each[next(reversed(each))]
        if decision is None:
            raise KeyError(id)
        self.bandit.learn(decision, reward)
        with self._lock:
            self._pending.pop(id, None)

    def _learn_logged(self, kwargs: dict[str, Any], reward: Callable[[], float | None]) -> None:
        """Learn the result of the function `reward`, unless it is None.

        `kwargs` is LiteLLM's description of the call. Nothing is learned if no decision of the call chose the
        deployment of this attempt.
        """
        params = kwargs.get("litellm_params") or {}
        metadata = params.get("litellm_metadata") or params.get("metadata") or {}
        id, info = metadata.get(DECISION_ID), params.get("model_info") or metadata.get("model_info") or {}
        if not isinstance(id, str):
            return
        with self._lock:
            each = self._pending.get(id, {})
            decision = each.get(info.get("id"))
        if decision is None:
            return
        value = reward()
        if value is not None:
            self.bandit.learn(decision, value)
            with self._lock:
                each[decision.arm] = None
                if not any(each.values()):
                    self._pending.pop(id, None)

    def log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn the reward of a call that has returned.

        Parameters
        ----------
        kwargs : dict
            LiteLLM's description of the call.
        response_obj : ModelResponse
            The response.
        start_time : datetime
            Time at which the call began.
        end_time : datetime
            Time at which it returned.
        """
        if self.reward is not None:
            given = self.reward
            self._learn_logged(kwargs, lambda: given(kwargs, response_obj))

    def log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn `failure_reward` of a call that has raised an error.

        Parameters
        ----------
        kwargs : dict
            LiteLLM's description of the call.
        response_obj : Any
            None, or the error.
        start_time : datetime
            Time at which the call began.
        end_time : datetime
            Time at which it failed.
        """
        self._learn_logged(kwargs, lambda: self.failure_reward)

    async def async_log_success_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn the reward of an asynchronous call, as `log_success_event` does.

        Parameters
        ----------
        kwargs : dict
            LiteLLM's description of the call.
        response_obj : ModelResponse
            The response.
        start_time : datetime
            Time at which the call began.
        end_time : datetime
            Time at which it returned.
        """
        self.log_success_event(kwargs, response_obj, start_time, end_time)

    async def async_log_failure_event(self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Learn `failure_reward` of an asynchronous call, as `log_failure_event` does.

        Parameters
        ----------
        kwargs : dict
            LiteLLM's description of the call.
        response_obj : Any
            None, or the error.
        start_time : datetime
            Time at which the call began.
        end_time : datetime
            Time at which it failed.
        """
        self.log_failure_event(kwargs, response_obj, start_time, end_time)


def _messages(messages: Any, input: Any) -> Sequence[Mapping[str, Any]]:
    """Return the messages of a call; the input of an embedding call as one message of the user."""
    if messages:
        return list(messages)
    texts = [input] if isinstance(input, str) else [each for each in input or () if isinstance(each, str)]
    return [{"role": "user", "content": "\n".join(texts)}]
