"""Online Newton steps for any loss, on any feature map, with any design: the recommended learner.

    f = w^T phi,  phi = [map of x / scale, 1, y_last exp(-16 ||x - x_last||^2 / (2 width^2))]
    u = A^-1 phi,  q = phi^T u,  f' = argmin (f' - f)^2 / (2 q) + l(f', y)
    w <- w - l'(f') u,   A <- A + l''(f') phi phi^T where q > 1 / memory      (without a loss nothing changes)

So w minimizes ||w - w_old||_A^2 / 2 + l(w^T phi, y): the step is exact for the example at hand. Losses without
curvature take l'(f')^2 for it. With an endless memory, the squared loss and an exact design it is kernel ridge
regression on the map. With a finite one steps stop shrinking once a direction holds as much as `memory` examples, and
so follow what changes; most examples then cost one solve and no update. Measured, mistakes in % with memory None, 100,
20, 3: preferences that turn around over 450,000 examples 30.6, 25.7, 25.6, 26.8 (200 Fourier features 30.2, 25.4, 24.9,
25.6); ijcnn1, which stands still, 4.8, 4.8, 4.8, 4.7; spambase 9.1, 9.1, 9.0, 8.9.

The last feature is the vote of the example before, as of a nearest neighbour. Where streams repeat themselves it is
what is needed (adversarial german-1 of Wen, Zhang et al.: 5.1% mistakes with it, 40% without, repeating the last label
5.7); elsewhere its weight stays near zero (no figure below moves by more than 0.2). `recent=False` leaves it out.

Nothing has to be known before: scale (standard deviations of the features; for regression mean and deviation of the
targets), width (their median distance) and landmarks come from the first `warm_up` examples. While these arrive, the
map is made again after 1, 2, 4, ... of them, and all of them are learned again on it; then map and scale stay. Features
that leave the range of these examples by more than half of it are cut there, or a column of row numbers would put all
rows far from all landmarks. Rows that move elsewhere altogether want Fourier features, which know no place. Cost of an
example: O(size (d + rank)) for the map and a row of the design, O(rank^2) for an exact one.

Measured, every round counted, mistakes in % on german, svmguide3, spambase (20 permutations), ijcnn1 (5):
100 landmarks 26.0, 18.0, 8.4, 4.8; 400 Fourier features 26.5, 18.2, 8.6, 3.5; half the rank, from sketches, on german,
svmguide3, spambase, ijcnn1 (3 permutations, one) 25.0, 18.6, 10.2, 6.5.
"""

from typing import Any, NamedTuple

import numpy as np

from onepass.design.contract import solve
from onepass.design.design import Design
from onepass.design.exact import Exact
from onepass.estimator.newton import newton_step
from onepass.features.contract import apart, embed
from onepass.features.fourier import fourier
from onepass.features.kernels import median_distance
from onepass.features.landmarks import Landmarks, nystrom
from onepass.features.sketched_nystrom import SketchedNystromState, sketched_nystrom
from onepass.foundation import check
from onepass.foundation.check import shown
from onepass.foundation.generic import compiled
from onepass.foundation.linalg import dot
from onepass.foundation.registry import savable
from onepass.foundation.state import as_begun, filled, is_abstract, zeros
from onepass.learner import contract
from onepass.learner.budget import kernel_width
from onepass.learner.consistency import landmarks_fit, sketch_fits
from onepass.learner.learner import Learner
from onepass.learner.losses import Loss, implicit_slope, loss_named, weight

CONSTANT = 1e-9  # of a column's largest entry: one that spreads less does not vary
MAPS = ("nystrom", "fourier", "sketched")
NEAR = 16.0  # how much narrower than the map's kernel the vote of the last example is, in squares of the width


class KernelNewtonState(NamedTuple):
    """map, of rank features; design: A; w, phi (rank + 2,); inverse_scale, scaled (dim,), the latter scratch.

    low, high (dim,): where features are cut; center, spread: of the targets, which are learned in these units.
    last (dim,), scaled, and last_target: the example before; nearness: NEAR / (2 width^2), -1 without its vote.
    early (warm_up, dim), targets (warm_up,): the first examples, none once all of them were used; least: 1 / memory.
    """

    map: Any
    design: Any
    w: np.ndarray
    phi: np.ndarray
    inverse_scale: np.ndarray
    low: np.ndarray
    high: np.ndarray
    center: float
    spread: float
    scaled: np.ndarray
    last: np.ndarray
    last_target: float
    nearness: float
    early: np.ndarray
    targets: np.ndarray
    seen: int
    least: float
    loss: Loss


