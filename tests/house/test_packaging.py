"""What is shipped: one version, type information, a command that helps; and, in `make test-long`, what is built."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import onepass
from counts import LONG

ROOT = Path(__file__).parents[2]
MINUTES = 600  # seconds that installing may take


def test_the_version_stands_in_one_place():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" not in told["project"]
    assert told["project"]["dynamic"] == ["version"]
    source = ROOT / told["tool"]["hatch"]["version"]["path"]
    assert f'\n__version__ = "{onepass.__version__}"\n' in source.read_text()


def test_the_changelog_and_the_citation_tell_the_same_version_newest_first():
    told = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert told[0] == "Unreleased"
    versions = [
        tuple(map(int, re.fullmatch(r"(\d+)\.(\d+)\.(\d+) - \d{4}-\d\d-\d\d", one).groups())) for one in told[1:]
    ]
    assert versions == sorted(versions, reverse=True)
    # the coming version has no section of its own until it is released
    assert versions[0] <= tuple(map(int, re.findall(r"\d+", onepass.__version__)))
    citation = (ROOT / "CITATION.cff").read_text()
    assert f"\nversion: {onepass.__version__}\n" in citation
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["authors"] == project["maintainers"] == [{"name": "The onepass developers"}]
    assert "\nauthors:\n  - name: The onepass developers\ncontact:\n  - name: The onepass developers\n" in citation
    assert "the project's issue tracker" in citation


def test_types_are_told():
    assert (Path(onepass.__file__).parent / "py.typed").is_file()


def test_every_extra_is_bounded_and_every_package_of_dev_is_pinned():
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    every = [one for extra in (told["dependencies"], *told["optional-dependencies"].values()) for one in extra]
    own = [one for one in every if not one.startswith("onepass[")]
    assert [one for one in own if "==" not in one and (">=" not in one or "<" not in one)] == []
    pinned = {line.split("==")[0] for line in (ROOT / "constraints.txt").read_text().split()}
    names = {re.match(r"[\w-]+", one).group() for one in own}
    assert names - pinned == set()


def test_the_command_without_arguments_helps():
    found = subprocess.run([sys.executable, "-m", "onepass"], capture_output=True, text=True, check=False)
    said = found.stdout + found.stderr
    assert "Usage: onepass" in said
    assert "Show the version" in said
    assert all(command in said for command in ("run", "serve", "log", "evaluate", "compile"))


@pytest.mark.skipif(not LONG, reason="builds and installs: minutes, in make test-long")
def test_sdist_and_wheel_install_and_import_in_a_clean_environment(tmp_path):
    def run(*command: str) -> str:
        found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=MINUTES, cwd=tmp_path)
        assert found.returncode == 0, found.stdout + found.stderr
        return found.stdout

    python = str(tmp_path / "clean" / "bin" / "python")
    run(sys.executable, "-m", "venv", str(tmp_path / "clean"))
    run(python, "-m", "pip", "install", "-q", "build")
    run(python, "-m", "build", "--outdir", str(tmp_path), str(ROOT))  # the wheel from the sdist
    (wheel,), (sdist,) = tmp_path.glob("*.whl"), tmp_path.glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert sources | {"onepass/py.typed"} <= set(names)
    assert not any(name.startswith("tests") for name in names)
    with tarfile.open(sdist) as held:
        assert any(name.endswith("/pyproject.toml") for name in held.getnames())
    run(python, "-m", "pip", "install", "-q", str(wheel))
    said = run(python, "-W", "error", "-c", "import onepass; print(onepass.__version__, onepass.OFUL(dim=2).dim)")
    assert said.split() == [onepass.__version__, "2"]
