"""Copies, pickles, bytes and files are one thing: what comes back goes on bit for bit, in memory of its own."""

import copy
import pickle
import tracemalloc

import joblib
import numpy as np
import pytest

import onepass as op
from onepass.foundation import state as states
from saved_objects import OBJECTS, ROWS, use

WAYS = {
    "copy": lambda owner: owner.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda owner: pickle.loads(pickle.dumps(owner)),
    "bytes": lambda owner: op.from_bytes(op.to_bytes(owner)),
}
every_owner = pytest.mark.parametrize("name", OBJECTS)


def written(owner):
    """Its bytes: all that it is."""
    return op.to_bytes(owner)


@every_owner
def test_whatever_way_an_owner_is_copied_it_goes_on_bit_for_bit(name):
    owner = OBJECTS[name]()
    whole = written(owner)
    twins = {way: make(owner) for way, make in WAYS.items()}
    use(owner)
    after = written(owner)
    assert after != whole or name == "a projection"
    for way, twin in twins.items():
        assert written(twin) == whole, f"{way} is another one, or not independent"
        use(twin)
        assert written(twin) == after, f"{way} goes on otherwise"


def test_the_same_owner_gives_the_same_bytes():
    assert written(OBJECTS["OFUL"]()) == written(OBJECTS["OFUL"]())


def read_only(tree):
    """The same arrays as views of read-only memory that begins at an odd place, as a file may be mapped."""
    values = {}
    for path, value in states.leaves(tree):
        if isinstance(value, np.ndarray) and value.dtype != object:
            raw = np.frombuffer(b"x" + np.ascontiguousarray(value).tobytes(), np.uint8)[1:]
            value = raw.view(value.dtype).reshape(value.shape)
        values[path] = value
    return states.rebuild(tree, values)


@every_owner
def test_a_state_in_foreign_memory_is_taken_into_memory_of_its_own(name):
    from onepass.foundation import files

    owner = OBJECTS[name]()
    whole, part = owner.contents(), getattr(owner, "model", owner)  # of a bandit its model has the state
    params, extra, state = part.contents()
    twin = files.restore(type(part), params, extra, read_only(state))
    assert all(v.flags.carray for _, v in states.leaves(twin.contents().state) if isinstance(v, np.ndarray))
    if part is not owner:
        twin = files.restore(type(owner), {**whole.params, "model": twin}, whole.extra, whole.state)
    use(owner)
    use(twin)
    assert written(twin) == written(owner)


def test_bandits_whose_arrays_joblib_maps_read_only_learn_in_its_workers():
    bandit, rows = op.OFUL(dim=400), np.random.default_rng(0).standard_normal((20, 400))
    bandit.learn(rows, rows[:, 1])

    def learned_more(bandit, rows):  # within a function, so that it is sent to the workers and not looked for there
        bandit.learn(rows, rows[:, 0])
        return bandit

    parts = joblib.Parallel(n_jobs=2)(joblib.delayed(learned_more)(bandit, rows) for _ in range(2))
    bandit.learn(rows, rows[:, 0])
    assert written(parts[0]) == written(parts[1])
    for part in parts:  # joblib gives its workers fewer BLAS threads, whose sums may differ in the last bits
        assert part.n_learned == bandit.n_learned
        np.testing.assert_allclose(part.score(rows), bandit.score(rows), rtol=1e-9)


@pytest.mark.parametrize("mode", [None, "r", "c"])
def test_dumps_of_joblib_come_back_from_memory_maps(mode, tmp_path):
    bandit = op.OFUL(dim=400)
    joblib.dump(bandit, tmp_path / "bandit")
    loaded = joblib.load(tmp_path / "bandit", mmap_mode=mode)
    loaded.learn(np.ones((3, 400)), np.ones(3))
    assert loaded.n_learned == 3


def test_kernels_of_functions_and_names_of_any_kind_are_copied_and_pickled_though_no_file_holds_them():
    bandit = op.GPUCB(ROWS, linear)
    bandit.learn(None, 1.0, 3)
    arms = op.LinUCB(dim=4, model="disjoint")
    arms.learn(ROWS[0], 1.0, arm=frozenset({1, 2}))
    for owner in (bandit, arms):
        with pytest.raises(ValueError, match=r"names must be|is a function"):
            op.to_bytes(owner)
        for twin in (owner.copy(), pickle.loads(pickle.dumps(owner))):
            assert type(twin) is type(owner)
            use(twin)
    assert arms.copy().arms == (frozenset({1, 2}),)


def linear(x, y):
    return x @ y.T


def test_designs_that_know_something_keep_it_within_pickled_parts():
    estimator = op.Ridge(op.Exact(dim=4).append(ROWS))
    twin = pickle.loads(pickle.dumps(op.Bandit(op.Disjoint(estimator))))
    assert np.array_equal(twin.model.estimator.arms.design.matrix(), estimator.design.matrix())


SIZES = {  # headers that ask for much
    "Exact": ({"dim": 9000}, {}),
    "OFUL": ({"estimator": {"kind": "Ridge", "design": {"kind": "Exact", "dim": 30_000}}}, {}),
    "CBRAP": ({"features": {"kind": "GaussianProjection", "dim": 10**7, "size": 2, "seed": 0}}, {}),
    "Chain": ({"features": {"kind": "Fourier", "dim": 10**7, "size": 10**5, "seed": 0}}, {}),
    "FORKS": ({"budget": 10**9, "sketch_size": 10**9, "sample_size": 10**9}, {}),
    "Projectron": ({"budget": 10**6}, {}),
    "KernelNewton, sketched": ({"size": 10**6}, {}),
    "KernelNewton, Fourier": ({"size": 10**8}, {"dim": 10**8}),
}


@pytest.mark.parametrize("name", SIZES)
def test_the_header_is_held_against_the_arrays_before_anything_is_allocated(name):
    from bad_files import encode_file
    from onepass.foundation import files

    params, extra = SIZES[name]
    data = op.to_bytes(OBJECTS[name]())
    op.from_bytes(data)  # what loading imports or compiles the first time is not measured
    header, tensors = files.read(data)
    header["params"].update(params)
    header["extra"].update(extra)
    data = encode_file(header, tensors)
    tracemalloc.start()
    try:
        op.from_bytes(data)
    except ValueError:
        taken = tracemalloc.get_traced_memory()[1]
        assert taken <= 2 * len(data) + 1_000_000, f"{taken} bytes for {len(data)}"
    else:
        assert name == "CBRAP"  # what is drawn is drawn when rows of that width come
    finally:
        tracemalloc.stop()
