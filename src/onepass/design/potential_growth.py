"""Growth of a design by truncation: g_t with A_t <= A_(t-1) + x x^T + (g_t - g_(t-1)) I for every row.

Confidence radii of estimators that take steps need it, because their potential is measured in the norm of A, and a cut
that raises A raises the potential. Plain cuts only lower A, so g = 0. Compensation adds the mass that was cut as a
multiple of I, so g grows by this multiple. Projector splitting rotates its factors when it truncates, and no useful
bound is known: A was measured to rise by more than the longest row.
"""

from functools import partial
from typing import Any

import numpy as np

from onepass.design.contract import error_bound, sums
from onepass.design.design import Design
from onepass.design.dyadic import DyadicState
from onepass.design.dyadic_sketches import DyadicSketchesState
from onepass.design.frequent_directions import FrequentDirectionsState
from onepass.design.projector_splitting import ProjectorSplittingState
from onepass.design.random_projection import RandomProjectionState
from onepass.foundation.generic import generic


@partial(generic, default=True)
def potential_growth(state: Any) -> float:
    """Return the total amount g by which truncations may have raised the design; infinite if no bound is known.

    After every row x the design A satisfies A_t <= A_(t-1) + x x^T + (g_t - g_(t-1)) I. The default is 0 for a design
    that cuts nothing.
    """
    return 0.0 if error_bound(state) == 0.0 else np.inf


@potential_growth.for_state(FrequentDirectionsState)
def growth_by_compensation(state: FrequentDirectionsState) -> float:
    return state.space.ridge - state.settings.reg


@potential_growth.for_state(DyadicState)
def growth_by_all_blocks(state: DyadicState) -> float:
    """Return how much truncations have raised a dyadic sketch: the compensation times the sum of all cuts."""
    return state.block.settings.compensation * sums(state).shed


@potential_growth.for_state(ProjectorSplittingState)
def growth_by_splitting(state: ProjectorSplittingState) -> float:
    """Return how much truncations may have raised a projector splitting: 0 before the first, infinity afterwards."""
    return 0.0 if sums(state).shed == 0.0 else np.inf


def has_known_growth(design: Design) -> bool:
    """Return False for sketches of which no bound of the growth is known, however small their error is."""
    return not isinstance(design.abstract_state, (DyadicSketchesState, RandomProjectionState))
