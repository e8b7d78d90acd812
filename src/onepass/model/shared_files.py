"""File contents of a shared model, and the check of contents that were read."""

from typing import Any, NamedTuple

from onepass.estimator.estimator import Estimator
from onepass.foundation import files
from onepass.model.feature_pipeline import FeaturePipeline


class SavedShared(NamedTuple):
    """Contents of a file of a shared model whose feature map learns as well, or whose design began with rows.

    `before` is the initial state in the second case, else ().
    """

    model: Any
    features: Any
    before: Any


def pack_state(learned: Any, pipeline: FeaturePipeline, before: Any) -> Any:
    """Return everything that is written to a file; arrays are not copied.

    `learned` is the state of the model, and `pipeline` its feature map. `before` is the initial state if the design
    began with rows, else ().
    """
    return SavedShared(learned, pipeline.statistics, before) if pipeline.moves or before != () else learned


def unpack_state(held: files.StateSource, learned: Any, pipeline: FeaturePipeline, estimator: Estimator) -> SavedShared:
    """Return the contents `held` by a file or copy of a shared model; raise ValueError if they are inconsistent.

    `learned` is the state of a model that has not learned, `pipeline` its feature map, and `estimator` its estimator.
    """
    before = learned if any(name.startswith("before.") for name in held.arrays) else ()
    fits = estimator.consistent
    if not pipeline.moves and before == ():
        return SavedShared(held.take(learned, fits), pipeline.statistics, ())
    return held.take(
        SavedShared(learned, pipeline.statistics, before),
        lambda found: fits(found.model) and pipeline.fits(found.features) and (before == () or fits(found.before)),
    )
