"""Names of the noisy worlds by kind, and their split into a half to choose defaults on and a half to report.

The split uses a hash of the names, and was committed before any policy had played. Defaults must be chosen on `CHOOSE`
alone, and results reported on `REPORT`.
"""

import hashlib

KINDS: dict[str, tuple[str, ...]] = {
    "clicks": ("click2-digits", "click2-waveform-5000", "click10-segment", "click10-kr-vs-kp"),
    "costs": ("costs-linear", "costs-segment"),
    "flipped": (
        "flip20-digits", "flip20-phoneme", "flip20-segment", "flip20-vehicle",
        "flip40-digits", "flip40-phoneme", "flip40-segment", "flip40-vehicle",
    ),
    "jackpots": ("jackpot", "jackpot-context", "outliers"),
    "linear": ("linear-02", "linear-10", "linear-30"),
    "no context": ("arms-02", "arms-10", "arms-30"),
    "one of many": ("many-arms",),
    "ratings": ("ratings-films", "ratings-generated", "ratings-generated-weak", "ratings-genres"),
    "replayed": ("logged-men", "logged-women", "trial-colon", "trial-star"),
    "routing": ("routing",),
    "steps": ("steps-02", "steps-10", "steps-30"),
}  # fmt: skip
NAMES = tuple(name for names in KINDS.values() for name in names)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def split_worlds() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return two halves of the names of the bandit problems: one to choose defaults on, and one to report.

    Within each kind, names are sorted by their SHA-256 hash. Every second name of the resulting list belongs to the
    second half, so both have about half of the names of every kind.
    """
    order = [name for kind in sorted(KINDS) for name in sorted(KINDS[kind], key=_digest)]
    return tuple(order[::2]), tuple(order[1::2])


CHOOSE, REPORT = split_worlds()
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names}
