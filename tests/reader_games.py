"""A loop whose decisions are made by readers of checkpoints, and its requests."""

import msgspec
import numpy as np

RULES = """
name = "news"
arms = ["a", "b", "c"]
[features]
context = 3
[model]
recipe = "OFUL"
seed = 2
arguments = {model = "disjoint", reg = 0.5, exploration = {kind = "InverseGap", uniform_share = 0.05}}
[reward]
wait = 0.05
[operation]
publish = 0.0
checkpoint = 0.1
"""


def request(t, **changes):
    context = np.random.default_rng(t).standard_normal(3).tolist()
    return msgspec.json.encode({"context": context, "id": f"{t}", **changes})
