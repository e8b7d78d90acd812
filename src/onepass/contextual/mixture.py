"""Several models side by side, weighed by how well they have predicted; a map made again while rows are few; an alarm.

    w_m ~ exp(-TRUST (L_m - L_min) / (2 L_min / n)),  L_m = sum of e^2 as it was before each row;  below FEW of the
    largest: 0
    mean_a = prior + sum_m w_m phi_m^T theta_ma,   width_a = sum_m w_m sqrt(phi_m^T P_ma phi_m)
    sigma = sum_m w_m sqrt(S_m / n),               S_m = sum of e^2 / (1 + h)

Every model learns from every reward, of the arm that was played. After 1, 2, 4, ..., 256 rows the views (view.py) are
made again of all rows so far, which are then learned again; later they stay.

Alarm of change: g <- max(0, g + min(e^2 / ((1 + h) sigma^2), 20) - 2) of the model with the largest weight, 0 while
recent rewards are no worse than ever; above `patience` all is forgotten but the views.
"""

from typing import NamedTuple

import numpy as np

from onepass.contextual.model import NEVER, Model, begin, begun, learn, look
from onepass.contextual.rewards import FAR, Rewards, no_rewards, paid, prior
from onepass.contextual.view import SPARSE, View, embedded, no_view, views
from onepass.foundation.generic import compiled
from onepass.foundation.state import zeros

TRUST = 0.2  # of the evidence: .1 to .4 are alike (docs/recommended.md)
FEW = 0.01  # of the largest weight: models below are not asked
EXPECTED = 2.0  # twice what e^2 / ((1 + h) sigma^2) is on average
SURPRISE = 20.0  # the most that one reward adds to the suspicion
SETTLED = 100  # rows before which there is no alarm
SMALLEST = 1e-12  # a loss that small is none
STANDARD, RAW = 0, 1
KERNEL, COLUMNS = True, False
# view; kernel and columns, or columns alone; drift; reg, None: the user's
MODELS = (
    (STANDARD, KERNEL, 0.0, None),
    (STANDARD, COLUMNS, 0.0, None),
    (RAW, KERNEL, 0.0, None),
    (STANDARD, COLUMNS, 1e-4, 1.0),
    (STANDARD, COLUMNS, 1e-3, 1.0),
    (RAW, COLUMNS, 0.0, None),
)
NAMES = ("kernel", "linear", "raw kernel", "drifting linear", "fast linear", "raw linear")
SPARSE_MODEL = 5  # the one where rows are sparse; elsewhere it says little that others do not


class Mixture(NamedTuple):
    """views; models, as MODELS, those that are not in use without slots; used (M,); losses, noises (M,): L and S.

    clock, known (1,): rows learned, and since the last alarm; suspicion (1,): g; alarms (1,): how many there were.
    rows (256, d), arms, gains (256,): the first rows, the slots that were played and their rewards.
    """

    views: tuple[View, View]
    models: tuple[Model, ...]
    used: np.ndarray
    losses: np.ndarray
    noises: np.ndarray
    rewards: Rewards
    clock: np.ndarray
    known: np.ndarray
    suspicion: np.ndarray
    alarms: np.ndarray
    rows: np.ndarray
    arms: np.ndarray
    gains: np.ndarray


@compiled
def weights(state):
    """w (M,)."""
    w, least, n = np.zeros(state.losses.size), np.inf, max(float(state.known[0]), 1.0)
    for m in range(w.size):
        if state.used[m]:
            least = min(least, state.losses[m])
    for m in range(w.size):
        if state.used[m]:
            w[m] = np.exp(-TRUST * (state.losses[m] - least) * n / (2.0 * max(least, SMALLEST)))
            if w[m] < FEW:
                w[m] = 0.0
    return w / max(w.sum(), FEW)


@compiled
def sigma_of(state, w):
    """The residual that exploration is in units of."""
    total, n = 0.0, max(float(state.known[0]), 1.0)
    for m in range(w.size):
        total += w[m] * np.sqrt(state.noises[m] / n)
    return total


