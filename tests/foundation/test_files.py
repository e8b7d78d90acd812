"""Files: what comes back is what was saved; anything else is refused with a reason and without running code."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import onepass as op
from bad_files import encode_file
from onepass.foundation import files

ROWS = np.random.default_rng(0).standard_normal((30, 6))
DESIGNS = [
    op.Exact(dim=6, reg=0.37),
    op.FrequentDirections(dim=6, size=2, reg=0.37),
    op.Dyadic(dim=6, size=1, error=5.0, reg=0.37),
    op.ProjectorSplitting(dim=6, rank=2, reg=0.37),
]


@pytest.fixture
def saved(tmp_path):
    bandit = op.SOFUL(dim=6, size=2, reg=0.37)
    bandit.learn(ROWS, np.ones(30))
    bandit.save(tmp_path / "model.onepass")
    return tmp_path / "model.onepass"


@pytest.fixture(params=["bandit", "learner"])
def any_saved(request, saved):
    if request.param == "learner":
        op.learner.FORKS(budget=5, rank=3, sketch_size=4, sample_size=4, blocks=2, width=2.0).partial_fit(
            ROWS, np.where(ROWS[:, 0] > 0.0, 1.0, -1.0)
        ).save(saved)
    return saved


@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: type(d).__name__)
def test_designs_come_back_and_continue(design, tmp_path):
    design = design.copy().append(ROWS[:20])
    design.save(tmp_path / "design")
    loaded = op.load(tmp_path / "design")
    assert repr(loaded) == repr(design)
    for row in ROWS[20:]:
        design.append(row)
        loaded.append(row)
    np.testing.assert_array_equal(loaded.solve(ROWS[0]), design.solve(ROWS[0]))


def test_theory_and_thompson_come_back(tmp_path):
    for bandit in (op.OFUL(dim=6, exploration=op.Theory(scale=0.1)), op.LinTS(dim=6), op.CBRAP(dim=6, size=3, seed=2)):
        bandit.save(tmp_path / "model")
        assert repr(op.load(tmp_path / "model")) == repr(bandit)


@pytest.mark.parametrize("keep", [0.0, 0.02, 0.5, 0.999])
def test_a_truncated_file_is_refused(any_saved, keep):
    content = any_saved.read_bytes()
    any_saved.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(ValueError, match="damaged"):
        op.load(any_saved)


def test_any_flipped_byte_is_refused(any_saved):
    content = any_saved.read_bytes()
    for place in np.random.default_rng(1).integers(0, len(content), 60):
        changed = bytearray(content)
        changed[place] ^= 0x10
        any_saved.write_bytes(bytes(changed))
        with pytest.raises(ValueError, match=r"damaged|not a onepass file|reads up to"):
            op.load(any_saved)


def test_foreign_newer_and_missing_files_are_refused(saved, tmp_path):
    foreign = tmp_path / "foreign"
    save_file({"weights": np.zeros(3)}, foreign)
    with pytest.raises(ValueError, match="not a onepass file"):
        op.load(foreign)
    foreign.write_text("import os; os.remove('everything')")
    with pytest.raises(ValueError, match="not a onepass file"):
        op.load(foreign)
    header = json.dumps({"version": 99, "kind": "Bandit", "params": {}, "extra": {}})
    save_file({"x": np.zeros(1)}, foreign, metadata={"onepass": header, "digest": ""})
    with pytest.raises(ValueError, match="upgrade onepass"):
        op.load(foreign)
    with pytest.raises(FileNotFoundError, match="there is no file"):
        op.load(tmp_path / "nowhere")


def write_as(path, version, kind, params, extra, tensors):
    """Write a file as an earlier onepass wrote it."""
    from onepass.foundation import files

    header = {"version": version, "kind": kind, "params": params, "extra": extra}
    metadata = {"onepass": json.dumps(header), "digest": files._digest(tensors, header)}
    path.write_bytes(files.serialize(tensors, metadata))


@pytest.mark.parametrize(("version", "writer"), [(1, "0.1.0"), (2, "0.2.0")])
def test_a_bandit_of_an_earlier_version_is_refused_in_a_sentence_that_names_both_versions(version, writer, tmp_path):
    path = tmp_path / "model"
    write_as(path, version, "SharedBandit", {"seed": 0}, {"rounds": 0}, {"design.n": np.zeros(1)})
    with pytest.raises(ValueError, match="was written by onepass") as refused:
        op.load(path)
    said = str(refused.value)
    assert f"was written by onepass {writer}; onepass {op.__version__} does not read it: " in said
    assert said.endswith(f"learn the model again from its data or log, or load it with onepass {writer}")
    assert "\n" not in said


def test_a_design_of_the_version_before_is_read(tmp_path):
    from onepass.foundation import files

    design = op.Exact(dim=6, reg=0.37).append(ROWS)
    header, tensors = files.read(op.to_bytes(design))
    write_as(tmp_path / "design", 2, header["kind"], header["params"], header["extra"], tensors)
    np.testing.assert_array_equal(op.load(tmp_path / "design").solve(ROWS[0]), design.solve(ROWS[0]))


@pytest.mark.parametrize("shape", [(1, 6), (4, 5), (4000, 6)])
def test_arrays_that_do_not_fit_the_parameters_are_refused(saved, shape):
    from onepass.foundation import files

    header, tensors = files.read(saved.read_bytes())
    tensors["design.space.basis"] = np.zeros(shape)
    parts = {k: header[k] for k in ("version", "kind", "params", "extra", "parts")}
    save_file(tensors, saved, metadata={"onepass": json.dumps(parts), "digest": files._digest(tensors, parts)})
    with pytest.raises(ValueError, match="do not fit"):
        op.load(saved)


@pytest.mark.parametrize(("key", "value"), [("kind", "os.system"), ("params", {}), ("params", {"dim": -1})])
def test_unknown_kinds_and_parameters_are_refused(saved, key, value):
    from onepass.foundation import files

    header, tensors = files.read(saved.read_bytes())
    parts = {k: header[k] for k in ("version", "kind", "params", "extra", "parts")} | {key: value}
    save_file(tensors, saved, metadata={"onepass": json.dumps(parts), "digest": files._digest(tensors, parts)})
    with pytest.raises(ValueError, match="damaged"):
        op.load(saved)


def test_an_interrupted_save_leaves_the_old_file_and_no_litter(saved, monkeypatch):
    import os

    before = saved.read_bytes()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        op.OFUL(dim=3).save(saved)
    assert saved.read_bytes() == before
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]


def test_what_could_not_be_loaded_again_is_not_saved(tmp_path):
    class Own(op.Exact):
        pass

    for owner in (Own(dim=2), op.Bandit(op.Ridge(Own(dim=2)))):
        with pytest.raises(ValueError, match=r"Own is not known to onepass\.load"):
            owner.save(tmp_path / "own")
    assert not list(tmp_path.iterdir())


def test_the_umask_decides_who_may_read_a_file(saved):
    import os

    before = os.umask(0o027)
    try:
        op.OFUL(dim=2).save(saved.with_name("fresh"))
    finally:
        os.umask(before)
    assert saved.with_name("fresh").stat().st_mode & 0o777 == 0o640


HEAVY = [
    op.HvtUCB(dim=6, exploration=op.Theory(parameter_bound=2.0, delta=0.02, scale=0.1), reg=0.37, horizon=40),
    op.HvtUCB(dim=6, nu=0.3, clip=0.2, floor=0.5, step=2.0, parameter_bound=0.7, design=DESIGNS[2]),
    op.HvtUCB(dim=6, epsilon=0.4, model="disjoint"),
    op.HeavyOFUL(dim=6, epsilon=0.4, exploration=op.Theory(scale=0.1), reg=0.37),
    op.CRTM(dim=6, epsilon=0.4, moment=2.0, clip=0.5, design=DESIGNS[1]),
    op.TOFU(dim=6, moment=2.0, reg=0.37),
    op.CRMM(dim=6, repeats=3, design=DESIGNS[3]),
    op.MENU(dim=6, horizon=30, moment=2.0, reg=0.37),
    op.MENU(dim=6, horizon=30, exploration=op.Theory(delta=0.5)),
    op.TOFU(dim=6, exploration=op.Theory(delta=0.02), horizon=40),
]


@pytest.mark.parametrize("bandit", HEAVY, ids=lambda b: b.name)
def test_estimators_for_heavy_tails_come_back_with_all_their_parameters(bandit, tmp_path):
    bandit.save(tmp_path / "model")
    loaded = op.load(tmp_path / "model")
    assert repr(loaded) == repr(bandit)
    assert loaded.params() == bandit.params()


@pytest.mark.parametrize(
    ("bandit", "place", "value"),
    [
        (HEAVY[0], "theta", np.zeros(5)),
        (HEAVY[0], "rows", np.array(-1)),
        (HEAVY[0], "settings.tail.epsilon", np.array(0.5)),
        (HEAVY[3], "history.used", np.array(65)),
        (HEAVY[3], "history.marks", np.zeros(63)),
        (HEAVY[4], "settings.bound", np.array(3.0)),
        (HEAVY[5], "history.rows", np.zeros((64, 5))),
        (HEAVY[6], "epoch.played", np.array(3)),
        (HEAVY[6], "epoch.rewards", np.zeros(4)),
        (HEAVY[7], "moments", np.zeros((2, 6))),
        (HEAVY[7], "epochs", np.array(-1)),
    ],
)
def test_states_for_heavy_tails_that_do_not_fit_are_refused(bandit, place, value, tmp_path):
    from onepass.foundation import files

    bandit.save(tmp_path / "model")
    header, tensors = files.read((tmp_path / "model").read_bytes())
    place = f"0/{place}"  # of the model, the first part
    assert tensors[place].dtype == value.dtype
    tensors[place] = value
    parts = {k: header[k] for k in ("version", "kind", "params", "extra", "parts")}
    metadata = {"onepass": json.dumps(parts), "digest": files._digest(tensors, parts)}
    save_file(tensors, tmp_path / "model", metadata=metadata)
    with pytest.raises(ValueError, match="do not fit"):
        op.load(tmp_path / "model")


def test_a_link_stays_a_link_and_a_file_keeps_its_mode(tmp_path):
    target, link = tmp_path / "model", tmp_path / "link"
    op.Exact(dim=2).save(target)
    target.chmod(0o640)
    link.symlink_to(target)
    op.Exact(dim=3).save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o640
    assert op.load(target).dim == op.load(link).dim == 3


def test_nothing_but_regular_files_is_replaced(tmp_path):
    import os

    folder, pipe = tmp_path / "folder", tmp_path / "pipe"
    folder.mkdir()
    os.mkfifo(pipe)
    for place in (folder, pipe):
        before = place.stat().st_mode
        with pytest.raises(ValueError, match="regular file"):
            op.Exact(dim=2).save(place)
        assert place.stat().st_mode == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "pipe"]


def test_a_class_of_ones_own_is_saved_once_it_is_registered(tmp_path):
    @op.extend.savable
    class OwnExact(op.Exact):
        pass

    OwnExact(dim=3).append(np.eye(3)).save(tmp_path / "own")
    assert type(op.load(tmp_path / "own")) is OwnExact


def test_two_classes_of_one_name_are_not_registered():
    with pytest.raises(ValueError, match="name yours otherwise"):

        @op.extend.savable
        class Exact(op.Exact):
            pass


DAMAGES = {
    "array 'log_det' is missing": lambda tensors: tensors.pop("log_det"),
    "array 'more' is none of them": lambda tensors: tensors.update(more=np.zeros(2)),
    r"array root has shape \(2, 3\), that of a new one is \(2, 2\)": lambda tensors: tensors.update(
        root=np.zeros((2, 3))
    ),
    "array root is of float32 with 2 axes, expected float64 with 2 axes": lambda tensors: tensors.update(
        root=tensors["root"].astype(np.float32)
    ),
    "waiting is -1, expected at least 0": lambda tensors: tensors.update(waiting=np.array(-1)),
}


@pytest.mark.parametrize("sentence", DAMAGES)
def test_the_error_of_a_damaged_file_names_the_field_what_was_found_and_what_was_expected(sentence):
    header, tensors = files.read(op.to_bytes(op.Exact(dim=2, reg=0.5)))
    DAMAGES[sentence](tensors)
    with pytest.raises(ValueError, match=f"^data is damaged: its arrays do not fit its parameters: {sentence}$"):
        op.from_bytes(encode_file(header, tensors))


def test_every_savable_class_is_found_in_a_new_process():
    """Those of the cluster need Ray, and are known once `onepass.cluster` is imported."""
    sources, names = Path(op.__file__).parent, []
    for path in sources.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            marks = [ast.unparse(mark) for mark in getattr(node, "decorator_list", ())]
            if "savable" in marks and path.parent.name != "cluster":
                names.append(node.name)
    code = f"from onepass.foundation.registry import find_class\nfor name in {names}: find_class(name)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert "SystemIdentification" in names
