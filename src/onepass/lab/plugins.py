"""Loading of users' own policies, problems, data sets and experiments, which the command line names MODULE:NAME.

MODULE is imported as Python does, also from the current folder. NAME may be:

- a policy: a class or function NAME(dim=..., seed=...) that makes a bandit, a `Policy`, or a sequence of these
- an experiment: a study such as an `Experiment`, a `Dataset`, which is played as a bandit, or a problem, that is a
  function NAME(seed) that returns an `Environment`
- a figure: a `Figure`
"""

from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

from onepass.foundation.references import NoSuchName, import_reference
from onepass.lab.bandits.suites import experiment_on
from onepass.lab.datasets import Dataset
from onepass.lab.definition import Study, select
from onepass.lab.errors import ExperimentError
from onepass.lab.figure import Figure
from onepass.lab.policy import Policy
from onepass.lab.suites import find

COLON = ":"


def _import_object(reference: str) -> Any:
    """Import the object that `reference`, "MODULE:NAME", names. Raises ExperimentError if it does not exist."""
    try:
        return import_reference(reference)
    except ModuleNotFoundError as missing:
        module = reference.partition(COLON)[0]
        if missing.name is None or not f"{module}.".startswith(f"{missing.name}."):
            raise  # a package that the module itself asks for
        here = Path.cwd()
        raise ExperimentError(f"there is no module '{module}' for {reference}, in {here} or installed") from missing
    except NoSuchName as error:
        raise ExperimentError(str(error)) from None


def load_experiment(name: str) -> Study:
    """Return the experiment with this name; a name of the form MODULE:NAME refers to an object in a user's module."""
    if COLON not in name:
        return find(name)
    found = _import_object(name)
    if hasattr(found, "trial") and not isinstance(found, type):
        return found
    if isinstance(found, Dataset) or callable(found):
        return experiment_on(found, name=name.partition(COLON)[2])
    raise ExperimentError(f"{name} must be an experiment, a Dataset or a problem, not {type(found).__name__}")


def load_policies(study: Study, names: Sequence[str] | None) -> tuple[Policy, ...]:
    """Return the study's policies with these labels or groups, followed by those named MODULE:NAME.

    `names` has labels, groups and references MODULE:NAME; None takes all policies of the study. A label that contains a
    comma may come in its parts, as from a comma-separated list.
    """
    if names is None:
        return select(study, None)
    names = _join_labels(names, {label for policy in study.policies for label in (policy.label, policy.group)})
    own = [name for name in names if COLON in name]
    known = [name for name in names if COLON not in name]
    chosen = select(study, known) if known or not own else ()
    chosen += tuple(policy for name in own for policy in _policies_of_reference(name))
    labels = [policy.label for policy in chosen]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise ExperimentError(f"two policies are called {twice}: give yours another label, as in Policy('mine', ...)")
    return chosen


def _join_labels(names: Sequence[str], known: Set[str]) -> list[str]:
    """Join consecutive names with commas where they together are a label in `known`, the longest label first."""
    out, i = [], 0
    while i < len(names):
        j = next((j for j in range(len(names), i, -1) if ", ".join(names[i:j]) in known), i + 1)
        out.append(", ".join(names[i:j]))
        i = j
    return out


def _policies_of_reference(reference: str) -> tuple[Policy, ...]:
    """Return the policies that `reference`, "MODULE:NAME", refers to."""
    found = _import_object(reference)
    if isinstance(found, Policy):
        return (found,)
    if isinstance(found, Sequence) and all(isinstance(one, Policy) for one in found):
        return tuple(found)
    if callable(found):
        return (Policy(reference.partition(COLON)[2], found),)
    raise ExperimentError(f"{reference} must be a Policy, several, or what makes one, not {type(found).__name__}")


def load_figure(reference: str) -> Figure:
    """Return the figure (table and picture) that MODULE:NAME refers to in a user's module."""
    found = _import_object(reference)
    if not isinstance(found, Figure):
        raise ExperimentError(f"{reference} must be a Figure, not {type(found).__name__}")
    return found
