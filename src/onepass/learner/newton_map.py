"""Feature maps of KernelNewton (landmarks, sketched landmarks or frequencies), and the check of maps from files."""

from typing import Any

import numpy as np

from onepass.features.fourier import make_fourier
from onepass.features.landmarks import Landmarks, make_nystrom
from onepass.features.sketched_nystrom import SketchedNystromState, make_sketched_nystrom
from onepass.foundation.state import is_abstract, zeros
from onepass.learner.consistency import landmarks_fit, sketch_fits

CHANGING_LEAVES: dict[str, tuple[str, ...]] = {  # leaves of a state that differ from those of one that has begun
    "nystrom": ("map.",),
    "fourier": (),
    "sketched": ("map.features.", "map.points", "map.pm", "map.vectors", "map.values", "map.used"),
}
MAPS = tuple(CHANGING_LEAVES)


def make_map(p: dict[str, Any], rank: int, rows: np.ndarray, width: float) -> Any:
    """Return a feature map of the Gaussian kernel of this width, with landmarks among the scaled rows (n, dim).

    A map with landmarks has `rank` features, and a map with random frequencies `size`. p holds the parameters
    `features`, `size` and `seed` of `KernelNewton`.
    """
    if p["features"] == "fourier":
        return make_fourier(p["size"], rows.shape[1], width, p["seed"])
    if is_abstract():
        features = Landmarks(points=zeros(1, rows.shape[1]), z=zeros(1, rank), near=zeros(1), precision=0.5 / width**2)
        if p["features"] == "nystrom":
            return features
        square, none = zeros(p["size"], p["size"]), zeros(0, p["size"])
        return SketchedNystromState(
            features=features,
            points=rows,
            pm=zeros(p["size"], 1),
            pp=square,
            vectors=none,
            values=zeros(0),
            used=1,
            blocks=1,
            seed=p["seed"],
        )
    some = np.random.default_rng(p["seed"]).permutation(len(rows))[: p["size"]]
    if p["features"] == "nystrom":
        return make_nystrom(rows[some], 0.5 / width**2, rank)
    return make_sketched_nystrom(rows, len(rows), some, p["size"], rank, 1, p["seed"], 0.5 / width**2)


def map_fits(p: dict[str, Any], found: Any, dim: int, rank: int) -> bool:
    """Return True if the feature map `found`, read from a file, is valid for rows of width `dim` and `rank` features.

    `p` holds the parameters of `KernelNewton`.
    """
    if p["features"] == "nystrom":
        return landmarks_fit(found, dim, p["size"], rank)
    if p["features"] == "sketched":
        pm = found.pm.shape == (p["size"], found.features.near.size)
        return landmarks_fit(found.features, dim, p["size"], rank) and sketch_fits(found, dim) and pm
    return True
