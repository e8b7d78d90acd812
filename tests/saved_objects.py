"""One small object of every kind that a file can hold, which has learned something, and functions that use it."""

import numpy as np

import onepass as op
from onepass.design import DyadicSketches, RandomProjection
from onepass.features import (
    Chain,
    Concatenate,
    Fourier,
    GaussianProjection,
    Intercept,
    Nystrom,
    OuterProduct,
    Standardize,
)

DIM = 4
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((40, DIM))
REWARDS = ROWS[:, 0] + 0.1 * RNG.standard_normal(40)
SIGNS = np.where(REWARDS < 0.0, -1.0, 1.0)
NAMES = ["a", 3, ("b", None), 2.5]


def design(made):
    return lambda: made().append(ROWS)


def shared_bandit(made):
    def make():
        bandit = made()
        for row, reward in zip(ROWS, REWARDS, strict=True):
            bandit.learn(row, float(reward))
        return bandit

    return make


def per_arm(made):
    def make():
        bandit = made()
        bandit.learn(ROWS, REWARDS, [NAMES[i % 3] for i in range(len(ROWS))])
        bandit.add_arm(NAMES[3])
        bandit.remove_arm(NAMES[1])
        return bandit

    return make


def factors():
    bandit = op.Bandit(op.Disjoint(op.Ridge(op.Exact(dim=2))), features=OuterProduct(left=2, right=2))
    for i in range(9):
        bandit.learn(op.Factors(ROWS[i, :2], [1.0, float(i % 3)]), REWARDS[i], arm=i % 3)
    return bandit


def kernel_learner(made):
    def make():
        learner = made()
        return learner.partial_fit(ROWS, SIGNS if learner.is_classifier else REWARDS)

    return make


def kernel_bandit(made, rows=False):
    def make():
        bandit = made()
        for i in range(12):
            bandit.learn(ROWS[i] if rows else None, float(REWARDS[i]), None if rows else i)
        return bandit

    return make


SKETCH = {"budget": 6, "rank": 3, "sketch_size": 6, "sample_size": 5, "blocks": 2, "update_every": 3}


def records(size):
    """Return Records that know names, share columns, and have seen numbers."""
    rows = [{"a": f"v{k}", "n": 1.5 * k, "tags": ["x", "y"]} for k in range(size)]
    return op.Records(size=size, hashed=2, standardize=True).learn(rows)


def interaction_bandit():
    """Return an InteractionBandit whose arms have had rewards."""
    bandit = op.InteractionBandit(records(8), records(6), recent=3)
    for k in range(5):
        decision = bandit.decide({"a": f"v{k}", "n": k}, {f"arm {k}": {"a": "v1"}, 7: {"n": 2.0}}, id=str(k))
        bandit.learn(decision, float(k))
    return bandit


def record_bandit(arms):
    """Return a maker of a ContextualBandit on dictionaries, whose vocabulary has grown after its warm-up."""

    def make():
        bandit = op.ContextualBandit(context=records(8), item=records(6), warm_up=4, n_landmarks=3)
        for k in range(8):
            decision = bandit.decide({"a": f"v{k % 3}", "n": k, f"key {k}": True}, arms(k), id=str(k))
            bandit.learn(decision, float(k))
        return bandit

    return make


def bandit_with_partial_views():
    """Return a ContextualBandit that is about to rebuild its views from its first rows."""
    rng, bandit = np.random.default_rng(5), op.ContextualBandit()
    bandit.learn(rng.standard_normal((257, DIM)), rng.random(257), (np.arange(257) % 3).tolist())
    return bandit


def recommender():
    """Return a Recommender whose weights, directions and neighbours have learned."""
    rng, made = np.random.default_rng(6), op.Recommender(dim=4)
    made.learn(rng.integers(40, size=560).tolist(), rng.integers(12, size=560).tolist(), time=np.arange(560) * 600.0)
    return made


def with_features(k):
    return {f"arm {k % 3}": {"a": "v1"}, 7: {"n": 2.0}}


