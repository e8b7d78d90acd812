"""`load`: the inverse of every `save`. Only the classes named here are ever built."""

from pathlib import Path
from typing import Any, NamedTuple

from onepass.bandit.bandit import Bandit
from onepass.bandit.models import Disjoint, Hybrid
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.adaptive_huber import AdaptiveHuber
from onepass.estimator.estimator import Estimator
from onepass.estimator.median_of_means import MedianOfMeans
from onepass.estimator.one_pass_huber import OnePassHuber
from onepass.estimator.one_pass_median import OnePassMedian
from onepass.estimator.one_pass_truncation import OnePassTruncation
from onepass.estimator.online_newton import OnlineNewton
from onepass.estimator.ridge import Ridge
from onepass.estimator.truncated_ridge import TruncatedRidge
from onepass.exploration import UCB, EpsilonGreedy, Greedy, Theory, Thompson
from onepass.features.factors import OuterProduct
from onepass.features.kernels import kernel_from
from onepass.features.nystrom import Nystrom
from onepass.features.projection import GaussianProjection
from onepass.foundation import check, files
from onepass.foundation import state as states
from onepass.kernel.bkb import BKB
from onepass.kernel.gp_ucb import GPUCB
from onepass.kernel.kernel_bandit import KernelBandit
from onepass.kernel.posterior import consistent
from onepass.learner.bogd import BOGD
from onepass.learner.bpas import BPAS
from onepass.learner.fogd import FOGD
from onepass.learner.forks import FORKS
from onepass.learner.kernel_newton import KernelNewton
from onepass.learner.kogd import KOGD
from onepass.learner.learner import Held, Learner
from onepass.learner.nogd import NOGD
from onepass.learner.projectron import Projectron
from onepass.learner.pros_n_kons import PROSNKONS
from onepass.learner.rbp import RBP
from onepass.learner.skegd import SkeGD

DESIGNS: dict[str, Any] = {c.__name__: c for c in (Exact, FrequentDirections, Dyadic, ProjectorSplitting)}
ESTIMATORS: dict[str, Any] = {
    c.__name__: c
    for c in (
        Ridge,
        OnlineNewton,
        OnePassHuber,
        AdaptiveHuber,
        OnePassTruncation,
        TruncatedRidge,
        OnePassMedian,
        MedianOfMeans,
    )
}
RULES: dict[str, Any] = {c.__name__: c for c in (UCB, Thompson, Greedy, EpsilonGreedy)}

FEATURES: dict[str, Any] = {c.__name__: c for c in (GaussianProjection, OuterProduct, Nystrom)}
KERNEL_BANDITS: dict[str, Any] = {c.__name__: c for c in (GPUCB, BKB)}
LEARNERS: dict[str, Any] = {
    c.__name__: c for c in (RBP, BPAS, BOGD, Projectron, KOGD, FOGD, NOGD, SkeGD, FORKS, PROSNKONS, KernelNewton)
}
ESTIMATORS_OF_LEARNERS = ("OnlineKernelClassifier", "OnlineKernelRegressor")  # they need scikit-learn


def loadable(owner: Any) -> None:
    """Refuse what `load` could not build again: a class of your own is added to one of the tables above first."""
    parts: dict[str, list[Any]] = {"DESIGNS": [owner]}
    if isinstance(owner, KernelBandit):
        parts = {"KERNEL_BANDITS": [owner], "RULES": [] if owner.exploration is None else [owner.exploration]}
    if isinstance(owner, Learner):
        design = owner.params.get("design")
        parts = {"LEARNERS": [owner], "DESIGNS": [] if design is None else [design]}
    if isinstance(owner, Bandit):
        model = owner.estimator
        estimators = [model] if isinstance(model, Estimator) else [part for part in (model.shared, model.arms) if part]
        parts = {"ESTIMATORS": estimators, "DESIGNS": [e.design for e in estimators], "RULES": [owner.exploration]}
    tables = {"ESTIMATORS": ESTIMATORS, "DESIGNS": DESIGNS, "RULES": RULES, "KERNEL_BANDITS": KERNEL_BANDITS}
    tables["LEARNERS"] = LEARNERS
    for table, owned in parts.items():
        for part in owned:
            if type(part) not in tables[table].values():
                name = type(part).__name__
                raise ValueError(
                    f"{name} is not known to onepass.load; add it to onepass.loading.{table} before saving"
                )


def _built(family: dict[str, Any], params: dict[str, Any]) -> Any:
    rest = {k: v for k, v in params.items() if k != "kind"}
    for name in ("exploration", "theory"):
        if isinstance(rest.get(name), dict):
            rest[name] = Theory(**rest[name])
    if rest.get("design") is not None:
        rest["design"] = _built(DESIGNS, rest["design"])
    if "kernel" in rest:
        rest["kernel"] = kernel_from(rest["kernel"])
    return family[params["kind"]](**rest)


