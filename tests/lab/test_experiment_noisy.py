"""The bake-off of noisy worlds: its split, its worlds, its players, its lines."""

from onepass.lab.noisy.names import CHOOSE, KINDS, NAMES, REPORT


def test_worlds_are_split_by_a_hash_of_their_names_as_committed_before_the_first_run():
    assert len(NAMES) == len(set(NAMES)) == 36
    assert CHOOSE == (
        "click2-waveform-5000", "click2-digits", "costs-segment", "flip20-segment", "flip40-vehicle", "flip40-digits",
        "flip20-phoneme", "outliers", "jackpot", "linear-30", "arms-30", "arms-10", "ratings-generated-weak",
        "ratings-genres", "trial-colon", "trial-star", "routing", "steps-10",
    )  # fmt: skip
    assert sorted((*CHOOSE, *REPORT)) == sorted(NAMES)
    for names in KINDS.values():
        assert abs(len(set(names) & set(CHOOSE)) - len(set(names) & set(REPORT))) <= 1
