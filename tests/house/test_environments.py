"""Where people run it: an installation that nobody can write to, without a home, and a Jupyter kernel."""

import os
import queue
import re
import shutil
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest
from jupyter_client.manager import KernelManager

import onepass as op
from counts import LONG
from patience import PATIENCE

SOURCE = Path(op.__file__).parent
README = Path(__file__).parents[2] / "README.md"
FUNCTIONS = 60  # compiled at most by the first example; 38 are
COLD = 30.0  # seconds of processor time in which they are, on a machine that does nothing else: 8 to 20

# Root may write whatever the modes say, unless it gives that up before it becomes another program.
LAUNCHER = """
import ctypes, os, sys
DROP, MAY_WRITE = 24, 1  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE of Linux
if os.name == "posix" and os.geteuid() == 0:
    ctypes.CDLL(None).prctl(DROP, MAY_WRITE, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
NOWHERE = """
import sys, onepass
for folder in (sys.prefix, onepass.__path__[0], onepass.__path__[0] + "/foundation"):
    try:
        open(folder + "/anything", "w")
    except PermissionError:
        continue
    sys.exit(folder + " can be written to")
"""
TIMED = """
import time
def timed(function, spent=[0.0]):
    def call(*args, **named):
        begun = time.process_time()
        try:
            return function(*args, **named)
        finally:
            spent[0] += time.process_time() - begun
    call.spent = spent
    return call
