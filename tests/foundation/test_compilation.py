"""The compilation cache: damaged, full, read-only, shared by processes; what a process says that waits for it."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import onepass as op
from onepass import precompile, recipes
from onepass.foundation import compilation
from onepass.learner.learner import Learner
from patience import PATIENCE

SOURCE = Path(op.__file__).parent
MODULE = """
import numba.core.event as events
from onepass.foundation.generic import compiled
passes = events.RecordingListener()
events.register("numba:run_pass", passes)
@compiled
def thirds(x):
    return x / 3.0
@compiled
def loop(x):
    return 3.0 * thirds(x) + thirds(x)
"""
CALL = "import module; print(module.loop(6.0), 'compiled' if module.passes.buffer else 'loaded')"
PATIENT = "from onepass.foundation import compile_notice; compile_notice.PATIENT = 1e6; "


@pytest.fixture
def run(tmp_path):
    """Run code beside MODULE in a fresh process whose cache is tmp_path / cache; gives what it printed, and said."""
    (tmp_path / "module.py").write_text(MODULE)

    def done(code=CALL, wait=True, **variables):
        paths = [str(tmp_path), variables.pop("SOURCE", str(SOURCE.parent))]
        environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), **variables}
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PATIENT + code],
            env={name: value for name, value in environment.items() if value}, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path,
        )  # fmt: skip
        return finished(process) if wait else process

    return done


def finished(process):
    out, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return out.strip(), said


def entries(folder):
    return sorted(folder.rglob("*.compiled"))


def strangers(folder):
    """Files that nobody needs any more."""
    needed = (".compiled", ".seconds", ".turns")
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix not in needed]


DAMAGES = {
    "empty": lambda content: b"",
    "half": lambda content: content[: len(content) // 2],
    "one bit": lambda content: content[:-100] + bytes([content[-100] ^ 4]) + content[-99:],
    "text": lambda content: b"not machine code",
}


def test_a_damaged_entry_is_compiled_anew_and_replaced(run, tmp_path):
    """Of the function that is called, of its part without a wrapper and of the one that it calls."""
    assert run() == ("8.0 compiled", "")
    damages = [*DAMAGES.values()]
    for begin in (0, 2):
        found = entries(tmp_path / "cache")
        assert len(found) == 3
        for number, path in enumerate(found):
            path.write_bytes(damages[(begin + number) % 4](path.read_bytes()))
        assert run() == ("8.0 compiled", "")
    assert run() == ("8.0 loaded", "")
    assert strangers(tmp_path / "cache") == []


FULL = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({0}, {0})); "  # writes fail, whoever we are
NO_BYTECODE = {"PYTHONDONTWRITEBYTECODE": "1"}  # Python may leave half a file of it, which others would read


@pytest.mark.parametrize("room", [0, 3_000])
def test_with_a_full_disk_it_works_says_so_once_and_leaves_nothing(run, tmp_path, room):
    answer, said = run(FULL.format(room) + CALL, **NO_BYTECODE)
    assert answer == "8.0 compiled"
    assert said.startswith(f"onepass: compiled code cannot be kept in any folder ({tmp_path}/cache/onepass: File too ")
    assert "set NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1
    assert entries(tmp_path) == strangers(tmp_path / "cache") == []
    assert run() == ("8.0 compiled", "")
    assert run(FULL.format(room) + CALL, **NO_BYTECODE) == ("8.0 loaded", "")


@pytest.fixture
def installed(tmp_path):
    """The package in a folder of its own, in which nothing can be written, not by root either; nor anywhere else."""
    package = tmp_path / "site" / "onepass"
    shutil.copytree(SOURCE, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "__pycache__").touch()
    nowhere = str(tmp_path / "file")
    Path(nowhere).touch()
    return {
        "SOURCE": str(package.parent), "NUMBA_CACHE_DIR": "", "HOME": nowhere, "XDG_CACHE_HOME": f"{nowhere}/cache",
        "TMPDIR": nowhere, "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip


HIDDEN = "import tempfile; tempfile.tempdir = '/dev/null'; "  # else Python finds /tmp


def test_without_any_folder_to_write_to_it_works_and_says_so_once(run, installed):
    answer, said = run(HIDDEN + CALL, **installed)
    assert answer == "8.0 compiled"
    assert said.startswith("onepass: compiled code cannot be kept in any folder (")
    assert ": Not a directory), so every process compiles anew; set NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1


def test_read_only_sources_are_cached_at_home_and_without_a_home_in_a_private_temporary_folder(
    run, installed, tmp_path
):
    home = {**installed, "XDG_CACHE_HOME": str(tmp_path / "home")}
    assert [run(HIDDEN + CALL, **home) for _ in range(2)] == [("8.0 compiled", ""), ("8.0 loaded", "")]
    (tmp_path / "temporary").mkdir()
    temporary = {**installed, "TMPDIR": str(tmp_path / "temporary")}
    assert [run(**temporary) for _ in range(2)] == [("8.0 compiled", ""), ("8.0 loaded", "")]
    (folder,) = (tmp_path / "temporary").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    folder.chmod(0o777)  # others may have put something there
    assert run(**temporary)[0] == "8.0 compiled"


def test_what_an_image_was_filled_with_is_found_beside_the_sources(run, installed, tmp_path):
    pycache = tmp_path / "site" / "onepass" / "__pycache__"
    pycache.unlink()
    assert run(HIDDEN + CALL, **installed) == ("8.0 compiled", "")
    assert entries(pycache) != []
    assert run(FULL.format(0) + HIDDEN + CALL, **installed) == ("8.0 loaded", "")


def test_two_processes_that_need_the_same_function_compile_it_once(run, tmp_path):
    much = "".join(f"x = x + float(int(x) % {i})\n    " for i in range(2, 90))
    slow = MODULE.replace("return 3.0 *", f"{much}return 3.0 *")
    (tmp_path / "module.py").write_text(slow)
    hold = "from onepass.foundation import cache; cache.PATIENCE = 1e6  # a busy machine compiles for long\n"
    hold += "import module, time, pathlib; pathlib.Path('{0}').touch()\n"
    hold += "while not pathlib.Path('{1}').exists(): time.sleep(0.001)\n" + CALL
    processes = [run(hold.format(*names), wait=False) for names in (("a", "b"), ("b", "a"))]
    answers = [finished(process) for process in processes]
    assert sorted(out.split()[1] for out, _ in answers) == ["compiled", "loaded"]
    assert answers[0][0].split()[0] == answers[1][0].split()[0]
    assert strangers(tmp_path / "cache") == []


def test_nobody_waits_for_a_killed_process(run, tmp_path):
    wait = (
        "import time, module\nfrom numba.core.dispatcher import _FunctionCompiler\n"
        "def stuck(self, *a):\n    print('compiling', flush=True)\n    time.sleep(1000)\n"
        "_FunctionCompiler.compile = stuck\nmodule.loop(6.0)"
    )
    stuck = run(wait, wait=False)
    assert stuck.stdout.readline() == "compiling\n"
    stuck.kill()
    stuck.communicate()
    assert run() == ("8.0 compiled", "")  # within the patience of `finished`


def test_the_compile_command_fills_the_cache_with_a_bar(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent), "NUMBA_CACHE_DIR": str(tmp_path)}

    def compiled(name):
        command = [sys.executable, "-W", "error", "-m", "onepass", "compile", name]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert run.stdout == ""
        return run.returncode, run.stderr.splitlines()

    code, said = compiled("BOGD")
    assert code == 0
    assert said[0].endswith("] 0/1 BOGD")
    assert len(entries(tmp_path)) > 0
    assert compiled("BOGD")[1][-1].startswith("onepass: 0 functions compiled in 0 s, ")
    assert compiled("BOGO")[0] == 2
    assert compiled("BOGO")[1][0].startswith("onepass: there is nothing to compile for 'BOGO': choose among 'OFUL', ")


def test_the_compile_command_knows_every_recipe_kernel_bandit_and_learner():
    public = {name: getattr(place, name) for place in (op, op.learner) for name in place.__all__}
    learners = {name for name, kind in public.items() if isinstance(kind, type) and issubclass(kind, Learner)}
    names = {name for name, _ in precompile.jobs()}
    assert {*recipes.__all__, "BKB", "GPUCB", *learners} <= names


def test_sources_that_are_not_part_of_the_names_of_entries_hold_no_compiled_code():
    for path in SOURCE.rglob("*.py"):
        if compilation.NEVER_COMPILED & {path.relative_to(SOURCE).parts[0], path.name}:
            names = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
            assert not names & {"compiled", "generic", "njit"}, path


IMPATIENT = "compile_notice.PATIENT = 0.0; "


def test_who_waits_for_the_compiler_is_told_once_how_long_it_took_and_how_to_avoid_it(run, tmp_path):
    _, said = run(IMPATIENT + CALL + "; module.loop(6)")
    assert said.startswith("onepass: compiling for this machine")
    assert "`python -m onepass compile`" in said
    assert said.count("\n") == 1
    for path in entries(tmp_path / "cache"):
        path.unlink()
    _, said = run(IMPATIENT + CALL)
    assert "s the last time" in said
    assert run(IMPATIENT + CALL) == ("8.0 loaded", "")


def test_another_numba_is_refused_in_one_sentence(tmp_path):
    (tmp_path / "other.py").write_text("import numba; numba.__version__ = '0.61.2'; import onepass")
    environment = {**os.environ, "PYTHONPATH": str(SOURCE.parent)}
    command = [sys.executable, str(tmp_path / "other.py")]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert process.returncode != 0
    said = process.stderr
    sentence = "onepass needs numba 0.68, whose internals it uses, and found 0.61.2: pip install 'numba==0.68.*'"
    assert said.splitlines()[-1] == f"ImportError: {sentence}"


NOTEBOOK = """
import linecache
source = '''
from typing import NamedTuple
from onepass.design import contract
class Cell(NamedTuple):
    x: float
@contract.log_det.for_state(Cell)
def log_det(state):
    return 2.0 * state.x
'''
names = {"__name__": "__main__"}
exec(compile(source, "ipykernel_77/1234.py", "exec"), names)
print(names["contract"].log_det(names["Cell"](3.0)))
"""


def test_functions_of_a_notebook_work_and_are_not_cached(run, tmp_path):
    assert run(NOTEBOOK) == ("6.0", "")
    assert entries(tmp_path / "cache") == []


LOOP = """
import asyncio, threading, module
async def cells():
    return module.thirds(6.0), await asyncio.to_thread(module.loop, 6.0)
