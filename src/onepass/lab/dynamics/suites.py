"""Named studies of worlds with a state."""

from onepass.lab.definition import Study
from onepass.lab.dynamics import control, decision_processes, identification, sphere

SUITES: tuple[Study, ...] = (
    identification.SUITE,
    control.SUITE,
    *decision_processes.SUITES,
    sphere.SUITE,
)
