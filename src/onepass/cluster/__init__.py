"""The same work on more than one machine: arms on shards, rows in parallel, on Ray or in this process.

`ShardedBandit` (arms), `fit` (rows), `Replicas` (streams), `evaluate` (logs); docs/cluster.md. `pip install
onepass[ray]` for more than one process; all of it runs without.
"""

from onepass.cluster.parallel_evaluate import evaluate
from onepass.cluster.parallel_fit import fit
from onepass.cluster.replicas import Replicas
from onepass.cluster.shard_supervisor import ShardLost
from onepass.cluster.sharded_bandit import ShardedBandit

__all__ = ["Replicas", "ShardLost", "ShardedBandit", "evaluate", "fit"]