@compiled
def survey(state, rows, slots):
    """Means and widths (K,) of arms in slots for rows (K, d), or (1, d) of all arms alike; and sigma."""
    w = weights(state)
    means, widths = np.full(slots.size, prior(state.rewards)), np.zeros(slots.size)
    needs = np.zeros(2, np.bool_)
    for m in range(len(state.models)):
        if w[m] > 0.0:
            needs[state.models[m].sees] = True
    for i in range(rows.shape[0]):
        for v in range(2):
            if needs[v]:
                phi = embedded(state.views[v], rows[i])
                first, last = (0, slots.size) if rows.shape[0] == 1 else (i, i + 1)
                for m in range(len(state.models)):
                    model = state.models[m]
                    if model.sees == v and w[m] > 0.0:
                        for a in range(first, last):
                            mean, square = look(model, slots[a], phi[model.start :], state.clock[0])
                            means[a] += w[m] * mean
                            widths[a] += w[m] * np.sqrt(square)
    return means, widths, sigma_of(state, w)


@compiled
def improve(state, slot, standard, raw, now, reward):
    """Let every model learn a reward of the arm in a slot, from phi of both views: e, h of the best one."""
    w = weights(state)
    level, best, error, spread = prior(state.rewards), np.argmax(w), 0.0, 0.0
    for m in range(len(state.models)):
        if state.used[m]:
            model = state.models[m]
            phi = standard if model.sees == STANDARD else raw
            e, h = learn(model, slot, phi[model.start :], now, reward - level, FAR * state.rewards.spread[0])
            state.losses[m] += e * e
            state.noises[m] += e * e / (1.0 + h)
            if m == best:
                error, spread = e, h
    state.known[0] += 1
    return error, spread, best


@compiled
def forget(state):
    """Forget everything but the views and the rewards' unit."""
    for m in range(len(state.models)):
        model = state.models[m]
        for slot in range(model.last.size):
            begin(model, slot)
        state.losses[m], state.noises[m] = 0.0, 0.0
    for i in range(state.arms.size):
        state.arms[i] = NEVER
    state.known[0], state.suspicion[0] = 0, 0.0
    state.alarms[0] += 1


@compiled
def take(state, x, slot, reward, patience):
    """Learn one row x (d,) and its reward; patience 0: there are no alarms."""
    seen = state.clock[0]
    if seen < state.arms.size:
        state.rows[seen], state.arms[seen], state.gains[seen] = x, slot, reward
    paid(state.rewards, reward)
    e, h, best = improve(state, slot, embedded(state.views[0], x), embedded(state.views[1], x), seen, reward)
    state.clock[0] += 1
    variance = state.noises[best] / state.known[0]
    if variance > 0.0:
        surprise = min(e * e / ((1.0 + h) * variance), SURPRISE)
        state.suspicion[0] = max(0.0, state.suspicion[0] + surprise - EXPECTED)
    if state.rewards.recent[0] * state.rewards.seen[0] >= state.rewards.total[0]:
        state.suspicion[0] = 0.0
    if 0.0 < patience < state.suspicion[0] and state.known[0] > SETTLED:
        forget(state)


@compiled
def learn_again(state):
    """Learn the first rows from nothing, on views that were made anew."""
    state.known[0] = 0
    for m in range(len(state.models)):
        state.losses[m], state.noises[m] = 0.0, 0.0
    for i in range(min(state.clock[0], state.arms.size)):
        if state.arms[i] != NEVER:
            x = state.rows[i]
            improve(state, state.arms[i], embedded(state.views[0], x), embedded(state.views[1], x), i, state.gains[i])


def begun_mixture(dim: int, warm_up: int, reg: float) -> Mixture:
    """Nothing is known."""
    nothing = no_view(dim)
    return Mixture(
        views=(nothing, nothing),
        models=models((nothing, nothing), 0, reg, np.zeros(len(MODELS), np.bool_)),
        used=zeros(len(MODELS), dtype=np.bool_),
        losses=zeros(len(MODELS)),
        noises=zeros(len(MODELS)),
        rewards=no_rewards(),
        clock=zeros(1, dtype=np.int64),
        known=zeros(1, dtype=np.int64),
        suspicion=zeros(1),
        alarms=zeros(1, dtype=np.int64),
        rows=zeros(warm_up, dim),
        arms=zeros(warm_up, dtype=np.int64),
        gains=zeros(warm_up),
    )


