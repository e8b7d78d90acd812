"""Progress and remaining time on standard error: a bar on a terminal, else a line every ten seconds at most."""

import sys
from time import monotonic
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0


class Meter:
    """Progress bar for `total` steps, with the time that remains: `with Meter("digits", 400) as meter: ...`.

    `title` is the text beside the bar, and `quiet` hides it. The method `advance` counts a step. If standard error is
    not a terminal, lines are printed instead of a bar. If `total` is None, their number is unknown: the steps are
    counted, and no remaining time is shown.
    """

    def __init__(self, title: str, total: int | None, quiet: bool = False) -> None:
        self.title, self.total, self.done, self.quiet = title, total, 0, quiet
        self.began = self.last_line = monotonic()
        console = Console(stderr=True)
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("time left"),
            TimeRemainingColumn(),
            console=console,
            disable=quiet or not console.is_terminal,
        )
        self.task = self.bar.add_task(title, total=total)

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.bar.stop()

    def describe(self, note: str) -> None:
        """Show the text `note` beside the progress bar."""
        self.bar.update(self.task, description=f"{self.title}: {note}")

    def say(self, text: str) -> None:
        """Print a line of text above the progress bar."""
        if not self.quiet:
            self.bar.console.print(text, highlight=False, soft_wrap=True)

    def advance(self, steps: int = 1) -> None:
        """Count `steps` finished steps."""
        self.done += steps
        self.bar.advance(self.task, steps)
        now = monotonic()
        if self.bar.disable and not self.quiet and now - self.last_line >= SECONDS_BETWEEN_LINES:
            self.last_line = now
            print(f"{self.title}: {self._line(now - self.began)}", file=sys.stderr)

    @property
    def left(self) -> int:
        """Number of steps that remain; 0 if it is unknown."""
        return 0 if self.total is None else self.total - self.done

    def _line(self, spent: float) -> str:
        if not self.total:
            return f"{self.done} done in {spent:.0f} s"
        share = self.done / self.total
        if share == 0.0:
            return f"0% done in {spent:.0f} s"
        return f"{share:.0%} done in {spent:.0f} s, about {spent / share - spent:.0f} s left"
