"""Benchmarks of `onepass bench`: speed and memory, relative to others within the same run.

Some benchmarks play problems of the lab. Everything uses one thread unless a line says otherwise; set
OPENBLAS_NUM_THREADS=1 before Python starts (`make bench` does).

- shared_model.py: a round with one model
- decisions.py: exploration rules
- outcomes.py: a further outcome of decisions
- prices.py: decisions over an interval of prices
- tails.py: heavy-tailed rewards
- dynamics.py: system identification
- kernels.py: kernel bandits
- learners.py: online kernel learners
- arms.py: models per arm
- records.py: rows from dictionaries
- threads.py: several threads on one bandit
- logs.py: policies on logs
- stores.py: durable records
- peers.py: the same task in other packages that are installed
"""

from onepass.lab.benchmark.arms import speed_lines as arms_table
from onepass.lab.benchmark.decisions import speed_lines as decisions_table
from onepass.lab.benchmark.dynamics import speed_lines as dynamics_table
from onepass.lab.benchmark.kernels import regret as kernels_regret
from onepass.lab.benchmark.kernels import speed_lines as kernels_table
from onepass.lab.benchmark.learners import regret as learners_regret
from onepass.lab.benchmark.learners import speed_lines as learners_table
from onepass.lab.benchmark.logs import speed_lines as logs_table
from onepass.lab.benchmark.outcomes import speed_lines as outcomes_table
from onepass.lab.benchmark.peers import speed_lines as peers_table
from onepass.lab.benchmark.prices import speed_lines as prices_table
from onepass.lab.benchmark.records import speed_lines as records_table
from onepass.lab.benchmark.shared_model import regret as shared_regret
from onepass.lab.benchmark.shared_model import speed_lines as shared_table
from onepass.lab.benchmark.stores import speed_lines as stores_table
from onepass.lab.benchmark.tails import regret as tails_regret
from onepass.lab.benchmark.tails import speed_lines as tails_table
from onepass.lab.benchmark.threads import speed_lines as threads_table


def speed() -> str:
    """Run all benchmarks of speed and memory, and return their tables as text, one measurement per line.

    A line has a label, the measured value with its unit, a ratio, and the reference of the ratio.
    """
    tables = (
        shared_table,
        decisions_table,
        outcomes_table,
        prices_table,
        tails_table,
        dynamics_table,
        kernels_table,
        learners_table,
        arms_table,
        records_table,
        threads_table,
        logs_table,
        stores_table,
        peers_table,
    )
    return "\n".join(
        f"{what:<58} {measured:9.2f} {unit:<2}  {ratio:7.2f} {of}"
        for table in tables
        for what, measured, unit, ratio, of in table()
    )


def regret() -> str:
    """Run all benchmarks of regret and mistakes, and return the results as text, beside the limits to keep."""
    return f"{shared_regret()}\n{tails_regret()}\n{kernels_regret()}\n{learners_regret()}"
