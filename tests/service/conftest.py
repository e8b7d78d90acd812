"""A service that is told to stop joins for two seconds and learns for five, and leaves the rest to the next start. On a
machine that is busy enough, something is left. Here a stop takes the time that it needs; who tests what is left sets
it."""

import pytest

from patience import PATIENCE


@pytest.fixture(autouse=True)
def _patient_stops(monkeypatch):
    for thread in ("learner", "writer"):
        monkeypatch.setattr(f"onepass.service.{thread}.LEAVE", PATIENCE)
