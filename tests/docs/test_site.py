"""The site's sources, without its generator: every page is in the navigation, every link leads somewhere, every public
name is in the reference, and every block of code runs somewhere or is at least read by what it is for.
"""

import ast
import json
import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import onepass

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = {path.relative_to(DOCS).with_suffix("").as_posix(): path.read_text() for path in sorted(DOCS.rglob("*.md"))}
BESIDE = {"README.md": (ROOT / "README.md").read_text(), "CONTRIBUTING.md": (ROOT / "CONTRIBUTING.md").read_text()}
BLOCK = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.M | re.S)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
TEXTS = {**{f"docs/{name}.md": text for name, text in PAGES.items()}, **BESIDE}


def prose(text):
    """A page without its code, in which brackets are no links."""
    return re.sub(r"`[^`\n]+`", "", BLOCK.sub("", text))


def anchors(text):
    """Names of its headings, as GitHub and the site make them."""
    titles = re.findall(r"^#+ (.*)$", BLOCK.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_every_page_is_in_the_navigation_once():
    trees = [body for language, body in BLOCK.findall(PAGES["index"]) if language == "{toctree}"]
    lines = [line for body in trees for line in body.splitlines() if line and not line.startswith(":")]
    listed = [re.sub(r"^.*<(.*)>$", r"\1", line) for line in lines]
    assert Counter(listed) == Counter(set(PAGES) - {"index"})


@pytest.mark.parametrize("name", TEXTS)
def test_every_link_leads_to_a_file_and_a_heading(name):
    for target in LINK.findall(prose(TEXTS[name])):
        if target.startswith("https://"):
            continue
        page, _, heading = target.partition("#")
        path = (ROOT / name).parent / page if page else ROOT / name
        assert path.exists(), f"{name}: {target}"
        assert not heading or heading in anchors(path.read_text()), f"{name}: {target}"


def test_every_picture_says_what_it_shows_and_is_drawn_by_the_script():
    (listed,) = re.findall(r"^PICTURES = \((.*?)\)$", (DOCS / "pictures" / "draw.py").read_text(), re.M | re.S)
    drawn = {f"{name}.svg" for name in re.findall(r"\w+", listed)}
    assert drawn == {path.name for path in (DOCS / "pictures").glob("*.svg")}
    for name, text in TEXTS.items():
        for words, target in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", text):
            assert len(words) > 20, f"{name}: {target}"


def test_every_public_name_is_in_the_reference_once():
    named = [
        found
        for name, text in PAGES.items()
        if name.startswith("reference/")
        for found in re.findall(r"^\.\. auto(?:class|function):: onepass\.([\w.]+)$", text, re.M)
    ]
    modules = [getattr(onepass, name) for name in onepass.SUBMODULES]
    inside = {f"{module.__name__.split('.')[1]}.{name}" for module in modules for name in module.__all__}
    others = {"learner.learner.Validation", "adapters.optuna.BanditSampler"}
    assert Counter(named) == Counter({*onepass.__all__, *inside, *others} - {"model.Model"})


def test_a_class_without_members_or_with_named_ones_shows_no_inherited_ones():
    """Inherited members are a default of docs/conf.py, and Sphinx shows all members if it is in force."""
    for name, text in PAGES.items():
        for options in re.findall(r"^\.\. auto(?:class|module)::[^\n]*\n((?:   :[^\n]*\n)*)", text, re.M):
            if re.search(r":no-members:|:members: \w", options):
                assert ":no-inherited-members:" in options, f"{name}: {options}"


# ---- code ----

RUN = {  # by which test the blocks of Python of a page run
    "test_documents": "ab_test cluster cluster_shards decisions exploration faq features first_loop forgetting frames"
    " concepts/regret_bound decisions_slots features_records heavy_tails how/budgets how/heavy_tails how/kernel_bandits"
    " how/linear how/sketches kernel_bandits kernel_learners lists lists_one_reward log log_archive pending_rewards"
    " recommender reference/estimators safe_baseline saving sketches tasks tour warm_start which",
    "test_site_examples": "adapters clicks evaluation formats late_conversions merging news personalizer processes"
    " late_conversions/cut_logs"
    " recommended route_prompts systems systems_control threads tuning",
    "test_client": "client",
    "test_dsjson_page": "dsjson",
    "test_experiment_own": "experiments",
    "test_explanations": "explanations explanations_kernels",
    "test_feature_map_skeleton": "contributing/feature_map feature_maps",
    "test_ray_serve_and_data": "cluster_serving",
    "test_skeletons": "contributing/design contributing/estimator contributing/exploration_rule",
    "test_toy_model": "contributing/model",
}


def blocks(kind):
    return [(name, body) for name, text in TEXTS.items() for language, body in BLOCK.findall(text) if language == kind]


def test_every_block_of_python_runs_in_a_test():
    run = {f"docs/{page}.md" for pages in RUN.values() for page in pages.split()} | set(BESIDE)
    run |= {f"docs/{name}.md" for name in PAGES if name.startswith("tutorials/")}
    shown = {name for kind in ("python", "pycon", "py") for name, _ in blocks(kind)}
    assert shown - run == set()
    for module, pages in RUN.items():
        (path,) = (ROOT / "tests").rglob(f"{module}.py")
        source = path.read_text()
        assert all(page in source for page in pages.split()), module


def test_every_block_of_python_parses():
    for name, body in blocks("python"):
        ast.parse(body, name)


def test_settings_and_data_on_the_pages_are_well_formed():
    for _, body in blocks("toml"):
        tomllib.loads(body)
    for _, body in blocks("json"):
        json.loads(body)


@pytest.mark.parametrize("name", TEXTS)
def test_no_paragraph_breaks_off_into_a_list(name):
    """A wrapped line of a paragraph that begins with "1. " or "- " would be shown as a list."""
    broken = r"^(?![ |>#*+\-]|\d+\. )\S[^\n]*[^\n:]\n((?:\d+\.|[-+*]) [^\n]*)"
    assert re.findall(broken, BLOCK.sub("", TEXTS[name]), re.M) == []


def test_every_block_says_what_language_it_is_in():
    known = {"", "python", "pycon", "sh", "toml", "json", "ini", "dockerfile", "{toctree}", "{eval-rst}", "{include}"}
    assert {language for text in TEXTS.values() for language, _ in BLOCK.findall(text)} <= known


COMMAND = re.compile(r"^(?:python -m )?onepass ([a-z]+)((?: .*)?)$", re.M)


def test_every_command_on_the_pages_is_one_with_its_options():
    import typer

    from onepass.cli import app

    group = typer.main.get_command(app)
    for name, text in TEXTS.items():
        for _, body in BLOCK.findall(text):
            for command, rest in COMMAND.findall(body):
                if command == "compile":
                    continue
                assert command in group.commands, f"{name}: onepass {command}"
                found = group.commands[command]
                words = rest.partition("#")[0].split()
                if hasattr(found, "commands") and words:
                    assert words[0] in found.commands, f"{name}: onepass {command} {words[0]}"
                    found = found.commands[words[0]]
                options = {opt for parameter in found.params for opt in (*parameter.opts, *parameter.secondary_opts)}
                asked = {word.strip("[]").partition("=")[0] for word in words if word.strip("[").startswith("--")}
                assert asked <= options | {"--help"}, f"{name}: onepass {command} {rest}"


def test_the_makefile_has_every_target_that_pages_name():
    targets = set(re.findall(r"^([a-z-]+)(?: [a-z-]+)*:", (ROOT / "Makefile").read_text(), re.M))
    targets |= {
        word for line in re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M) for word in line.split()
    }
    targets |= {"test-long"}
    for name, text in TEXTS.items():
        for target in re.findall(r"`make ([a-z-]+)`|^make ([a-z-]+)", text, re.M):
            assert (target[0] or target[1]) in targets, f"{name}: make {target}"