bandit.decide = timed(bandit.decide)
bandit.learn = timed(bandit.learn)
"""


def example():
    """The statements of README's first example, its two calls timed, which print what it shows and then the seconds;
    and what it shows."""
    (block,) = re.findall(r"```pycon\n(.*?)```", README.read_text().split("## Example")[1].split("\n## ")[0], re.S)
    lines = [line[4:] for line in block.splitlines() if line.startswith((">>> ", "... "))]
    begun = next(i for i, line in enumerate(lines) if line.startswith("bandit = "))
    (shown,) = (line for line in block.splitlines() if line and not line.startswith((">>>", "...")))
    return "\n".join([*lines[: begun + 1], TIMED, *lines[begun + 1 :], "", "print(bandit.learn.spent[0])"]), shown


@pytest.fixture
def installed(tmp_path):
    """A virtual environment of its own whose site-packages nobody can write to; gives what runs code in it."""
    home = tmp_path / "venv"
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    (site,) = home.glob("lib/python*/site-packages")
    shutil.copytree(SOURCE, site / "onepass", ignore=shutil.ignore_patterns("__pycache__"))
    others = dict.fromkeys([sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]])
    (site / "others.pth").write_text("\n".join(others))
    folders = [home, *(path for path in home.rglob("*") if path.is_dir() and not path.is_symlink())]
    for folder in folders:
        folder.chmod(0o555)
    (tmp_path / "temporary").mkdir()

    def run(code):
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(tmp_path / "none"), "TMPDIR": str(tmp_path / "temporary"),
            "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1",
        }  # fmt: skip
        command = [sys.executable, "-c", LAUNCHER, str(python), "-W", "error", "-c", code]
        done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    run.compiled = lambda: len(list(tmp_path.rglob("*.compiled")))
    yield run
    for folder in folders:
        folder.chmod(0o755)


@pytest.mark.slow
def test_a_fresh_environment_that_nobody_can_write_to_runs_the_first_example_in_time_and_the_next_time_at_once(
    installed,
):
    """How many functions are compiled is counted; seconds belong to a machine that does nothing else."""
    code, shown = example()
    out, said = installed(NOWHERE + code)
    found, seconds = out.splitlines()
    assert found == shown
    assert 0 < installed.compiled() <= FUNCTIONS
    assert not LONG or float(seconds) < COLD
    assert said.startswith("onepass: compiling for this machine, which takes a while once")
    assert said.count("\n") == 1
    out, said = installed(NOWHERE + code)
    assert said == ""
    assert float(out.split()[-1]) < 0.25 * float(seconds)


CELLS = {
    "a bandit decides and learns": (
        "import numpy as np, onepass as op\n"
        "rows = np.random.default_rng(0).standard_normal((60, 5))\n"
        "bandit = op.OFUL(dim=5)\n"
        "for row in rows: bandit.learn(row, float(row[0]))\n"
        "bandit.decide(np.eye(5)).arm",
        "0",
    ),
    "and from a coroutine, in a thread": (
        "import asyncio\n(await asyncio.to_thread(bandit.decide, np.eye(5))).arm",
        "0",
    ),
    "and in a worker forked by it": (
        "import os\nchild = os.fork()\n"
        "if child == 0: os._exit(7 if bandit.decide(np.eye(5)).arm == 0 else 1)\n"
        "os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])",
        "7",
    ),
    "a function of a cell is compiled": (
        "from typing import NamedTuple\n"
        "from onepass.design import contract\n"
        "class Cell(NamedTuple):\n    x: float\n"
        "@contract.log_det.for_state(Cell)\n"
        "def log_det(state):\n    return 2.0 * state.x\n"
        "contract.log_det(Cell(3.0))",
        "6.0",
    ),
    "and compiled anew when the cell has changed": (
        "@contract.log_det.for_state(Cell)\ndef log_det(state):\n    return 3.0 * state.x\ncontract.log_det(Cell(3.0))",
        "9.0",
    ),
    "a method says in its help what it takes": ("'ValueError' in op.OFUL.__doc__", "True"),
}


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """A kernel as notebooks start it."""
    folder = tmp_path_factory.mktemp("jupyter")
    paths = {name: str(folder / name) for name in ("JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")}
    environment = {**os.environ, **paths, "PYTHONPATH": os.pathsep.join(sys.path)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_RUNTIME_DIR", paths["JUPYTER_RUNTIME_DIR"])
        manager = KernelManager(kernel_name="python3", transport="ipc", ip=str(folder / "socket"))
        manager.start_kernel(env=environment, cwd=str(folder))
    client = manager.blocking_client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=PATIENCE)
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def answered(client, asked, timeout=PATIENCE):
    """What a cell gave, what it said on standard error, and the name of its error."""
    given, said, error = None, "", None
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        message = client.get_iopub_msg(timeout=timeout)
        kind, content = message["msg_type"], message["content"]
        if message["parent_header"].get("msg_id") != asked:
            continue
        if kind == "execute_result":
            given = content["data"]["text/plain"]
        elif kind == "stream" and content["name"] == "stderr":
            said += content["text"]
        elif kind == "error":
            error = content["ename"]
        elif kind == "status" and content["execution_state"] == "idle":
            return given, said, error
    raise queue.Empty


def is_said(message, asked, text):
    """Whether a message is what a cell printed; a notice of an earlier one may come late."""
    said = message["content"].get("text", "") if message["msg_type"] == "stream" else ""
    return message["parent_header"].get("msg_id") == asked and text in said


def test_a_jupyter_kernel_runs_cell_after_cell(kernel):
    _, client = kernel
    for name, (code, expected) in CELLS.items():
        given, said, error = answered(client, client.execute(code))
        assert (given, error) == (expected, None), f"{name}: {said}"


def test_a_cell_that_is_interrupted_leaves_a_bandit_that_goes_on(kernel):
    manager, client = kernel
    answered(client, client.execute(CELLS["a bandit decides and learns"][0]))
    asked = client.execute(
        "bandit.learn(rows[0], 1.0)\nprint('begun', flush=True)\nwhile True: bandit.learn(rows[0], 1.0)"
    )
    while not is_said(client.get_iopub_msg(timeout=PATIENCE), asked, "begun"):
        pass
    time.sleep(0.2)
    manager.interrupt_kernel()
    assert answered(client, asked)[2] == "KeyboardInterrupt"
    code = "twin = bandit.copy()\nbandit.n_learned > 60 and twin.decide(rows).arm == bandit.decide(rows).arm"
    assert answered(client, client.execute(code))[0] == "True"
