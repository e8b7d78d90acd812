"""Online Newton steps for any loss, on any feature map, with any design: the recommended learner.

For an example x with target y and loss l, the decision f, the features phi and the step are

    f = w^T phi,  phi = [map of x / scale, g (x - middle) / s, 1, y_last exp(-16 ||x - x_last||^2 / (2 width^2))]
    u = A^-1 phi,  q = phi^T u,  f' = argmin (f' - f)^2 / (2 q) + l(f', y)
    w <- w - l'(f') u,   A <- A + l''(f') phi phi^T where q > 1 / memory      (without a loss nothing changes)

Here `map` is a feature map such as landmarks, g and s belong to the linear part below, and A is the design. The new w
minimizes ||w - w_old||_A^2 / 2 + l(w^T phi, y), so the step is exact for the present example. If the loss has no
curvature, l'(f')^2 takes the place of l''(f'). With infinite memory, the squared loss and an exact design, this is
kernel ridge regression on the features. With finite memory, steps stop shrinking once a direction holds as much as
`memory` examples, so the learner follows changes. Most examples then cost one solve and no update. Mistakes in % with
memory None, 100, 20 and 3 were:

- 30.6, 25.7, 25.6 and 26.8 on preferences that turn around over 450,000 examples
- 4.8, 4.8, 4.8 and 4.7 on ijcnn1, which does not change
- 9.1, 9.1, 9.0 and 8.9 on spambase

The last feature is the target of the previous example, weighted by its similarity, as in a nearest-neighbour rule. It
helps on streams that repeat themselves: on the adversarial german-1 of Wen, Zhang et al. there are 5.1% mistakes with
it, and 40% without. On other streams its weight stays near zero. `recent=False` leaves it out.

The second part of phi is linear (linear_part.py), with a length g that is chosen on the first examples. It is needed if
rows are wide or features are rarely on. If rows are wide and sparse, it is the only part, on a sketched design. Very
wide rows are hashed.

Nothing has to be known in advance. Scale, width and landmarks come from the first `warm_up` examples: the scale is the
standard deviation of each feature (and of the targets, for regression), and the width is a median distance. While these
examples arrive, the map is computed again after 1, 2, 4, ... of them, and all examples so far are learned again with
it. After that, map and scale stay the same. Features that leave the range of these examples by more than half of it are
clipped, because a column of row numbers would otherwise put all rows far from all landmarks. For rows that move
elsewhere altogether use `follow=True` or Fourier features, which have no location. An example costs O(size (d + rank))
for the map and a row of the design, O(rank^2) for an exact one.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.design.frequent_directions import RobustFrequentDirections
from onepass.features.kernels import median_distance
from onepass.foundation import check
from onepass.foundation.check import quote
from onepass.foundation.registry import savable
from onepass.foundation.rw_lock import writing
from onepass.foundation.state import full, has_same_layout, zeros
from onepass.learner.batch_refinement import refine_weights, transform_rows
from onepass.learner.budget import check_kernel_width
from onepass.learner.column_stats import is_constant, standard_deviations
from onepass.learner.explanation import Reason, newton_terms
from onepass.learner.landmark_refresh import has_moved, refresh_landmarks
from onepass.learner.learner import Learner
from onepass.learner.linear_part import make_linear_part, total_loss
from onepass.learner.losses import make_loss
from onepass.learner.newton_features import KernelNewtonState, learn_weighted_examples
from onepass.learner.newton_map import CHANGING_LEAVES, MAPS, make_map, map_fits
from onepass.learner.sparse_input import count_sketch, split_rows, to_dense

ENOUGH = 32  # least examples on which the gain of the linear part is chosen
FEW = 8  # least examples for a linear part: scales of fewer may be far too small
FAR = 4  # rows more than this many times wider than `columns` are hashed
GAINS = (1.0, 2.0, 4.0, 8.0)  # lengths of the linear part
SHORT = 0.5  # factor of GAINS beside a map if the loss has curvature 1; the logistic has at most 1/4
LARGEST = 600  # most features of a default exact design: an example costs a millisecond
REG = 0.1  # default penalty; shares multiply it
ROWS = 128  # of the sketch, half of them where rows are hashed: cnae-9 2.36% mistakes, with 64 2.49, 256 2.35
SHARES = (0.25, 0.0625)  # of reg, tried in turn for the logistic loss, whose curvature is far below 1
RAREST = 4  # largest exponent of 1/4 in the first share
EVERY = tuple(0.25**k for k in range(RAREST + len(SHARES) + 1))  # all possible shares
SPARSE = 0.1  # share of non-zero entries below which wide rows are left to the linear part
WIDE = 400  # columns above which sparse rows are left to the linear part
OWN: tuple[str, ...] = (
    "design.", "w", "phi", "center", "spread", "last_target", "vote_precision", "buffer_rows",
    "buffer_targets", "buffer_weights", "n_seen",
)  # fmt: skip
NEAR = 16.0  # how much narrower than the map's kernel the vote of the last example is, in squares of the width


@savable
class KernelNewton(Learner):
    """Online Newton steps on features of the Gaussian kernel, which needs no tuning.

    The features are the similarities of a row to some of the first examples (landmarks), the columns of the row
    themselves, a constant, and the target of the previous example times its similarity to the row.
    docs/how/kernel_learners.md has the formulas.

    Parameters
    ----------
    features : str, default "nystrom"
        Feature map of the kernel: "nystrom" (similarities to `size` landmarks), "fourier" (`size` random frequencies)
        or "sketched" (landmarks, with a sketch of `size` rows for the kernel matrix).
    size : int, default 100
        Size of the map, at least 2, even for Fourier features.
    rank : int, optional
        Number of kernel features computed from the landmarks, from 1 to size. Defaults to size, and to half of it for
        "sketched". Must be None for Fourier features.
    design : Design, optional
        Design for all features, in float64, with its own reg, the penalty on ||w||^2. It has a column for each kernel
        feature (rank, or size for Fourier features), for the constant and for the previous example, and one for each
        column of the rows if there is a linear part. Defaults to an exact design, and to a sketch for wide rows.
    reg : float, optional
        Penalty of the default design, above 0. Defaults to 0.1. For the logistic loss the default is smaller if one
        class is rare, and still smaller values are taken if the loss on the first examples is smaller with them.
    linear : bool, optional
        Include a linear part: the columns of the row as further features. Defaults to True, unless a design is given.
        If rows have more than 400 columns and over nine in ten of their entries are zero, the linear part replaces the
        kernel features.
    gain : float, optional
        Root mean square length of the linear part, above 0. By default several values from 0.5 to 8 are tried on the
        first examples.
    sketch : int, optional
        Rows of the sketch (robust Frequent Directions), at least 2. A sketch is used if no design is given and there
        are more than 600 features. Defaults to 128, and to 64 if rows are hashed.
    columns : int, default 1024
        Number of columns after hashing, at least 2. Rows that are more than four times as wide are first hashed into
        this many columns, with random signs (a count sketch). Sparse rows cost time for their non-zeros only.
    width : float, optional
        Width of the kernel, above 0, in standard deviations if `standardize` is True. Defaults to the median distance
        of the first examples.
    width_factor : float, default 1.0
        Factor of the width, above 0.
    standardize : bool, default True
        Divide columns by their standard deviations. Values that leave the range of the first examples by more than half
        of it are limited. For regression the targets are standardized, too, and loss_width is in their standard
        deviations.
    recent : bool, default True
        True adds a feature for the previous example: its target times a kernel of its distance to the row. It helps on
        streams in which examples repeat.
    follow : bool, default False
        Replace half of the landmarks by recent rows if most of the last warm_up rows are far from all landmarks, and if
        this improves predictions. The learner then keeps these rows in memory. Only for "nystrom".
    memory : float or None, default 20.0
        Number of examples, above 0, that count in each direction of the features. An example counts half after 0.69 *
        memory later examples in the same direction. A direction that does not occur is not forgotten
        (docs/how/forgetting.md). None forgets nothing, which is right for streams that do not change.
    warm_up : int, optional
        Number of first examples from which scales, width and landmarks are computed, at least 2. Until then they are
        computed again after 1, 2, 4, ... examples. Defaults to 4 * size.
    loss : str, default "squared_hinge"
        Loss: "squared_hinge", "hinge" or "logistic" for targets -1 and 1; "squared", "huber" or "epsilon_insensitive"
        for numbers.
    loss_width : float, default 1.0
        Width of the huber and epsilon_insensitive losses, above 0.
    seed : int, default 0
        Seed of landmarks, frequencies and sketches, from 0 to 2^32 - 1.

    Raises
    ------
    ValueError
        If an argument is outside its range, or sizes are inconsistent.

    Examples
    --------
    >>> import numpy as np, onepass as op
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((2000, 2)) * [1.0, 1000.0]
    >>> labels = np.sign(rows[:, 0] * rows[:, 1])
    >>> op.progressive_validation(op.KernelNewton(), rows, labels).mistakes[500:].mean() < 0.03
    np.True_
    """

    def __init__(
        self,
        *,
        features: str = "nystrom",
        size: int = 100,
        rank: int | None = None,
        design: Design | None = None,
        reg: float | None = None,
        linear: bool | None = None,
        gain: float | None = None,
        sketch: int | None = None,
        columns: int = 1024,
        width: float | None = None,
        width_factor: float = 1.0,
        standardize: bool = True,
        recent: bool = True,
        follow: bool = False,
        memory: float | None = 20.0,
        warm_up: int | None = None,
        loss: str = "squared_hinge",
        loss_width: float = 1.0,
        seed: int = 0,
    ) -> None:
        features = check.choice("features", features, MAPS)
        size = check.integer("size", size, 2)
        if features == "fourier" and (size % 2 or rank is not None):
            raise ValueError(f"size must be even for Fourier features and rank None, got {size} and {quote(rank)}")
        if follow is True and features != "nystrom":
            raise ValueError(f"features must be 'nystrom' where landmarks follow, got {quote(features)}")
        most = {"nystrom": size, "fourier": size, "sketched": max(size // 2, 1)}[features]
        rank = most if rank is None else check.integer("rank", rank, 1, size)
        linear = None if linear is None else bool(check.choice("linear", linear, (False, True)))
        if design is not None and not (isinstance(design, Design) and (linear or design.dim == rank + 2)):
            raise ValueError(f"design must be a design of dim={rank + 2}, two more than features, got {quote(design)}")
        if design is not None and design.dtype != np.float64:
            raise ValueError(f"design must be in float64 here, got {quote(design)}")
        make_loss(loss, loss_width)
        self.params: dict[str, Any] = {
            "features": features,
            "size": size,
            "rank": None if features == "fourier" else rank,
            "design": design,
            "reg": None if reg is None else check.positive("reg", reg),
            "linear": linear,
            "gain": None if gain is None else check.positive("gain", gain),
            "sketch": None if sketch is None else check.integer("sketch", sketch, 2),
            "columns": check.integer("columns", columns, 2),
            "width": None if width is None else check_kernel_width(width),
            "width_factor": check.positive("width_factor", width_factor),
            "standardize": bool(check.choice("standardize", standardize, (False, True))),
            "recent": bool(check.choice("recent", recent, (False, True))),
            "follow": bool(check.choice("follow", follow, (False, True))),
            "memory": None if memory is None else check.positive("memory", memory),
            "warm_up": check.integer("warm_up", 4 * size if warm_up is None else warm_up, 2),
            "loss": loss,
            "loss_width": check.positive("loss_width", loss_width),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        self._state = None

    def columns(self, dim: int) -> int:
        """Return the number of columns that rows of a given width are learned in.

        Parameters
        ----------
        dim : int
            Width of a row, at least 1.

        Returns
        -------
        int
            The parameter `columns` for rows more than four times as wide, which are hashed; otherwise `dim`.
        """
        most: int = self.params["columns"]
        return most if dim > FAR * most else dim

    @property
    def can_use_weights(self) -> bool:
        return True

    @property
    def rank(self) -> int:
        """Number of kernel features, from landmarks or random frequencies."""
        rank: int = self.params["size"] if self.params["rank"] is None else self.params["rank"]
        return rank

    @property
    def linear(self) -> bool:
        """True if the columns of the rows themselves are features, beside the kernel features."""
        return self.params["design"] is None if self.params["linear"] is None else bool(self.params["linear"])

    @property
    def design(self) -> Design:
        """The given design; by default an exact one for up to 600 features, and a sketch for more.

        The features are the kernel features, a constant, the feature of the previous example, and the columns of the
        rows if there is a linear part. Before the first example the columns are not counted.
        """
        return self._design(self.rank + 2 + (self.columns(self.dim) if self.linear else 0))

    def _design(self, size: int, share: float = 1.0) -> Design:
        p = self.params
        if p["design"] is not None:
            if p["design"].dim != size:
                raise ValueError(f"design must be a design of dim={size} for these rows, got {quote(p['design'])}")
            return p["design"]
        if self.rank + 2 + (self.columns(self.dim) if self.linear else 0) <= LARGEST:
            return Exact(dim=size, reg=share * (p["reg"] or REG))
        most = p["sketch"] or (ROWS if self.columns(self.dim) == self.dim else ROWS // 2)
        return RobustFrequentDirections(dim=size, size=min(most, size), reg=share * (p["reg"] or REG))

    def _terms(self, x: np.ndarray, names: tuple[str, ...], decision: float) -> list[Reason]:
        return newton_terms(self._state, x, names if len(names) == len(x) else tuple(f"hash{j}" for j in range(len(x))))

    def begin(self, dim: int) -> KernelNewtonState:
        self.dim = dim
        p, design, most, dim = self.params, self.design, np.finfo(np.float64).max, self.columns(dim)
        linear = dim if self.linear else 0
        return KernelNewtonState(
            map=make_map(p, self.rank, zeros(1, dim), 1.0),
            design=design.initial_state(),
            w=zeros(design.dim),
            phi=zeros(design.dim),
            inverse_scale=zeros(dim),
            low=full(-most, dim),
            high=full(most, dim),
            middle=zeros(linear),
            slope=zeros(linear),
            center=0.0,
            spread=1.0,
            scaled=zeros(dim),
            last=zeros(dim),
            last_target=0.0,
            vote_precision=-1.0,
            buffer_rows=zeros(p["warm_up"], dim),
            buffer_targets=zeros(p["warm_up"]),
            buffer_weights=zeros(p["warm_up"]),
            n_seen=0,
            min_leverage=1.0 / p["memory"] if p["memory"] else 0.0,
            loss=make_loss(p["loss"], p["loss_width"]),
        )

    def _dense(self, rows: Any) -> np.ndarray:
        dim = rows.shape[1]
        return (
            to_dense(rows) if self.columns(dim) == dim else count_sketch(rows, self.columns(dim), self.params["seed"])
        )

    def _learn(self, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Predict and learn rows (n, d), one after the other, and return the predictions f(x), (n,) or (n, classes).

        Each row is predicted before it is learned. `targets` (n,) are the values to learn. `weights` (n,) multiply the
        losses; None means 1. The feature map is made again after 1, 2, 4, ... examples, and after `warm_up` examples.
        With `follow` its landmarks are also checked after every further `warm_up` examples.
        """
        done, decisions, warm_up = 0, np.empty((len(rows), *self.output_shape)), self.params["warm_up"]
        weights = np.ones(len(rows)) if weights is None else weights
        while done < len(rows):
            seen, stop = self._newton_state(self._state).n_seen, len(rows)
            if seen < warm_up:
                stop = min(done + min(1 << seen.bit_length(), warm_up) - seen, stop)
            elif self.params["follow"]:
                stop = min(done + warm_up - seen % warm_up, stop)
            part = slice(done, stop)
            self._state, decisions[part] = self._learn_block(self._state, rows[part], targets[part], weights[part])
            done, seen = stop, self._newton_state(self._state).n_seen
            if seen == warm_up or (seen < warm_up and seen & (seen - 1) == 0):
                self._remake_map()
            elif self.params["follow"] and seen % warm_up == 0:
                self._refresh_landmarks()
        return decisions

    def _refresh_landmarks(self) -> None:
        """Replace half of the landmarks and relearn the latest examples, if most of these are far from all landmarks.

        Everything stays as it is if the new landmarks do not lower the loss of the later half of these examples.
        """
        s, size = self._newton_state(self._state), self._newton_state(self._state).phi.size
        if size == s.slope.size + 2 or not has_moved(s):
            return
        rows, targets, weights, late = (
            s.buffer_rows,
            s.buffer_targets,
            s.buffer_weights,
            slice(len(s.buffer_rows) // 2, None),
        )
        designs = [self._design(size, share) for share in EVERY]
        design = next(design for design in designs if design.consistent(s.design))
        fresh = refresh_landmarks(s, self.params, self.rank, design, NEAR)._replace(
            buffer_rows=np.zeros((0, rows.shape[1])), buffer_targets=np.zeros(0), buffer_weights=np.zeros(0)
        )
        before = self.decide_dense(rows[late])
        learned, decisions = self._learn_block(self._copy_state(self._state, fresh), rows, targets, weights)
        new, old = (self._total_loss(learned, f, targets[late], weights[late]) for f in (decisions[late], before))
        if new < old:
            self._state = self._replace_fields(
                learned, n_seen=s.n_seen, buffer_rows=rows, buffer_targets=targets, buffer_weights=weights
            )

    def _remake_map(self) -> None:
        """Set scale, width and map from the first examples, and learn all of them again."""
        p, s = self.params, self._newton_state(self._state)
        rows, targets, weights = s.buffer_rows[: s.n_seen], s.buffer_targets[: s.n_seen], s.buffer_weights[: s.n_seen]
        over, low, high, center, spread = s.n_seen == p["warm_up"], s.low, s.high, 0.0, 1.0
        dim, middle, slope, rank = rows.shape[1], s.middle, s.slope, self.rank
        inverse_scale, varied = np.ones(dim), standard_deviations(rows)
        if p["standardize"]:
            inverse_scale = 1.0 / varied
            if not self.is_classifier:
                center, spread = float(targets.mean()), float(standard_deviations(targets[:, None])[0])
            if over:
                least, most = rows.min(axis=0), rows.max(axis=0)
                margin = 0.5 * most - 0.5 * least
                low, high = least - margin, most + margin
        if self.linear and len(rows) >= FEW:
            part = make_linear_part(rows, varied, is_constant(rows), p["standardize"])
            middle, slope = part.middle, part.slope
            if over and part.reach > 0.0:
                low, high = np.where(part.unseen, -part.reach, low), np.where(part.unseen, part.reach, high)
                inverse_scale = np.where(part.unseen, 0.0, inverse_scale)
            if p["design"] is None and dim > WIDE and np.count_nonzero(rows) < SPARSE * rows.size:
                rank = 0
        scaled = np.ascontiguousarray(rows * inverse_scale)
        width = (median_distance(scaled) if p["width"] is None else p["width"]) * p["width_factor"]
        size = rank + len(slope) + 2
        fresh = s._replace(
            map=make_map(p, self.rank, scaled if rank else zeros(1, dim), width),
            design=self._design(size).initial_state(),
            w=np.zeros(size),
            phi=np.zeros(size),
            inverse_scale=inverse_scale,
            low=low,
            high=high,
            middle=middle,
            slope=slope,
            center=center,
            spread=spread,
            last=np.zeros(dim),
            last_target=0.0,
            vote_precision=0.5 * NEAR / width**2 if p["recent"] else -1.0,
            buffer_rows=np.zeros((0, dim)),
            buffer_targets=np.zeros(0),
            buffer_weights=np.zeros(0),
        )
        learned = self._relearn(fresh, rows, targets, weights)
        kept = (
            {}
            if over and not p["follow"]
            else {"buffer_rows": s.buffer_rows, "buffer_targets": s.buffer_targets, "buffer_weights": s.buffer_weights}
        )
        self._state = self._replace_fields(learned, n_seen=s.n_seen, **kept)

    def _relearn(self, fresh: Any, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> Any:
        """Return the state after the first examples, with the gain and the penalty of the smallest total loss.

        The loss is that of predictions made before each example is learned. `rows`, `targets` and `weights` are the
        examples, and `fresh` is a state that has learned nothing. `gain` is explained in the class; the penalties tried
        are `reg` times the factors of `penalty_shares`.
        """
        linear, gain, chosen = fresh.slope.size, self.params["gain"], len(rows) >= ENOUGH
        unit = SHORT if fresh.phi.size > linear + 2 and self.params["loss"] != "logistic" else 1.0
        gains = [unit * given for given in GAINS[: len(GAINS) if linear and chosen else 1]] if gain is None else [gain]
        best, least, length, (first, *others) = None, np.inf, gains[0], self.penalty_shares(targets, weights)
        for given in gains:
            learned, loss = self._try_gain(fresh, rows, targets, weights, given, first)
            if best is not None and not loss < least:
                break
            best, least, length = learned, loss, given
        for share in others if chosen else []:
            learned, loss = self._try_gain(fresh, rows, targets, weights, length, share)
            if not loss < least:
                break
            best, least = learned, loss
        return best

    def penalty_shares(self, targets: np.ndarray, weights: np.ndarray) -> tuple[float, ...]:
        """Return the factors of the penalty `reg` to try, in order.

        For the logistic loss without a given design and reg, the first factor is the power of 1/4 nearest 4 p (1 - p),
        where p is the share of class 1. If a class is rare, the logistic loss has little curvature. Otherwise the only
        factor is 1.

        Parameters
        ----------
        targets : array of shape (n,)
            Targets of the first examples.
        weights : array of shape (n,)
            Weights of the first examples.

        Returns
        -------
        tuple of float
            Factors of reg; the first one is always tried.
        """
        p = self.params
        if p["design"] is not None or p["reg"] is not None or p["loss"] != "logistic":
            return (1.0,)
        often = (weights[targets > 0.0].sum() + 1.0) / (weights.sum() + 2.0)
        first = 0.25 ** min(round(-math.log(4.0 * often * (1.0 - often)) / math.log(4.0)), RAREST)
        return tuple(first * share for share in (1.0, *SHARES))

    def _try_gain(
        self, fresh: Any, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray, given: float, share: float
    ) -> tuple[Any, float]:
        """Return the state after the first examples, and the sum of the losses of their predictions.

        Each prediction is made before its example is learned.

        The linear part has the gain `given`, and the penalty is `share` * reg. `fresh` is a state that has learned
        nothing.
        """
        begun = fresh._replace(
            slope=given * fresh.slope,
            design=self._design(fresh.phi.size, share).initial_state(),
            w=np.zeros_like(fresh.w),
            phi=np.zeros_like(fresh.phi),
            scaled=np.zeros_like(fresh.scaled),
            last=np.zeros_like(fresh.last),
        )
        learned, decisions = self._learn_block(self._wrap_state(begun), rows, targets, weights)
        return learned, self._total_loss(learned, decisions, targets, weights)

    @writing
    def refine(
        self, rows: Any, targets: np.ndarray, weights: np.ndarray | None, before: np.ndarray, steps: int
    ) -> np.ndarray | None:
        """Apply Newton's method to all checked examples learned so far (batch_refinement.py).

        Parameters
        ----------
        rows : array or CSR array of shape (n, dim)
            The rows that were learned.
        targets : array of shape (n,)
            Their targets.
        weights : array of shape (n,) or None
            Their weights.
        before : array of shape (n,) or (n, classes)
            The decisions made when the examples were learned.
        steps : int
            Newton steps at every penalty, at least 1.

        Returns
        -------
        array or None
            The decisions, each with its example left out. None, and nothing has changed, for losses other than the
            logistic one, for a learner whose landmarks follow the rows (`follow`), and if the weights of the one pass
            fit better, as they do when rows drift.
        """
        p, newton = self.params, self._newton_state(self._state)
        if p["loss"] != "logistic" or p["follow"]:
            return None

        def blocks() -> Iterator[tuple[slice, np.ndarray]]:
            for place, part in split_rows(rows, self.columns(self.dim)):
                yield place, transform_rows(newton, self._dense(part))

        reg = p["reg"] if p["design"] is None else p["design"].reg
        weights = np.ones(len(targets)) if weights is None else weights
        found = refine_weights(newton, blocks, self._signs(targets), weights, before, reg or REG, reg is None, steps)
        if found is None:
            return None
        self._state = self._replace_fields(self._state, w=found[0])
        return found[1]

    # hooks that `MulticlassNewton` overrides (multiclass_newton.py)

    def _signs(self, targets: np.ndarray) -> np.ndarray:
        """Return `targets` as -1 and 1: (n,) here, and (n, classes) for a learner of several classes."""
        return targets

    def _wrap_state(self, newton: Any) -> Any:
        """Return an initial learner state around a `KernelNewtonState`."""
        return newton

    def _newton_state(self, state: Any) -> Any:
        """Return the `KernelNewtonState` inside a learner state."""
        return state

    def _copy_state(self, state: Any, newton: Any) -> Any:
        """Return a copy of a learner state around another `KernelNewtonState`."""
        return newton

    def _replace_fields(self, state: Any, **changed: Any) -> Any:
        return state._replace(**changed)

    def _learn_block(
        self, state: Any, rows: np.ndarray, targets: np.ndarray, weights: np.ndarray
    ) -> tuple[Any, np.ndarray]:
        """Predict and learn rows (n, d) with targets (n,) and weights (n,) on a fixed feature map.

        Returns the new state, and the predictions f(x) of the rows, (n,) or (n, classes). Each row is predicted before
        it is learned.
        """
        found: tuple[Any, np.ndarray] = learn_weighted_examples(state, rows, targets, weights)
        return found

    def _total_loss(self, state: Any, decisions: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> float:
        """Return the sum of the losses of predictions f(x) (n,) on targets (n,), multiplied by weights (n,)."""
        center, spread = state.center, state.spread
        return float(total_loss(state.loss, (decisions - center) / spread, (targets - center) / spread, weights))

    def fits(self, state: Any, begun: Any) -> bool:
        p, dim, rank = self.params, self.columns(self.dim), self.rank
        size, narrow = state.phi.size, state.slope.size + 2
        if size != rank + narrow and not (size == narrow and self.linear and p["design"] is None and dim > WIDE):
            return False
        kept = p["warm_up"] if state.n_seen < p["warm_up"] or p["follow"] else 0
        return (
            has_same_layout(state, begun, (*OWN, *CHANGING_LEAVES[p["features"]]))
            and map_fits(p, state.map, dim, rank)
            and state.n_seen >= 0
            and state.spread > 0.0
            and state.buffer_rows.shape == (kept, dim)
            and state.buffer_targets.shape == (kept,)
            and state.buffer_weights.shape == (kept,)
            and state.w.shape == state.phi.shape == (size,)
            and any(self._design(size, share).consistent(state.design) for share in EVERY)
        )
