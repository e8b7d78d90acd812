"""Background jobs: they run one after the other in a thread, and their results are kept in files.

    NAME.personalizer/evaluations/DIGEST.json          {"id", "status": "Running", then "Succeeded" or "Failed", ...}

A job that was running when the service ended is Canceled. It may be deleted and started again.
"""

import hashlib
import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from onepass.foundation import atomic_write
from onepass.service.personalizer.errors import Problem

RUNNING, SUCCEEDED, FAILED, CANCELED = "Running", "Succeeded", "Failed", "Canceled"
DIGITS = 16  # bytes of a file's name

Work = Callable[[], dict[str, Any]]


class Jobs:
    """Background jobs of one kind for one loop, such as evaluations.

    `folder` is the folder of their files. `code` is the error code for a job that does not exist, and `again` the error
    code for an id that is taken.
    """

    def __init__(self, folder: Path, code: str, again: str) -> None:
        self.folder, self.code, self.again = folder, code, again
        self._lock = threading.RLock()
        self._queue: queue.SimpleQueue[tuple[dict[str, Any], Work]] = queue.SimpleQueue()
        self._running: dict[str, Work] = {}
        self._thread: threading.Thread | None = None

    def start(self, said: dict[str, Any], work: Work) -> None:
        """Start a job.

        `said` describes the job, with its id under "id". `work` is called in a thread, and the fields that it returns
        are added to the description. Raises Problem if the id is taken.
        """
        with self._lock:
            if self._path(said["id"]).exists():
                raise Problem(400, self.again, f"There is one of that id already: {said['id'][:64]}")
            self._running[said["id"]] = work
            self._keep({**said, "status": RUNNING})
            self._queue.put((said, work))
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"jobs of {self.folder.name}", daemon=True)
                self._thread.start()

    def get(self, identity: str) -> dict[str, Any]:
        """Return the description of the job with an id, with its "status". Raises Problem if there is none."""
        path = self._path(identity)
        with self._lock:  # a job that ends between two looks would seem to be cut off
            if not path.exists():
                raise Problem(404, self.code, "There is none of that id.")
            return self._read(path)

    def list_all(self) -> list[dict[str, Any]]:
        """Return all jobs in the order in which they started."""
        with self._lock:
            found = [self._read(path) for path in self.folder.glob("*.json")] if self.folder.exists() else []
        return sorted(found, key=lambda one: (one.get("creationTime", ""), one["id"]))

    def delete(self, identity: str) -> None:
        """Delete the job with this id and its files. Raises Problem if there is none."""
        with self._lock:
            self.get(identity)
            self._running.pop(identity, None)
            self._path(identity).unlink(missing_ok=True)

    def _path(self, identity: str) -> Path:
        digest = hashlib.blake2b(identity.encode(), digest_size=DIGITS).hexdigest()
        return self.folder / f"{digest}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(path.read_bytes())
        if found["status"] == RUNNING and found["id"] not in self._running:
            found |= {"status": CANCELED, "description": "The service ended before this was done."}
        return found

    def _keep(self, said: dict[str, Any]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_write.write_atomically(self._path(said["id"]), msgspec.json.encode(said))

    def _work(self) -> None:
        while True:
            said, work = self._queue.get()
            try:
                done = {**said, "status": SUCCEEDED, **work()}
            except Exception as error:  # whatever it is, it is told, and the next job begins
                done = {**said, "status": FAILED, "description": f"{error}" or type(error).__name__}
            with self._lock:
                if self._running.get(said["id"]) is work:  # and not deleted meanwhile
                    self._keep(done)
                    del self._running[said["id"]]
