"""Kills at any moment: what was acknowledged is there, nothing is half there, the game goes on as if nothing was."""

import json
import subprocess
import sys
from pathlib import Path

from counts import repetitions

KILLS = repetitions(4, 300)  # of writers, on SQLite and on PostgreSQL; there as many of the server
LONGEST = 0.2  # seconds that a process lives after its first acknowledgement


def test_kills_lose_nothing_that_was_acknowledged_and_replay_is_the_uninterrupted_game(tmp_path):
    command = [
        sys.executable,
        str(Path(__file__).parents[1] / "log_killing.py"),
        str(tmp_path),
        str(KILLS),
        str(LONGEST),
    ]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    for store, found in json.loads(told).items():
        assert found["wrong"] == [], store
        assert found["acknowledged"] >= KILLS, store
        assert found["rounds"] > KILLS // 2, store
