"""Server process, which opens the logs of its loops, answers requests, and ends in an orderly way on a signal.

DIR/NAME.sqlite      the log of loop NAME                 DIR/NAME.models/    its checkpoints
DIR/lock             held by the process that serves      postgresql://...    one log for all loops instead
"""

import asyncio
import gc
import importlib
import ipaddress
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from uvicorn.config import Config
from uvicorn.server import Server

from onepass.foundation.atomic_write import FolderLock
from onepass.foundation.check import quote
from onepass.log.open_store import SCHEMES, open_store
from onepass.log.sqlite import SqliteStore
from onepass.log.store import ClaimError, Store
from onepass.service.app import Service
from onepass.service.channel import Configuration
from onepass.service.connections import CONNECTIONS, ConnectionLimits
from onepass.service.keys import Keys
from onepass.service.loop import Loop
from onepass.service.overview_thread import OverviewThread
from onepass.service.settings import LoopSettings, read_files
from onepass.service.workers import Workers, clock_origin, state_path

BACKLOG = 2048  # connections that wait to be taken
FINISH = 5  # seconds that requests have to end, once the service is told to stop
TURN = 0.001  # seconds that a thread works while others wait, whose commits would else wait 0.005 at every statement
YOUNG = 20_000  # objects between two looks for young garbage: of about 100 requests
IDLE = 75  # seconds that a connection may be silent
LOOK = 0.5  # seconds between two looks whether another process has ended
ENDING = (signal.SIGTERM, signal.SIGINT)


def serve(
    data: Path,
    paths: Sequence[Path],
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    log: str | None = None,
    workers: int = 0,
    connections: int = CONNECTIONS,
    certificate: Path | None = None,
    private_key: Path | None = None,
    listening: Callable[[str], object] = print,
    standby: Callable[[], object] | None = None,
) -> None:
    """Serve loops until a signal comes.

    - data: data folder.
    - paths: settings files, one for each loop.
    - host, port: address to listen on; port 0 takes any free port.
    - log: postgresql://... for all loops (default None: an SQLite file each).
    - workers: number of processes that answer requests and decide, while this one writes and learns (default 0: this
      one does all).
    - connections: largest number of connections of each process (default 1000).
    - certificate, private_key: PEM files for TLS (default None).
    - listening: called with the address.
    - standby: called once if another process serves the folder or writes a loop; then that process's end is waited for
      (default None: ValueError or ClaimError is raised).

    Raises ValueError for wrong arguments, StoreError for logs that cannot be opened.
    """
    each = read_files(paths)
    if not each:
        raise ValueError("paths must name the settings of a loop at least, got none")
    keys = {settings.name: Keys(found) for settings, found in each}
    check_keys(host, keys)
    check_certificate(certificate, private_key)
    data.mkdir(parents=True, exist_ok=True)
    importlib.import_module("scipy.optimize")  # for ledgers and overviews: no request waits for it
    with ExitStack() as stack:
        stack.enter_context(hold_folder(data, standby))
        stores = {settings.name: stack.enter_context(open_log(settings, data, log)) for settings, _ in each}
        for name, store in stores.items():
            claim_loop(store, name, standby)
        place = stack.enter_context(bind_socket(host, port))
        loops, watchers = dict[str, Loop](), dict[str, OverviewThread]()
        for settings, _ in each:
            store = stores[settings.name]
            loop = loops[settings.name] = Loop(settings, store, data / f"{settings.name}.models")
            watcher = watchers[settings.name] = OverviewThread(
                loop.settings, store, loop.name, data / f"{loop.name}.overview"
            )
            stack.callback(watcher.stop)  # after the loop
            stack.callback(loop.stop)
            watcher.watch(loop.writer)
        service = Service(loops, keys, watchers)
        for one in ENDING:
            signal.signal(one, lambda *_: None)  # uvicorn takes them, and gives them on when it has ended
        place.listen(BACKLOG)
        stack.enter_context(tune_runtime())
        scheme = "http" if certificate is None else "https"
        address = f"{scheme}://{url_host(host)}:{place.getsockname()[1]}"
        config = Config(
            service,
            **server_options(certificate, private_key, ConnectionLimits(connections, service.metrics.count_refused)),
        )
        if workers == 0:
            listening(address)
            Server(config).run(sockets=[place])
            return
        configuration = Configuration(
            {settings.name: found for settings, found in each},
            {name: clock_origin(loop) for name, loop in loops.items()},
            {name: str(state_path(loop)) for name, loop in loops.items()},
            None if certificate is None else str(certificate),
            None if private_key is None else str(private_key),
            connections,
        )

        async def run() -> None:
            await Workers(service, place, workers, configuration).run(lambda: listening(address))

        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(run())
        for one in ENDING:
            signal.signal(one, lambda *_: None)  # while loops save and end


