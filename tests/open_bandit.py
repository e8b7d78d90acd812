"""The Open Bandit Dataset's own policy: independent Thompson sampling from Beta posteriors, whose parameters were
published with the data (Saito, Aihara, Matsutani and Narita 2021)."""

import csv
import lzma
import os
from functools import cache
from pathlib import Path

import numpy as np

SLOTS = 3
PRIORS = {
    "all": (
        """47 8 62 142 3 14 7 857 12 15 6 100 48 23 71 61 13 16 518 30 7 4 23 8 10 11 11 18 121 11 11 10 14 9 204 58 3
        19 42 1013 2 328 15 31 14 138 45 55 23 38 10 401 52 6 3 6 5 32 35 133 52 820 43 195 8 42 40 4 32 30 9 22 6 23 5
        54 8 22 65 246""",
        """12198 3566 15993 35522 2367 4609 3171 181745 4372 4951 3100 24665 13210 7061 18061 17449 5644 6787 111326
        8776 3334 2271 7389 2659 3665 4724 3561 5085 27407 4601 4756 4120 4736 3788 45292 14719 2189 5589 11995 222255
        2308 70034 4801 8274 5421 31912 12213 13576 6230 10382 4141 85731 12811 2707 2250 2668 2886 9581 9465 28336
        12062 162793 12107 41240 3162 11604 10818 2923 8897 8654 4000 6580 3174 6766 2602 14506 3968 7523 16532
        51964""",
    ),
    "men": (
        "47 8 62 142 3 6 100 48 23 71 61 13 16 518 30 7 4 23 8 10 11 11 18 121 11 4 32 30 9 22 6 23 5 54",
        """12198 3566 15993 35522 2367 3100 24665 13210 7061 18061 17449 5644 6787 111326 8776 3334 2271 7389 2659 3665
        4724 3561 5085 27407 4601 2923 8897 8654 4000 6580 3174 6766 2602 14506""",
    ),
    "women": (
        """12 7 984 13 15 15 11 14 9 200 72 3 14 49 1278 3 325 14 27 14 169 48 47 18 40 12 447 46 5 3 5 7 35 34 99 30
        880 51 182 6 45 39 10 24 72 229""",
        """3612 3173 204484 4517 4765 5331 4131 4728 4028 44280 17918 2309 4339 12922 270771 2480 68475 5129 7367 5819
        38026 13047 11604 5394 10912 4439 94485 10700 2679 2319 2578 3288 9566 9775 20120 7317 172026 13673 37329 3365
        10911 10734 4278 7574 16826 47462""",
    ),
}


@cache
def thompson_probabilities(campaign: str, rounds: int = 100_000) -> np.ndarray:
    """Return the probabilities (K, 3) of every item in every slot, from simulated rounds with obp's seed."""
    alpha, beta = (np.array(text.split(), float) for text in PRIORS[campaign])
    values = np.random.RandomState(12345).beta(alpha, beta, size=(rounds, len(alpha)))
    best = np.argsort(-values, axis=1)[:, :SLOTS]
    return np.stack([np.bincount(best[:, slot], minlength=len(alpha)) for slot in range(SLOTS)], axis=1) / rounds


@cache
def load_log(logger: str, campaign: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return items, slots, clicks and propensities of 10,000 rows, in time order."""
    path = Path(os.environ["ONEPASS_DATA"]) / "open-bandit" / logger / campaign / f"{campaign}.csv.xz"
    with lzma.open(path, "rt") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["timestamp"])
    names, kinds = ("item_id", "position", "click", "propensity_score"), (int, int, float, float)
    items, slots, clicks, p = (
        np.array([kind(row[name]) for row in rows]) for name, kind in zip(names, kinds, strict=True)
    )
    return items, slots - 1, clicks, p