OBJECTS = {
    "Exact": design(lambda: op.Exact(dim=DIM, reg=0.37)),
    "Exact, float32": design(lambda: op.Exact(dim=DIM, reg=0.37, dtype="float32")),
    "FrequentDirections": design(lambda: op.FrequentDirections(dim=DIM, size=1, reg=0.37, compensation=0.5)),
    "Dyadic": design(lambda: op.Dyadic(dim=DIM, size=1, error=20.0, reg=0.37)),
    "DyadicSketches": design(
        lambda: DyadicSketches(op.FrequentDirections(dim=DIM, size=1, reg=0.37, compensation=0.5), error=2.0)
    ),
    "RandomProjection": design(lambda: RandomProjection(dim=DIM, size=2, reg=0.37)),
    "ProjectorSplitting": design(lambda: op.ProjectorSplitting(dim=DIM, rank=2, reg=0.37)),
    "ContextualBandit": per_arm(lambda: op.ContextualBandit(warm_up=16, n_landmarks=6)),
    "ContextualBandit, views half made": bandit_with_partial_views,
    "ContextualBandit, records": record_bandit(lambda k: ["arm 1", 7]),
    "ContextualBandit, crossed": record_bandit(with_features),
    "Records": lambda: records(8),
    "InteractionBandit": interaction_bandit,
    "OFUL": shared_bandit(lambda: op.OFUL(dim=DIM)),
    "LinTS": shared_bandit(lambda: op.LinTS(dim=DIM)),
    "CBRAP": shared_bandit(lambda: op.CBRAP(dim=DIM, size=2)),
    "OnlineNewton": shared_bandit(lambda: op.Bandit(op.OnlineNewton(op.Exact(dim=DIM)))),
    "HvtUCB": shared_bandit(lambda: op.HvtUCB(dim=DIM)),
    "HeavyOFUL": shared_bandit(lambda: op.HeavyOFUL(dim=DIM)),
    "CRTM": shared_bandit(lambda: op.CRTM(dim=DIM)),
    "TOFU": shared_bandit(lambda: op.TOFU(dim=DIM)),
    "Nystrom": shared_bandit(lambda: op.Bandit(op.Ridge(op.Exact(dim=5)), features=Nystrom(ROWS[:5], op.RBF(2.0)))),
    "Standardize": shared_bandit(lambda: op.Bandit(op.Ridge(op.Exact(dim=DIM)), features=Standardize(dim=DIM))),
    "Chain": shared_bandit(lambda: op.Bandit(op.Ridge(op.Exact(dim=5)), features=Chain(
        Standardize(dim=DIM), Concatenate(Intercept(dim=DIM), Fourier(dim=DIM, size=4))
    ))),
    "a map": lambda: Chain(Standardize(dim=DIM), Fourier(dim=DIM, size=6)).learn(ROWS),
    "a projection": lambda: GaussianProjection(dim=DIM, size=2),
    "disjoint": per_arm(lambda: op.LinUCB(dim=DIM, model="disjoint")),
    "disjoint sketches": per_arm(lambda: op.CBSCFD(dim=DIM, size=1, model="disjoint")),
    "disjoint, one state an arm": per_arm(lambda: op.DBSLinUCB(dim=DIM, size=1, error=20.0, model="disjoint")),
    "hybrid": per_arm(lambda: op.LinUCB(dim=DIM, model="hybrid")),
    "factors": factors,
    "RBP": kernel_learner(lambda: op.learner.RBP(budget=5)),
    "BPAS": kernel_learner(lambda: op.learner.BPAS(budget=5)),
    "BOGD": kernel_learner(lambda: op.learner.BOGD(budget=5, loss="huber")),
    "Projectron": kernel_learner(lambda: op.learner.Projectron(budget=5)),
    "KOGD": kernel_learner(lambda: op.learner.KOGD(loss="squared")),
    "FOGD": kernel_learner(lambda: op.learner.FOGD(budget=5, loss="squared")),
    "NOGD": kernel_learner(lambda: op.learner.NOGD(budget=5, rank=2)),
    "SkeGD": kernel_learner(lambda: op.learner.SkeGD(**SKETCH)),
    "FORKS": kernel_learner(lambda: op.learner.FORKS(**SKETCH)),
    "PROSNKONS": kernel_learner(lambda: op.learner.PROSNKONS(budget=8)),
    "KernelNewton": kernel_learner(lambda: op.KernelNewton(size=6)),
    "KernelNewton, warming up": kernel_learner(lambda: op.KernelNewton(size=6, warm_up=100)),
    "KernelNewton, Fourier": kernel_learner(lambda: op.KernelNewton(features="fourier", size=6)),
    "KernelNewton, sketched": kernel_learner(lambda: op.KernelNewton(features="sketched", size=6, rank=3)),
    "KernelNewton, a design": kernel_learner(lambda: op.KernelNewton(size=4, design=op.Exact(dim=6).append(np.eye(6)))),
    "GPUCB": kernel_bandit(lambda: op.GPUCB(ROWS, 2.0 * op.RBF(1.5))),
    "GPUCB, changing arms": kernel_bandit(lambda: op.GPUCB(None, op.Matern(2.5, 1.0) + op.Linear()), rows=True),
    "BKB": kernel_bandit(lambda: op.BKB(ROWS, op.RBF(1.5), incremental=True)),
    "BKB, to be fitted": kernel_bandit(lambda: op.BKB(ROWS, op.RBF(1.5), fit_after=30)),
    "classifier": lambda: op.OnlineKernelClassifier(op.learner.RBP(budget=5)).fit(ROWS, np.array(["a", "b", "c"])[:3][
        np.digitize(REWARDS, [-0.5, 0.5])
    ]),
    "Recommender": recommender,
    "regressor": lambda: op.OnlineKernelRegressor(op.learner.KOGD(loss="squared")).fit(ROWS, REWARDS),
}  # fmt: skip