def models(made: tuple[View, View], slots: int, reg: float, used: np.ndarray) -> tuple[Model, ...]:
    """Models of so many arms on these views, none of which has learned."""
    found = []
    for (view, kernel, drift, own), wanted in zip(MODELS, used, strict=True):
        landmarks, dim = made[view].landmarks.shape
        start = 0 if kernel else landmarks
        features = landmarks + dim + 1 - start if wanted else 0
        found.append(begun(slots if wanted else 0, features, view, start, own or reg, drift))
    return tuple(found)


def choice(rows: np.ndarray, landmarks: int) -> np.ndarray:
    """Which models are used, (M,): where rows are sparse the raw linear one alone, else all others that say more."""
    used = np.array([kernel == COLUMNS or landmarks > 0 for _, kernel, _, _ in MODELS])
    used[SPARSE_MODEL] = False
    return used if np.mean(rows == 0.0) <= SPARSE else np.arange(len(MODELS)) == SPARSE_MODEL


def bytes_of(used: np.ndarray, landmarks: int, dim: int) -> int:
    """Memory of an arm."""
    sizes = [dim + 1 + (landmarks if kernel else 0) for _, kernel, _, _ in MODELS]
    return sum(2 * n * (n + 1) + 4 * n for n, wanted in zip(sizes, used, strict=True) if wanted)


def remade(state: Mixture, slots: int, arms: int, reg: float, landmarks: int, memory: float, seed: int) -> Mixture:
    """The state with views of all rows so far, which are learned again; landmarks are fewer where the arms known would
    take more than `memory` bytes."""
    rows = state.rows[: state.clock[0]]
    used, size = choice(rows, landmarks), landmarks
    while size > 0 and arms * bytes_of(used, size, rows.shape[1]) > memory:
        size //= 2
    used = choice(rows, size)
    made = views(rows, size, np.random.default_rng([seed, len(rows)]))
    anew = state._replace(views=made, models=models(made, slots, reg, used), used=used)
    learn_again(anew)
    return anew


def grown(state: Mixture, slots: int) -> Mixture:
    """The state with room for so many arms."""
    each = []
    for model, used in zip(state.models, state.used, strict=True):
        held = len(model.last)
        more = begun(slots if used else 0, model.theta.shape[1], model.sees, model.start, model.reg, model.drift)
        for name in ("theta", "inverse", "last"):
            getattr(more, name)[:held] = getattr(model, name)
        each.append(more)
    return state._replace(models=tuple(each))


def consistent(state: Mixture, begun: Mixture, arms: int) -> bool:
    """Whether arrays fit together, and a state that has begun; arms: slots that must be there."""
    dim, rows = begun.rows.shape[1], len(begun.arms)
    seen, top = int(state.clock[0]) if state.clock.shape == (1,) else NEVER, max(arms, int(state.arms.max(initial=0)) + 1)
    whole = all(
        view.center.shape == view.unit.shape == (dim,)
        and view.limit.shape == view.scale.shape == view.precision.shape == (1,)
        and view.landmarks.shape[1] == dim
        and view.half.shape == (len(view.landmarks), len(view.landmarks))
        for view in state.views
    )
    for model, first, used, (view, kernel, _, _) in zip(state.models, begun.models, state.used, MODELS, strict=True):
        landmarks = len(state.views[view].landmarks)
        start = 0 if kernel else landmarks
        n = landmarks + dim + 1 - start if used else 0
        slots = len(model.last)
        fixed = (model.sees, model.reg, model.drift) == (first.sees, first.reg, first.drift) and model.start == start
        shapes = model.theta.shape == (slots, n) and model.inverse.shape == (slots, n * (n + 1) // 2)
        times = bool(((model.last >= NEVER) & (model.last <= seen)).all())
        whole = whole and fixed and shapes and times and slots >= (top if used else 0)
    flat = ("used", "losses", "noises", "clock", "known", "suspicion", "alarms", "rows", "arms", "gains")
    same = all(getattr(state, name).shape == getattr(begun, name).shape for name in flat)
    paid = all(one.shape == other.shape for one, other in zip(state.rewards, begun.rewards, strict=True))
    counts = 0 <= int(state.known[0]) <= seen == int(state.rewards.seen[0]) if same and paid else False
    return whole and same and paid and counts and bool((state.arms >= NEVER).all()) and rows == len(state.arms)