@compiled
def decided(state, x):
    """f(x) in units of the targets' spread; leaves phi in state.phi."""
    for j in range(x.size):
        state.scaled[j] = min(max(x[j], state.low[j]), state.high[j]) * state.inverse_scale[j]
    rank, vote = state.phi.size - 2, 0.0
    embed(state.map, state.scaled, state.phi[:rank])
    if state.nearness >= 0.0:
        square = 0.0
        for j in range(x.size):
            gap = state.scaled[j] - state.last[j]
            square += gap * gap
        vote = state.last_target * np.exp(-state.nearness * square)
    state.phi[rank], state.phi[rank + 1] = 1.0, vote
    return float(dot(state.w, state.phi))


@apart.for_state(KernelNewtonState)
def apart_newton(state):
    return KernelNewtonState(
        map=apart(state.map),
        design=state.design,
        w=state.w,
        phi=np.empty(state.phi.size),
        inverse_scale=state.inverse_scale,
        low=state.low,
        high=state.high,
        center=state.center,
        spread=state.spread,
        scaled=np.empty(state.scaled.size),
        last=state.last,
        last_target=state.last_target,
        nearness=state.nearness,
        early=state.early,
        targets=state.targets,
        seen=state.seen,
        least=state.least,
        loss=state.loss,
    )


@contract.decision.for_state(KernelNewtonState)
def decision(state, x):
    return state.center + state.spread * decided(state, x)


@contract.step.for_state(KernelNewtonState)
def step(state, x, target):
    f, y = decided(state, x), (target - state.center) / state.spread
    design, phi, seen = state.design, state.phi, state.seen
    u = solve(design, phi)
    q = float(dot(u, phi))
    if q > 0.0:
        gradient = implicit_slope(state.loss, f, y, q)
        if gradient != 0.0:
            if q > state.least:
                curvature = weight(state.loss, f - q * gradient, y, gradient)
                design = newton_step(design, state.w, phi, u, -gradient, curvature)
            else:
                for j in range(u.size):
                    state.w[j] -= gradient * u[j]
    for j in range(x.size):
        state.last[j] = state.scaled[j]
    if seen < state.targets.size:
        for j in range(x.size):
            state.early[seen, j] = x[j]
        state.targets[seen] = target
    return KernelNewtonState(
        map=state.map,
        design=design,
        w=state.w,
        phi=phi,
        inverse_scale=state.inverse_scale,
        low=state.low,
        high=state.high,
        center=state.center,
        spread=state.spread,
        scaled=state.scaled,
        last=state.last,
        last_target=y,
        nearness=state.nearness,
        early=state.early,
        targets=state.targets,
        seen=seen + 1,
        least=state.least,
        loss=state.loss,
    ), state.center + state.spread * f


def deviations(rows: np.ndarray) -> np.ndarray:
    """Standard deviations of the columns, 1 for those that are constant but for rounding."""
    found = rows.std(axis=0)
    return np.where(found > CONSTANT * np.abs(rows).max(axis=0), found, 1.0)


