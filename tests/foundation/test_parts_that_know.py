"""A design that holds rows, or a map that has learned, is the same wherever a bandit goes that was made with it."""

import copy
import pickle

import numpy as np
import pytest

import onepass as op
from bad_files import encode_file
from onepass.foundation import files
from onepass.foundation import state as states
from onepass.foundation.registry import list_classes

DIM, REG = 4, 0.37
ROWS = np.random.default_rng(0).standard_normal((9, DIM))
DESIGNS = {
    "Exact": lambda: op.Exact(dim=DIM, reg=REG),
    "FrequentDirections": lambda: op.FrequentDirections(dim=DIM, size=2, reg=REG, compensation=0.5),
    "ProjectorSplitting": lambda: op.ProjectorSplitting(dim=DIM, rank=2, reg=REG),
    "Dyadic": lambda: op.Dyadic(dim=DIM, size=1, error=8.0, reg=REG),
}
WITH_RIDGE = {  # designs for comparison, which are tried with ridge regression alone
    "RandomProjection": lambda: op.design.RandomProjection(dim=DIM, size=2, reg=REG),
    "DyadicSketches": lambda: op.design.DyadicSketches(op.FrequentDirections(dim=DIM, size=1, reg=REG), error=8.0),
}
ESTIMATORS = {
    "Ridge": op.Ridge,
    "OnlineNewton": op.OnlineNewton,
    "OnePassHuber": op.OnePassHuber,
    "OnePassMedian": lambda design: op.estimator.OnePassMedian(design, repeats=3),
    "OnePassTruncation": op.estimator.OnePassTruncation,
    "AdaptiveHuber": op.estimator.AdaptiveHuber,
    "MedianOfMeans": lambda design: op.estimator.MedianOfMeans(design, repeats=3),
    "TruncatedRidge": op.estimator.TruncatedRidge,
    "OnePassGLM": op.OnePassGLM,
    "RegressedGLM": op.estimator.RegressedGLM,
    "OfflineGLM": op.estimator.OfflineGLM,
}
MODELS = {
    "shared": lambda make, design: make(design()),
    "disjoint, an arena": lambda make, design: op.Disjoint(make(design()), compact=True),
    "disjoint, one state an arm": lambda make, design: op.Disjoint(make(design()), compact=False),
    "hybrid": lambda make, design: op.Hybrid(shared=make(design()), arms=make(design().append(ROWS[:2]))),
}


def filed(owner, folder):
    owner.save(folder / "model")
    return op.load(folder / "model")


WAYS = {
    "file": filed,
    "bytes": lambda owner, folder: op.from_bytes(op.to_bytes(owner)),
    "copy": lambda owner, folder: owner.copy(),
    "deepcopy": lambda owner, folder: copy.deepcopy(owner),
    "pickle": lambda owner, folder: pickle.loads(pickle.dumps(owner)),
    "file, then pickle": lambda owner, folder: pickle.loads(pickle.dumps(filed(owner, folder))),
}


def bandits():
    """Every estimator on every design that it takes, in all models that it takes."""
    for name, make in ESTIMATORS.items():
        for of, begun in {**DESIGNS, **(WITH_RIDGE if name == "Ridge" else {})}.items():
            for model, parts in MODELS.items():
                try:
                    bandit = op.Bandit(parts(make, lambda begun=begun: begun().append(ROWS)))
                except ValueError:
                    continue
                yield f"{name} on {of}, {model}", bandit


def estimators(bandit):
    """Of a bandit all, however its models are put together."""
    model = bandit.model.estimator
    return [model] if isinstance(model, op.extend.Estimator) else [part for part in (model.arms, model.shared) if part]


def numbers(tree):
    return {path: np.asarray(value).tolist() for path, value in states.leaves(tree)}


def test_the_table_names_every_estimator_and_design():
    ours = {kind.__name__ for kind in list_classes(object) if kind.__module__.startswith("onepass.")}
    assert set(ESTIMATORS) == {kind.__name__ for kind in list_classes(op.extend.Estimator)} & ours
    assert {*DESIGNS, *WITH_RIDGE} == {kind.__name__ for kind in list_classes(op.extend.Design)} & ours


def test_rows_that_a_design_holds_go_with_every_estimator_and_model_whatever_the_way(tmp_path):
    count = 0
    for name, bandit in bandits():
        whole = op.to_bytes(bandit)
        for way, make in WAYS.items():
            twin = make(bandit, tmp_path)
            assert op.to_bytes(twin) == whole, f"{name}: {way}"
            for ours, theirs in zip(estimators(bandit), estimators(twin), strict=True):
                assert numbers(theirs.design.state) == numbers(ours.design.state), f"{name}: {way}"
                assert numbers(theirs.begin()) == numbers(ours.begin()), f"{name}: {way} begins otherwise"
                assert numbers(ours.begin()) != numbers(type(ours.design)(**ours.design.params).state)
            assert twin is not bandit
            count += 1
    assert count > 6 * 30