def _model(params: dict[str, Any]) -> Any:
    if params["kind"] in ESTIMATORS:
        return _built(ESTIMATORS, params)
    parts = {name: _built(ESTIMATORS, params[name]) for name in ("shared", "arms") if name in params}
    options = {"compact": params["compact"], "threads": params["threads"]}
    if params["kind"] == "Disjoint":
        return Disjoint(parts["arms"], **options)
    return {"Hybrid": Hybrid}[params["kind"]](**parts, **options)


def _bandit(params: dict[str, Any]) -> Bandit:
    features = params["features"]
    return Bandit(
        _model(params["estimator"]),
        _built(RULES, params["exploration"]),
        features=None if features is None else _built(FEATURES, features),
        seed=params["seed"],
        name=str(params["name"]),
    )


def _kernel_bandit(kind: str, params: dict[str, Any], extra: dict[str, Any], tensors: dict[str, Any]) -> KernelBandit:
    rest = {name: value for name, value in params.items() if name not in ("kernel", "exploration")}
    rule = params["exploration"]
    return KERNEL_BANDITS[kind](
        tensors["state.points"] if extra["fixed"] else None,
        kernel_from(params["kernel"]),
        exploration=None if rule is None else _built(RULES, rule),
        **rest,
    )


class Begun(NamedTuple):
    """A learner, or an estimator of learners, as it was before it learned; then what its file must look like."""

    owner: Any
    pattern: Learner
    learners: list[Learner]
    held: Held

    def fits(self, held: Held) -> bool:
        """Whether shapes and counters of a file fit together."""
        states = zip(self.learners, held.states, self.held.states, strict=True)
        return all(self.pattern.params["design"].consistent(prior) for prior in held.prior) and all(
            learner.consistent(state, begun) for learner, state, begun in states
        )

    def learned(self, held: Held) -> Any:
        """The owner, with what its learners had learned."""
        for learner, state in zip(self.learners, held.states, strict=True):
            learner._state = state
        for learner in (self.pattern, *self.learners) if held.prior else ():
            learner.params["design"].state = states.copy(held.prior[0])
        return self.owner


def _begun(kind: str, params: dict[str, Any], extra: dict[str, Any], tensors: dict[str, Any]) -> Begun:
    dim = check.integer("dim", extra["dim"], 0)
    if kind in LEARNERS:
        owner = pattern = _built(LEARNERS, {**params, "kind": kind})
        learners = [owner] if dim else []
    else:
        from onepass.learner import estimators

        owner = getattr(estimators, kind)(None if params["learner"] is None else _built(LEARNERS, params["learner"]))
        owner._restore(extra)
        pattern = owner._default() if owner.learner is None else owner.learner
        learners = getattr(owner, "learners_", [])
    if learners and dim not in [array.shape[1] for array in tensors.values() if array.ndim == 2]:
        raise ValueError(f"no array has {dim} columns")  # before arrays of this width are made
    for learner in learners:
        learner.dim = dim
    return Begun(owner, pattern, learners, Held(tuple(one._begin(dim) for one in learners), pattern._prior()))


def load(path: str | Path) -> Any:
    """The bandit, design or learner that was saved to `path`; it continues exactly where the saved one stopped.

    ValueError, with the reason, for a truncated, altered, foreign or newer file. Nothing in a file is executed.
    """
    header, tensors = files.read(path)
    try:
        kind, params = header["kind"], header["params"]
        owner: Bandit | Design | KernelBandit
        begun = None
        if kind in LEARNERS or kind in ESTIMATORS_OF_LEARNERS:
            begun = _begun(kind, params, header["extra"], tensors)
        elif kind in KERNEL_BANDITS:
            owner = _kernel_bandit(kind, params, header["extra"], tensors)
        else:
            owner = _bandit(params) if kind == "Bandit" else DESIGNS[kind](**params)
    except (KeyError, TypeError, ValueError, MemoryError) as trouble:
        raise ValueError(f"{str(path)!r} is damaged: its parameters are refused ({trouble})") from None
    if begun is not None:
        return begun.learned(files.restore(begun.held, tensors, begun.fits, path))
    if isinstance(owner, Design):
        owner.state = files.restore(owner.state, tensors, owner.consistent, path)
        return owner

    if isinstance(owner, KernelBandit):
        held = files.restore(owner._held(), tensors, consistent, path)
        try:
            owner._restore(
                held, kernel_from(header["extra"]["kernel"]), header["extra"]["reg"], header["extra"]["fits"]
            )
            owner._rng.bit_generator.state = header["extra"]["rng"]
            owner._coins.bit_generator.state = header["extra"]["coins"]
        except (KeyError, TypeError, ValueError) as trouble:
            raise ValueError(f"{str(path)!r} is damaged: its kernel is refused ({trouble})") from None
        return owner

    owner._restore(tensors, path)
    try:
        owner.rounds = check.integer("rounds", header["extra"]["rounds"], 0)
        owner._rng.bit_generator.state = header["extra"]["rng"]
    except (KeyError, TypeError, ValueError) as trouble:
        raise ValueError(f"{str(path)!r} is damaged: its counters are refused ({trouble})") from None
    return owner
