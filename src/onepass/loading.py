"""`load`: the inverse of every `save`. Only the classes named here are ever built."""

from pathlib import Path
from typing import Any

from onepass import check, files
from onepass.bandit import Bandit
from onepass.design.design import Design
from onepass.design.dyadic import Dyadic
from onepass.design.exact import Exact
from onepass.design.frequent_directions import FrequentDirections
from onepass.design.projector_splitting import ProjectorSplitting
from onepass.estimator.ridge import Ridge
from onepass.exploration import UCB, EpsilonGreedy, Greedy, Theory, Thompson
from onepass.features.factors import OuterProduct
from onepass.features.projection import GaussianProjection
from onepass.parameters.models import Disjoint, Hybrid

DESIGNS: dict[str, Any] = {c.__name__: c for c in (Exact, FrequentDirections, Dyadic, ProjectorSplitting)}
RULES: dict[str, Any] = {c.__name__: c for c in (UCB, Thompson, Greedy, EpsilonGreedy)}


FEATURES: dict[str, Any] = {c.__name__: c for c in (GaussianProjection, OuterProduct)}


def loadable(owner: Any) -> None:
    """Refuse what `load` could not build again: a class of your own is added to `DESIGNS` or `RULES` first."""
    if isinstance(owner, Bandit):
        model = owner.estimator
        ridges = [model] if isinstance(model, Ridge) else [part for part in (model.shared, model.arms) if part]
        parts = [*(ridge.design for ridge in ridges), owner.exploration]
    else:
        parts = [owner]
    for part in parts:
        if type(part) not in (*DESIGNS.values(), *RULES.values()):
            name = type(part).__name__
            raise ValueError(f"{name} is not known to onepass.load; add it to onepass.loading.DESIGNS before saving")


def _built(family: dict[str, Any], params: dict[str, Any]) -> Any:
    rest = {k: v for k, v in params.items() if k != "kind"}
    if isinstance(rest.get("exploration"), dict):
        rest["exploration"] = Theory(**rest["exploration"])
    return family[params["kind"]](**rest)


def _ridge(params: dict[str, Any]) -> Ridge:
    return Ridge(_built(DESIGNS, params["design"]))


def _model(params: dict[str, Any]) -> Any:
    kind, options = params["kind"], {name: params[name] for name in ("compact", "threads") if name in params}
    if kind == "Disjoint":
        return Disjoint(_ridge(params), **options)
    if kind == "Hybrid":
        return Hybrid(shared=_ridge(params["shared"]), arms=_ridge(params["arms"]), **options)
    return {"Ridge": _ridge}[kind](params)


def _bandit(params: dict[str, Any]) -> Bandit:
    features = params["features"]
    return Bandit(
        _model(params["estimator"]),
        _built(RULES, params["exploration"]),
        features=None if features is None else _built(FEATURES, features),
        seed=params["seed"],
        name=str(params["name"]),
    )


def load(path: str | Path) -> Any:
    """The bandit or design that was saved to `path`; it continues exactly where the saved one stopped.

    ValueError, with the reason, for a truncated, altered, foreign or newer file. Nothing in a file is executed.
    """
    header, tensors = files.read(path)
    try:
        kind, params = header["kind"], header["params"]
        owner: Bandit | Design = _bandit(params) if kind == "Bandit" else DESIGNS[kind](**params)
    except (KeyError, TypeError, ValueError) as trouble:
        raise ValueError(f"{str(path)!r} is damaged: its parameters are refused ({trouble})") from None
    if isinstance(owner, Design):
        owner.state = files.restore(owner.state, tensors, owner.consistent, path)
        return owner

    owner._restore(tensors, path)
    try:
        owner.rounds = check.integer("rounds", header["extra"]["rounds"], 0)
        owner._rng.bit_generator.state = header["extra"]["rng"]
    except (KeyError, TypeError, ValueError) as trouble:
        raise ValueError(f"{str(path)!r} is damaged: its counters are refused ({trouble})") from None
    return owner
