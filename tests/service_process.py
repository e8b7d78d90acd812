"""A service in its own process, on loopback, as a user starts it."""

import json
import os
import re
import select
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx

from onepass.service.clock import Clock
from onepass.service.loop import Loop
from patience import PATIENCE

LOOP = """
name = "news"
{keys}
{top}
[features]
context = ["hour", "mobile", "new"]
[model]
recipe = "OFUL"
seed = 2
arguments = {{model = "disjoint", reg = 0.5, exploration = {{kind = "Thompson", exploration = 0.4, draws = 5}}}}
[reward]
wait = {wait}
[operation]
checkpoint = 0.3
publish = 0.0
[limits]
body = 20000
"""
STARTING = 600.0  # seconds: it compiles
ATTEMPTS = 200  # at something that must be done before a deadline
LONGER = 20  # attempts after which the deadline is put off: the machine is too slow for it


def write_settings(folder, top="", keys="", wait=0.2):
    """Write the settings of a loop to a file, and return its path."""
    folder.mkdir(exist_ok=True)
    path = folder / "news.toml"
    path.write_text(LOOP.format(top=top, wait=wait, keys="") + keys)
    return path


def is_timely(records):
    """Return True if no record about a decision came after its deadline."""
    due = next(one["extra"]["due"] for one in records if one["kind"] == "decision")
    return all(one["time"] <= due for one in records if one["kind"] in ("outcome", "activation"))


class RunningService:
    """Running service. `client` sends requests, and `stop` ends it."""

    def __init__(self, data, *paths, key=None, options=(), verify=True):
        command = [sys.executable, "-m", "onepass", "serve", "--data", str(data), "--port", "0", *options]
        self.process = subprocess.Popen([*command, *map(str, paths)], stderr=subprocess.PIPE, env=os.environ)
        told, end = b"", time.monotonic() + STARTING
        while b"listening at" not in told:
            ready, _, _ = select.select([self.process.stderr], [], [], max(end - time.monotonic(), 0.0))
            part = os.read(self.process.stderr.fileno(), 4096) if ready else b""
            told += part
            if not part:
                self.process.kill()
                self.process.wait()
                self.process.stderr.close()
                raise RuntimeError(told.decode())
        headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self.address = re.search(r"listening at (\S+)", told.decode())[1]
        self.client = httpx.Client(base_url=self.address, headers=headers, timeout=PATIENCE, verify=verify)

    def stop(self):
        """Stop the service by a signal, as a system does, and return its exit code."""
        self.client.close()
        self.process.terminate()
        code = self.process.wait(PATIENCE)
        self.told = self.process.stderr.read()
        self.process.stderr.close()
        return code

    def kill(self):
        """Kill the service, as a power cut of the process does."""
        self.client.close()
        self.process.kill()
        self.process.wait(PATIENCE)
        self.process.stderr.close()

    def log(self, id, loop="news"):
        """Return the records about a decision."""
        lines = self.client.get(f"/v1/{loop}/log", params={"limit": 100_000}).text.splitlines()
        return [record for record in map(json.loads, lines) if record.get("id") == id]

    def in_time(self, name, act, loop="news", parts=("",)):
        """Repeat `act(id)` until it is done before its deadline, by the times of the log, and return the id.

        `parts` are suffixes of the ids of decisions that are derived from it. On a machine that is too slow rewards are
        awaited twice as long after some attempts, and in the end as long as before.
        """
        usual, put_off = None, 1
        for number in range(ATTEMPTS):
            if number and number % LONGER == 0:
                usual = usual or self.client.get(f"/v1/{loop}").json()["settings"]["reward"]["wait"]
                put_off *= 2
                self._await_rewards(loop, put_off * usual)
            id = f"{name}.{number}"
            act(id)
            if all(is_timely(self.log(f"{id}{part}", loop)) for part in parts):
                if usual is not None:
                    self._await_rewards(loop, usual)
                return id
        raise AssertionError(f"nothing was in time for {name}")

    def _await_rewards(self, loop, seconds):
        """Change how long the rewards of later decisions are awaited."""
        self.client.patch(f"/v1/{loop}", json={"reward": {"wait": seconds}}).raise_for_status()

    def ready(self, loop="news"):
        """Wait until all accepted decisions are joined and learned."""
        while True:
            text = self.client.get("/metrics").text
            found = dict(
                re.findall(rf'^onepass_(pending_decisions|learner_queue)\{{loop="{loop}"\}} (\S+)$', text, re.M)
            )
            if float(found["pending_decisions"]) == float(found["learner_queue"]) == 0.0:
                return text
            time.sleep(0.02)


@contextmanager
def loops_in(place, clock=Clock):
    """Give a function that starts loops in this process, with models in `place`, and stop them at the end."""
    loops = []

    def start(settings, store, folder="models"):
        loops.append(Loop(settings, store, place / folder, clock))
        return loops[-1]

    yield start
    for loop in loops:
        if loop.writer.is_alive():
            loop.stop()
