"""What docs say to type, the command line knows."""

import re
from pathlib import Path

import pytest
import typer

from onepass.cli import app

DOCS = Path(__file__).parent.parent / "docs"
PAGES = ("hosting", "service", "log", "commands")


def commands(page):
    """The arguments of every `onepass` on a page: in blocks, units, images and sentences."""
    text = (DOCS / f"{page}.md").read_text().replace("\\\n", " ")
    text = re.sub(r'\["onepass", (.*?)\]', lambda found: "onepass " + found[1].replace(",", ""), text)
    for line in re.findall(r"(?:^|[`/= ])onepass ((?:[a-z]+) [^`#\n|&]*)", text, re.M):
        yield line.split()


def options(arguments):
    return {found[0] for one in arguments if (found := re.match("--?[a-z][a-z-]*", one))}


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_has_options_that_there_are(page):
    group, checked = typer.main.get_command(app), 0
    for name, *arguments in commands(page):
        command = group.commands.get(name)
        if command is None:
            assert not options(arguments), (name, arguments)  # a sentence
            continue
        while hasattr(command, "commands") and arguments and arguments[0] in command.commands:
            command = command.commands[arguments.pop(0)]
        known = {option for one in command.params for option in one.opts}
        assert options(arguments) <= known, (name, arguments)
        checked += 1
    assert checked > 0


def test_the_unit_of_the_page_names_what_it_starts_by_its_whole_path():
    (unit,) = re.findall(r"^```ini\n(.*?)^```$", (DOCS / "hosting.md").read_text(), re.M | re.S)
    lines = [line for line in unit.splitlines() if line and not line.startswith("[")]
    assert all("=" in line for line in lines)
    started = [line.partition("=")[2] for line in lines if line.startswith("Exec")]
    assert [line.split()[0] for line in started] == ["/opt/onepass/bin/onepass"] * 2
