import pytest

from onepass.lab import progress
from onepass.lab.progress import Meter


def test_without_a_terminal_a_line_comes_every_ten_seconds_with_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    with Meter("work", 100) as meter:
        for _ in range(25):
            clock[0] += 1.0
            meter.advance()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "work: 10% done in 10 s, about 90 s left",
        "work: 20% done in 20 s, about 80 s left",
    ]


@pytest.mark.parametrize(("total", "share"), [(100, "0%"), (0, "0")])
def test_a_line_before_the_first_step_has_no_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, total: int, share: str
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    with Meter("work", total) as meter:
        clock[0] += 10.0
        meter.advance(0)  # a task without steps, such as the check of a file that has no rows
    assert capsys.readouterr().err.splitlines() == [f"work: {share} done in 10 s"]


def test_steps_of_unknown_number_are_counted_and_no_share_is_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    with Meter("import", None) as meter:
        for _ in range(2):
            clock[0] += 10.0
            meter.advance(5000)
    assert capsys.readouterr().err.splitlines() == ["import: 5000 done in 10 s", "import: 10000 done in 20 s"]


def test_a_quiet_meter_says_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
    with Meter("work", 2, quiet=True) as meter:
        meter.describe("still working")
        meter.advance()
    assert capsys.readouterr() == ("", "")