def server_options(
    certificate: Path | str | None, private_key: Path | str | None, limits: ConnectionLimits
) -> dict[str, Any]:
    """Return the keyword arguments of the HTTP server uvicorn, by name.

    `certificate` and `private_key` are files for TLS, or None. `limits` are the limits of connections.
    """
    return {
        "log_level": "warning", "access_log": False, "lifespan": "off", "backlog": BACKLOG, "server_header": False,
        "timeout_graceful_shutdown": FINISH, "timeout_keep_alive": IDLE, "http": limits.protocol(), "ws": "none",
        "ssl_certfile": certificate, "ssl_keyfile": private_key,
    }  # fmt: skip


def check_keys(host: str, keys: dict[str, Keys]) -> None:
    """Raise ValueError if a loop has no keys, but another loop has, or other machines can reach the service.

    `host` is the address of the service, and `keys` maps the name of a loop to its keys.
    """
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    without = [name for name, found in keys.items() if not len(found)]
    if without and not local:
        raise ValueError(
            f"loop {without[0]} has no keys, so the service listens on 127.0.0.1 only: add [[keys]] "
            "(onepass serve --new-key decide,reward), or leave --host out"
        )
    if without and len(without) < len(keys):
        raise ValueError(f"every loop must have keys where one has, but {without[0]} has none")


def check_certificate(certificate: Path | None, private_key: Path | None) -> None:
    """Raise ValueError if two files are not a certificate and its private key."""
    if certificate is None and private_key is None:
        return
    if certificate is None or private_key is None:
        raise ValueError("certificate and private key belong together: name both files")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, private_key)
    except OSError as error:
        raise ValueError(f"{certificate} and {private_key} are no certificate with its private key: {error}") from None


def open_log(settings: LoopSettings, data: Path, log: str | None) -> Store:
    """Return the log of a loop, in the folder `data` or, if `log` is given, in the database `log`."""
    synced = settings.operation.durability == "commit"
    if log is None:
        return SqliteStore(data / f"{settings.name}.sqlite", synced=synced)
    if not log.startswith(SCHEMES):
        raise ValueError(f"log must be postgresql://..., got {quote(log)}")
    if not synced:
        raise ValueError('operation.durability must be "commit" in a database: set synchronous_commit there instead')
    return open_store(log)


@contextmanager
def tune_runtime() -> Iterator[None]:
    """Let Python switch threads more often, and exclude present objects from garbage collection (0.1 s each time).

    This is a context manager that restores both at the end.
    """
    turn, most = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(TURN)
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, *most[1:])
    try:
        yield
    finally:
        sys.setswitchinterval(turn)
        gc.set_threshold(*most)
        gc.unfreeze()


@contextmanager
def hold_folder(data: Path, standby: Callable[[], object] | None) -> Iterator[None]:
    """Hold the lock of the data folder, as a context manager.

    `standby` is called once if another process holds the lock, which is then waited for; with None, ValueError is
    raised.
    """
    lock = FolderLock(data)
    if not lock.acquire():
        if standby is None:
            raise ValueError(
                f"another process serves {data}: stop it, name another folder, or wait for its end (--standby)"
            )
        standby()
        while not lock.acquire():
            time.sleep(LOOK)
    try:
        yield
    finally:
        lock.release()


def claim_loop(store: Store, name: str, standby: Callable[[], object] | None) -> None:
    """Become the only writer of a loop.

    If another process writes the loop, `standby` is called once, and the end of that process is waited for. With None,
    ClaimError is raised.
    """
    waiting = False
    while True:
        try:
            store.claim(name)
            return
        except ClaimError:
            if standby is None:
                raise
        if not waiting:
            standby()
        waiting = True
        time.sleep(LOOK)


def bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to this host and port; raise ValueError if the address cannot be bound."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        place = socket.socket(found[0], found[1])
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(found[4])
    except OSError as error:
        raise ValueError(f"cannot listen at {host}, port {port}: {error}") from None
    return place


def url_host(host: str) -> str:
    """Return a host in the form in which it stands in an address, with brackets for IPv6."""
    return f"[{host}]" if ":" in host else host