def use(owner):
    """Ask, let learn, ask again."""
    if isinstance(owner, op.extend.Design):
        rows = np.ones((3, owner.dim))
        for batch in (rows[0], rows):
            owner.append(batch)
            owner.solve(rows[0])
            owner.inverse_quadratic(rows)
            owner.root(rows[0])
        return owner.log_det(), owner.error_bound(), owner.memory_usage()
    if isinstance(owner, op.Records):
        rows = [{"a": "v1", "n": 2.0}, {"new": True, "a": None}]
        return owner.transform(rows), owner.learn(rows).transform(rows), owner.memory_usage(), repr(owner)
    if isinstance(owner, op.Recommender):
        owner.learn([3, "new", 3], [5, "new", 7], time=[4e5, 4e5 + 1, 4e5 + 2], reward=[1.0, 2.0, 0.5])
        return owner.recommend([3, "new", "nobody"], 5), owner.score(3), owner.memory_usage(), repr(owner)
    if isinstance(owner, op.Bandit):
        return USES[type(owner.model).__name__](owner)
    if hasattr(owner, "feature_names"):
        rows = np.ones((2, owner.input_dim))
        return owner.learn(rows).transform(rows), owner.feature_names(), repr(owner)
    if hasattr(owner, "partial_fit"):
        dim = getattr(owner, "n_features_in_", getattr(owner, "dim", 0)) or 2
        rows, targets = np.ones((9, dim)), np.ones(9)
        if hasattr(owner, "classes_"):
            targets = np.resize(owner.classes_, 9)
        if not isinstance(owner, op.OnlineKernelClassifier) or hasattr(owner, "classes_"):
            owner.partial_fit(rows, targets)
            owner.predict(rows)
        return owner.memory_usage(), repr(owner)
    raise AssertionError(f"nothing is known of {type(owner).__name__}")


def use_shared(bandit):
    for _ in range(3):
        bandit.decide(np.eye(bandit.model.dim)[:5])
        bandit.learn(np.ones((2, bandit.model.dim)), [1.0, 0.5])
        bandit.learn(np.ones(bandit.model.dim), 1.0)
    return bandit.error_bound(), repr(bandit)


def use_arms(bandit):
    model = bandit.model
    if model.features is not None and model.features.sides:
        left, right = model.features.sides
        sides = np.ones(left), np.ones((2, right))
        decided = bandit.decide(op.Factors(*sides), arms=["new", "newer"])
        bandit.learn(op.Factors(sides[0], sides[1][0]), 1.0, arm=decided.arm)
        return repr(bandit)
    rows = np.ones(model.dim)
    names = [*bandit.arms[:3], "new"]
    for name in names:
        bandit.decide(rows, arms=names)
        bandit.learn(rows, 1.0, arm=name)
    return bandit.error_bound(), [model.rows_of(name) for name in bandit.arms], repr(bandit)


def use_kernel(bandit):
    model = bandit.model
    rows = None if model.fixed else np.ones((3, model.dictionary.shape[1] or 2))
    for t in range(3):
        bandit.learn(bandit.decide(rows, id=f"{bandit.n_learned} {t}"), 1.0)
    return model.posterior(rows), repr(bandit)


def use_interaction(bandit):
    arms = {"arm 1": {"a": "v1", "n": 3.0}, "new": {"b": "c"}}
    for t in range(3):
        bandit.learn(bandit.decide({"a": "v1", "n": 2.0}, arms, id=f"{bandit.n_learned} {t}"), 1.0)
    return bandit.explain({"a": "v1"}, arms=arms), bandit.memory_usage(), bandit.choices(), repr(bandit)


def use_averaged(bandit):
    if bandit.choices().get("model") == "records":
        arms = ["arm 1", "new"]
        for t in range(3):
            bandit.learn(bandit.decide({"a": "v1", "new": 2.0}, arms, id=f"{bandit.n_learned} {t}"), 1.0)
        return bandit.explain({"a": "v1"}, arms=arms), bandit.memory_usage(), bandit.choices(), repr(bandit)
    for name in [*bandit.arms[:3], "new"]:
        bandit.decide(np.ones(DIM), arms=["new", *bandit.arms[:3]])
        bandit.learn(np.ones(DIM), 1.0, arm=name)
    return bandit.choices(), repr(bandit)


USES = {
    "SharedModel": use_shared,
    "ArmModels": use_arms,
    "KernelModel": use_kernel,
    "InteractionModel": use_interaction,
    "AveragedModels": use_averaged,
    "AutoModel": use_averaged,
}