@savable
class KernelNewton(Learner):
    """Online Newton steps on features of the Gaussian kernel; see onepass.learner.kernel_newton.

    features: "nystrom" (default; size landmarks), "fourier" (size features) or "sketched" (size landmarks, sketches of
        size rows).
    size: at least 2, even for Fourier features (default 100).
    rank: leading directions of the landmarks, from 1 to size; default None: size, sketched: half of it. None for
        Fourier features.
    design: of dim rank + 2, or size + 2 for Fourier features, in float64, with its own reg, the penalty on ||w||^2;
        default None: an exact one.
    reg: of the exact one, above 0 (default 0.1).
    width: of the kernel, in standard deviations if these are divided by, above 0; default None: the median distance.
    width_factor: by which the width is multiplied, above 0 (default 1.0).
    standardize: divide features by their standard deviations and cut them where they leave their range by half of it,
        for regression learn (y - mean) / deviation, of which loss_width is then a multiple (default True).
    recent: whether the example before votes (default True).
    memory: how many examples weigh in a direction, above 0 (default 20.0): one counts half after 0.69 memory examples
        of that direction, and what is not seen is not forgotten (docs/forgetting.md); None: all of them, for streams
        that stand still.
    warm_up: examples that decide on scale, width and landmarks, at least 2; default None: 4 size.
    loss: "squared_hinge" (default), "hinge" or "logistic" for targets -1 and 1, "squared", "huber" or
        "epsilon_insensitive" for numbers.
    loss_width: of huber and epsilon_insensitive, above 0 (default 1.0).
    seed: of landmarks, frequencies and sketches, from 0 (default) to 2^32 - 1.
    ValueError for sizes that do not fit.

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
        reg: float = 0.1,
        width: float | None = None,
        width_factor: float = 1.0,
        standardize: bool = True,
        recent: bool = True,
        memory: float | None = 20.0,
        warm_up: int | None = None,
        loss: str = "squared_hinge",
        loss_width: float = 1.0,
        seed: int = 0,
    ):
        features = check.choice("features", features, MAPS)
        size = check.integer("size", size, 2)
        if features == "fourier" and (size % 2 or rank is not None):
            raise ValueError(f"size must be even for Fourier features and rank None, got {size} and {shown(rank)}")
        most = {"nystrom": size, "fourier": size, "sketched": max(size // 2, 1)}[features]
        rank = most if rank is None else check.integer("rank", rank, 1, size)
        if design is not None and not (isinstance(design, Design) and design.dim == rank + 2):
            raise ValueError(f"design must be a design of dim={rank + 2}, two more than features, got {shown(design)}")
        if design is not None and design.dtype != np.float64:
            raise ValueError(f"design must be in float64 here, got {shown(design)}")
        loss_named(loss, loss_width)
        self.params = {
            "features": features,
            "size": size,
            "rank": None if features == "fourier" else rank,
            "design": design,
            "reg": check.positive("reg", reg),
            "width": None if width is None else kernel_width(width),
            "width_factor": check.positive("width_factor", width_factor),
            "standardize": bool(check.choice("standardize", standardize, (False, True))),
            "recent": bool(check.choice("recent", recent, (False, True))),
            "memory": None if memory is None else check.positive("memory", memory),
            "warm_up": check.integer("warm_up", 4 * size if warm_up is None else warm_up, 2),
            "loss": loss,
            "loss_width": check.positive("loss_width", loss_width),
            "seed": check.integer("seed", seed, 0, check.LARGEST_SEED),
        }
        self._state = None

    @property
    def design(self) -> Design:
        """The design as it was given, or the exact one."""
        p = self.params
        rank = p["size"] if p["rank"] is None else p["rank"]
        return Exact(dim=rank + 2, reg=p["reg"]) if p["design"] is None else p["design"]

    def _begin(self, dim: int) -> KernelNewtonState:
        p, design, most = self.params, self.design, np.finfo(np.float64).max
        return KernelNewtonState(
            map=self._map(zeros(1, dim), 1.0),
            design=design.started(),
            w=zeros(design.dim),
            phi=zeros(design.dim),
            inverse_scale=zeros(dim),
            low=filled(-most, dim),
            high=filled(most, dim),
            center=0.0,
            spread=1.0,
            scaled=zeros(dim),
            last=zeros(dim),
            last_target=0.0,
            nearness=-1.0,
            early=zeros(p["warm_up"], dim),
            targets=zeros(p["warm_up"]),
            seen=0,
            least=1.0 / p["memory"] if p["memory"] else 0.0,
            loss=loss_named(p["loss"], p["loss_width"]),
        )

    def _map(self, rows: np.ndarray, width: float) -> Any:
        """The map of these scaled rows."""
        p, rank = self.params, self.design.dim - 2
        if p["features"] == "fourier":
            return fourier(p["size"], rows.shape[1], width, p["seed"])
        if is_abstract():
            features = Landmarks(
                points=zeros(1, rows.shape[1]), z=zeros(1, rank), near=zeros(1), precision=0.5 / width**2
            )
            if p["features"] == "nystrom":
                return features
            square, none = zeros(p["size"], p["size"]), zeros(0, p["size"])
            return SketchedNystromState(
                features=features,
                points=rows,
                pm=zeros(p["size"], 1),
                pp=square,
                vectors=none,
                values=zeros(0),
                used=1,
                blocks=1,
                seed=p["seed"],
            )
        some = np.random.default_rng(p["seed"]).permutation(len(rows))[: p["size"]]
        if p["features"] == "nystrom":
            return nystrom(rows[some], 0.5 / width**2, rank)
        return sketched_nystrom(rows, len(rows), some, p["size"], rank, 1, p["seed"], 0.5 / width**2)

    def _learn(self, rows: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """Learns up to the next remake of the map, again and again; the decisions."""
        done, decisions, warm_up = 0, np.empty(len(rows)), self.params["warm_up"]
        while done < len(rows):
            seen, stop = self._state.seen, len(rows)
            if seen < warm_up:
                stop = min(done + min(1 << seen.bit_length(), warm_up) - seen, stop)
            self._state, decisions[done:stop] = contract.progress(self._state, rows[done:stop], targets[done:stop])
            done, seen = stop, self._state.seen
            if seen == warm_up or (seen < warm_up and seen & (seen - 1) == 0):
                self._remake()
        return decisions

    def _remake(self) -> None:
        """Scale, width and map from the first examples, and all of them learned again."""
        p, s = self.params, self._state
        rows, targets = s.early[: s.seen], s.targets[: s.seen]
        over, low, high, center, spread = s.seen == p["warm_up"], s.low, s.high, 0.0, 1.0
        inverse_scale = np.ones(self.dim)
        if p["standardize"]:
            inverse_scale = 1.0 / deviations(rows)
            if not self.classifies:
                center, spread = float(targets.mean()), float(deviations(targets[:, None])[0])
            if over:
                least, most = rows.min(axis=0), rows.max(axis=0)
                margin = 0.5 * most - 0.5 * least
                low, high = least - margin, most + margin
        scaled = np.ascontiguousarray(rows * inverse_scale)
        width = (median_distance(scaled) if p["width"] is None else p["width"]) * p["width_factor"]
        fresh = s._replace(
            map=self._map(scaled, width),
            design=self.design.started(),
            w=np.zeros_like(s.w),
            inverse_scale=inverse_scale,
            low=low,
            high=high,
            center=center,
            spread=spread,
            last=np.zeros(self.dim),
            last_target=0.0,
            nearness=0.5 * NEAR / width**2 if p["recent"] else -1.0,
            early=np.zeros((0, self.dim)),
            targets=np.zeros(0),
        )
        learned, _ = contract.progress(fresh, rows, targets)
        self._state = learned._replace(
            early=fresh.early if over else s.early, targets=fresh.targets if over else s.targets, seen=s.seen
        )

    def fits(self, state: Any, begun: Any) -> bool:
        p, dim, rank = self.params, self.dim, state.phi.size - 2
        own: tuple[str, ...] = (
            "design.",
            "center",
            "spread",
            "last_target",
            "nearness",
            "early",
            "targets",
            "seen",
        )
        mapped = True
        if p["features"] == "nystrom":
            own, mapped = (*own, "map."), landmarks_fit(state.map, dim, p["size"], rank)
        if p["features"] == "sketched":
            count = state.map.features.near.size
            own = (*own, "map.features.", "map.points", "map.pm", "map.vectors", "map.values", "map.used")
            mapped = landmarks_fit(state.map.features, dim, p["size"], rank) and sketch_fits(state.map, dim)
            mapped = mapped and state.map.pm.shape == (p["size"], count)
        kept = p["warm_up"] if state.seen < p["warm_up"] else 0
        return (
            as_begun(state, begun, own)
            and mapped
            and state.seen >= 0
            and state.spread > 0.0
            and state.early.shape == (kept, dim)
            and state.targets.shape == (kept,)
            and self.design.consistent(state.design)
        )