@pytest.mark.parametrize("compact", [None, False])
def test_arms_that_come_later_begin_with_these_rows_in_all_of_them(compact, tmp_path):
    bandit = op.Bandit(op.Disjoint(op.Ridge(DESIGNS["Exact"]().append(ROWS)), compact=compact))
    bandit.learn(ROWS[0], 1.0, arm="a")
    for way, make in WAYS.items():
        twin = make(bandit, tmp_path)
        twin.remove_arm("a")
        twin.add_arm("b")
        twin.learn(ROWS[1], 1.0, arm="b")
        inverse = np.linalg.inv(REG * np.eye(DIM) + ROWS.T @ ROWS + np.outer(ROWS[1], ROWS[1]))
        np.testing.assert_allclose(twin.model.parameter_of("b"), inverse @ ROWS[1], rtol=1e-9, err_msg=way)


@pytest.mark.parametrize("features", [
    lambda: op.features.Standardize(dim=DIM).learn(ROWS),
    lambda: op.features.Chain(op.features.Standardize(dim=DIM).learn(ROWS), op.features.Fourier(dim=DIM, size=DIM)),
    lambda: op.features.Chain(
        op.features.Standardize(dim=DIM).learn(ROWS), op.features.Fourier(dim=DIM, size=DIM)
    ).learn(3.0 * ROWS),
    lambda: op.features.Standardize(dim=DIM),
], ids=["a map", "a part of one", "both", "one that has seen nothing"])  # fmt: skip
def test_what_a_map_has_learned_goes_with_the_bandit_that_was_given_it(features, tmp_path):
    bandit = op.Bandit(op.Ridge(op.Exact(dim=DIM)), features=features())
    bandit.learn(ROWS[0], 1.0)
    for way, make in WAYS.items():
        twin = make(bandit, tmp_path)
        assert op.to_bytes(twin) == op.to_bytes(bandit), way
        assert np.array_equal(twin.model.features.transform(ROWS), bandit.model.features.transform(ROWS)), way
        assert np.array_equal(twin.score(ROWS), bandit.score(ROWS)), way


def test_the_design_of_a_learner_goes_with_it_before_and_after_its_first_example(tmp_path):
    learner = op.KernelNewton(size=4, design=op.Exact(dim=6).append(np.eye(6)))
    for _ in range(2):
        for way, make in WAYS.items():
            twin = make(learner, tmp_path)
            assert numbers(twin.design.state) == numbers(learner.design.state), way
            assert op.to_bytes(twin) == op.to_bytes(learner), way
        learner.partial_fit(ROWS, np.sign(ROWS[:, 0]))


def test_asking_a_design_changes_nothing_that_is_written():
    bandit = op.Bandit(op.Ridge(DESIGNS["Exact"]()))
    before = op.to_bytes(bandit)
    bandit.model.estimator.design.solve(ROWS[0])
    assert op.to_bytes(bandit) == before
    assert op.to_bytes(op.Bandit(op.Ridge(DESIGNS["Exact"]().append(ROWS)))) != before


def test_parts_that_do_not_fit_are_refused_in_one_sentence():
    data = op.to_bytes(op.Bandit(op.Disjoint(op.Ridge(DESIGNS["Exact"]().append(ROWS)))))
    header, tensors = files.read(data)
    design = header["params"]["model"]["estimator"]["estimator"]["design"]
    roots = [name for name in tensors if name.startswith("0/")]
    assert design["part"] == 0
    assert len(roots) == 8
    for part in (1, -1, None, [], "0"):
        design["part"] = part
        refused(header, tensors)
    del design["part"]
    refused(header, tensors)
    design["part"] = 0
    for name in roots:
        array = tensors.pop(name)
        refused(header, tensors)
        refused(header, {**tensors, name: np.full_like(array, 7)[..., None]})
        refused(header, {**tensors, name: array, f"1/{name}": array})
        tensors[name] = array
    refused({**header, "parts": []}, tensors)
    refused({**header, "parts": 3}, tensors)
    assert op.to_bytes(op.from_bytes(encode_file(header, tensors))) == data


def refused(header, tensors):
    with pytest.raises(ValueError, match=r"data is damaged: .*") as trouble:
        op.from_bytes(encode_file(header, tensors))
    assert "\n" not in str(trouble.value)
