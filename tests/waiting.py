"""Until something holds that another thread or process brings about: tests wait for it, never for a time."""

import time

PATIENCE = 120.0  # seconds: a machine may be busy with much else
PAUSE = 0.005  # seconds between two looks


def until(holds):
    """What `holds` gives, once it is true."""
    end = time.monotonic() + PATIENCE
    while not (found := holds()):
        assert time.monotonic() < end, f"not in {PATIENCE:.0f} s"
        time.sleep(PAUSE)
    return found


def settled(loop):
    """A loop of a service has joined all it will join now, and learned it."""
    until(lambda: not len(loop.joiner) and not loop.learner.lag
          and loop.learner.seen >= max((one.seq for one in loop.store.read(kinds=["join"])), default=0))  # fmt: skip
