"""One task in other packages: choose one of K disjoint linear models and learn, call by call.

`pip install 'onepass[peers]'`; packages that are not installed are left out. Every package follows its documentation
for LinUCB with one model per arm (VW: contextual-bandit features with squarecb exploration, which is not LinUCB).
"""

import time
from collections.abc import Callable
from importlib.util import find_spec

import numpy as np

from onepass.lab.benchmark.arms import call_microseconds
from onepass.lab.benchmark.shared_model import Line

ARMS, DIM = 1000, 50
Step = Callable[[np.ndarray], None]  # choose for a context (DIM,), learn the reward 0.5


def plain_numpy() -> Step:
    """Return a function that does one step of LinUCB in twelve lines of NumPy: choose an arm for a context and learn.

    The inverse matrices of all arms are in one array (K, d, d). A row is learned by the Sherman-Morrison formula.
    """
    inverses = np.tile(np.eye(DIM), (ARMS, 1, 1))
    moments, thetas = np.zeros((ARMS, DIM)), np.zeros((ARMS, DIM))

    def step(x: np.ndarray) -> None:
        seen = inverses @ x
        arm = int(np.argmax(thetas @ x + 0.1 * np.sqrt(seen @ x)))
        v = seen[arm]
        inverses[arm] -= np.outer(v, v) / (1.0 + x @ v)
        moments[arm] += 0.5 * x
        thetas[arm] = inverses[arm] @ moments[arm]

    return step


def mabwiser() -> Step:
    from mabwiser.mab import MAB, LearningPolicy

    model = MAB(list(range(ARMS)), LearningPolicy.LinUCB(alpha=0.1, l2_lambda=1.0))
    model.fit(list(range(ARMS)), [0.0] * ARMS, np.zeros((ARMS, DIM)))

    def step(x: np.ndarray) -> None:
        model.partial_fit([model.predict(x[None])], [0.5], x[None])

    return step


def contextualbandits() -> Step:
    from contextualbandits.online import LinUCB

    model = LinUCB(nchoices=ARMS, alpha=0.1)
    model.fit(np.zeros((ARMS, DIM)), np.arange(ARMS), np.zeros(ARMS))

    def step(x: np.ndarray) -> None:
        model.partial_fit(x[None], np.asarray(model.predict(x[None])).reshape(-1), np.array([0.5]))

    return step


def bayesianbandits() -> Step:
    from bayesianbandits import Arm, ContextualAgent, NormalRegressor, UpperConfidenceBound

    models = [Arm(a, learner=NormalRegressor(alpha=1.0, beta=1.0)) for a in range(ARMS)]
    agent = ContextualAgent(models, UpperConfidenceBound(alpha=0.8))

    def step(x: np.ndarray) -> None:
        agent.pull(x[None])
        agent.update(x[None], np.array([0.5]))

    return step


def vowpalwabbit() -> Step:
    import vowpalwabbit

    model = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet -q UA")

    def lines(x: np.ndarray, chosen: int = -1, chance: float = 1.0) -> list[str]:
        shared = "shared |U " + " ".join(f"f{j}:{value:.6g}" for j, value in enumerate(x))
        return [shared, *(f"0:-0.5:{chance} |A a={a}" if a == chosen else f"|A a={a}" for a in range(ARMS))]

    def step(x: np.ndarray) -> None:
        chances = model.predict(lines(x))
        arm = int(np.argmax(chances))
        model.learn(lines(x, arm, chances[arm]))

    return step


PEERS: dict[str, tuple[Callable[[], Step], int]] = {
    "mabwiser": (mabwiser, 10),
    "contextualbandits": (contextualbandits, 20),
    "bayesianbandits": (bayesianbandits, 5),
    "vowpalwabbit": (vowpalwabbit, 20),
}


def microseconds(make: Callable[[], Step], rounds: int) -> float:
    """Return the mean microseconds of the step that `make` returns, over `rounds` rounds after an untimed first one."""
    step, contexts = make(), np.random.default_rng(0).standard_normal((rounds + 1, DIM))
    step(contexts[0])
    start = time.perf_counter()
    for x in contexts[1:]:
        step(x)
    return (time.perf_counter() - start) / rounds * 1e6


def speed_lines() -> list[Line]:
    """Measure NumPy and every installed package, and return lines of the table that `onepass bench` prints."""
    ours = call_microseconds("float64", 0)
    task = "the same task (K=1,000 d=50, first rounds) in"
    lines = [(f"{task} plain NumPy", spent := microseconds(plain_numpy, 500), "us", spent / ours, "times onepass")]
    for name, (make, rounds) in PEERS.items():
        if find_spec(name) is not None:
            spent = microseconds(make, rounds)
            lines.append((f"{task} {name}", spent, "us", spent / ours, "times onepass"))
    return lines
