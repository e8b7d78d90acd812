"""What docs say to type, the command line knows."""

import os
import random
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from onepass.cli import app
from onepass.log.parquet import ParquetStore
from onepass.log.sqlite import SqliteStore
from patience import PATIENCE

DOCS = Path(__file__).parents[2] / "docs"
PAGES = (
    *("commands", "hosting", "hosting_container", "hosting_drill", "hosting_monitor", "hosting_network"),
    *("log_commands", "log_verify"),
    *("service", "service_data", "service_settings"),
)


def commands(page):
    """The arguments of every `onepass` on a page: in blocks, units, images and sentences."""
    text = (DOCS / f"{page}.md").read_text().replace("\\\n", " ")
    text = re.sub(r'\["onepass", (.*?)\]', lambda found: "onepass " + found[1].replace(",", ""), text)
    for line in re.findall(r"(?:^|[`/= ])onepass ((?:[a-z]+) [^`#\n|&]*)", text, re.M):
        yield line.split()


def options(arguments):
    return {found[0] for one in arguments if (found := re.match("--?[a-z][a-z-]*", one))}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_options_that_there_are(page):
    group, checked = typer.main.get_command(app), 0
    for name, *arguments in commands(page):
        command = group.commands.get(name)
        if command is None:
            assert not options(arguments), (name, arguments)  # a sentence
            continue
        while hasattr(command, "commands") and arguments and arguments[0] in command.commands:
            command = command.commands[arguments.pop(0)]
        known = {option for one in command.params for option in one.opts}
        assert options(arguments) <= known, (name, arguments)
        checked += 1
    assert checked > 0


def test_the_unit_of_the_page_names_what_it_starts_by_its_whole_path():
    (unit,) = re.findall(r"^```ini\n(.*?)^```$", (DOCS / "hosting.md").read_text(), re.M | re.S)
    lines = [line for line in unit.splitlines() if line and not line.startswith("[")]
    assert all("=" in line for line in lines)
    started = [line.partition("=")[2] for line in lines if line.startswith("Exec")]
    assert [line.split()[0] for line in started] == ["/opt/onepass/bin/onepass"] * 2


def blocks():
    """The commands of the drill, block by block."""
    return re.findall(r"^```sh drill\n(.*?)^```$", (DOCS / "hosting_drill.md").read_text(), re.M | re.S)


def reserve_port():
    """Return a socket that holds a port of this machine, and the port: only who asks for it by number may listen there.

    A port that is free now may be taken before the drill uses it: by the connection of another process, if it is among
    those that the system gives away (from 32768 on), or by another run of this test. A server may share a port with a
    socket that does not listen.
    """
    for port in random.SystemRandom().sample(range(20_000, 30_000), 100):
        place = socket.socket()
        try:
            place.bind(("127.0.0.1", port))
        except OSError:
            place.close()
            continue
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return place, port
    raise AssertionError("no port is free")


@pytest.mark.skipif(shutil.which("curl") is None or shutil.which("bash") is None, reason="needs bash and curl")
def test_the_drill_of_the_page_works_as_it_stands_there(tmp_path):
    """Install, keys, start, change, promote, roll back, back up, restore elsewhere, forget, seal, upgrade."""
    place, port = reserve_port()
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PORT": f"{port}"}
    script = "\n".join([
        "set -euo pipefail", 'trap \'kill "${SERVICE:-}" 2>/dev/null || true; wait\' EXIT',
        *(f"echo '## block {number}' >&2\n{block}" for number, block in enumerate(blocks())),
    ])  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=20 * PATIENCE
    )
    place.close()
    said = done.stderr[-3000:] + done.stdout[-2000:]
    assert done.returncode == 0, said
    assert "broken" not in done.stdout, said
    assert (tmp_path / "answers.txt").read_text().count('"propensity"') == 20
    with SqliteStore(tmp_path / "elsewhere" / "news.sqlite") as store, ParquetStore(tmp_path / "archive") as archive:
        assert archive.last == store.first - 1 >= 5
        kinds = [row.kind for log in (archive, store) for row in log.rows(0, None, None, None)]
        assert kinds.count("forgotten") == 3 * 3  # decision, outcome and join of three readers
    whole = b"".join(path.read_bytes() for path in (tmp_path / "elsewhere").iterdir() if path.is_file())
    for reader in (b"reader 7", b"reader 8", b"reader 9"):
        assert reader not in whole
    assert not (tmp_path / "venv").exists()
