"""Bandits on more than one machine: arms on shards, rows in parallel, on Ray or in this process.

`ShardedBandit` distributes arms, `fit` the rows of files, `Replicas` the rows of a stream, and `evaluate` the parts of
a log; see docs/cluster.md. More than one process needs `pip install onepass[ray]`. Everything also runs in one process
without Ray.
"""

from onepass.cluster.parallel_evaluate import evaluate
from onepass.cluster.parallel_fit import fit
from onepass.cluster.replicas import Replicas
from onepass.cluster.shard_supervisor import ShardLost
from onepass.cluster.sharded_bandit import ShardedBandit

__all__ = ["Replicas", "ShardLost", "ShardedBandit", "evaluate", "fit"]