print(*asyncio.run(cells()), threading.active_count() < 4)
"""


def test_a_running_event_loop_and_threads_compile(run):
    """As cells of a Jupyter kernel do."""
    assert run(LOOP) == ("2.0 8.0 True", "")


FOREIGN = """
from typing import NamedTuple
import numpy as np, numba.core.event as events, onepass as op
from onepass.design import contract
from onepass.design.exact import ExactState
from onepass.foundation.linalg import dot
class Mine(NamedTuple):
    x: float
@contract.log_det.for_state(STATE)
def log_det(state):
    return FACTOR
passes = events.RecordingListener()
events.register("numba:run_pass", passes)
dot(np.ones(3), np.ones(3))
ours, passes.buffer = len(passes.buffer), []
contract.log_det(Mine(2.0) if STATE is Mine else op.Exact(dim=2).state)
"""
ASK = "import foreign as f; print('compiled' if f.ours else 'loaded', 'compiled' if f.passes.buffer else 'loaded')"


def test_a_changed_function_of_somebody_else_compiles_what_may_call_it_and_nothing_else(run, tmp_path):
    def change(factor, state):
        (tmp_path / "foreign.py").write_text(FOREIGN.replace("FACTOR", factor).replace("STATE", state))
        return run(ASK, PYTHONDONTWRITEBYTECODE="1")[0]  # Python takes a change in the same second for no change

    assert change("1.0", "Mine") == "compiled compiled"
    assert change("1.0", "Mine") == "loaded loaded"
    assert change("2.0", "Mine") == "loaded compiled"
    assert change("2.0", "ExactState") == "compiled compiled"
    assert change("2.0", "ExactState") == "loaded loaded"
