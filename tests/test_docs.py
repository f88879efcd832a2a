"""What the documentation says of the tree is so: files, tests, links, states and words."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import pytest
from django.apps import apps
from django.db.models import TextChoices

from approvals.models import GateState, gates
from docs import generate
from interrupts.models import RunStatus, StepStatus, states
from tenants.models.base import TenantOwned

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
NAMED_PATH = re.compile(
    r"(?<![\w/.-])((?:approvals|benchmarks|config|delegation|docs|interrupts|sdk|tenants|tests)"
    r"/[\w./-]*\w\.(?:py|sql|md|svg|yaml|toml))((?:::\w+)*)"
)
NAMED_MODULE = re.compile(r"python -m ([\w.]+)")
MADE_BY_A_RUN = {"benchmarks/results/latest.json"}
ONE_PAGE = 100  # lines, tables included


def pages() -> list[Path]:
    return sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


def prose(page: Path) -> str:
    return FENCED.sub("", page.read_text())


def named(page: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, ...]]:
    for match in pattern.finditer(page.read_text()):
        yield match.groups()


@cache
def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as the usual renderers make them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(prose(page))
    }


def page_id(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_links_between_pages_resolve(page):
    broken = []
    for first, second in named(page, LINK):
        link = first or second
        if link.startswith(("http:", "https:", "mailto:")):
            continue
        name, _, anchor = unquote(link).partition("#")
        to = (page.parent / name).resolve() if name else page
        if not to.exists() or (anchor and to.suffix == ".md" and anchor not in anchors(to)):
            broken.append(link)
    assert broken == []


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_every_file_and_test_that_a_page_names_exists(page):
    missing = []
    for name, within in named(page, NAMED_PATH):
        path = ROOT / name
        parts = [part for part in within.split("::") if part]
        if not path.exists() and name not in MADE_BY_A_RUN:
            missing.append(name)
        elif parts and not set(parts) <= names_in(path):
            missing.append(f"{name}{within}")
    assert missing == []


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_every_command_that_a_page_names_is_there(page):
    missing = [
        name
        for (name,) in named(page, NAMED_MODULE)
        if (path := ROOT / name.replace(".", "/")).parts
        and (ROOT / name.split(".")[0]).exists()
        and not (path.with_suffix(".py").exists() or (path / "__main__.py").exists())
    ]
    assert missing == []


def test_the_page_of_states_is_what_the_tables_of_moves_make():
    assert generate.PLACE.read_text() == generate.page(), "run python -m docs.generate"


@pytest.mark.parametrize(
    ("drawn", "module"),
    [(RunStatus, states), (StepStatus, states), (GateState, gates)],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_every_state_stands_in_the_drawing_beside_its_table(drawn, module):
    words = set(re.findall(r"\w+", module.__doc__))
    assert [state for state in drawn if state not in words] == []


def test_every_noun_stands_in_the_glossary():
    glossary = set(re.findall(r"\w+", (DOCS / "glossary.md").read_text().replace(" ", "  ")))
    spaced = (DOCS / "glossary.md").read_text().lower()
    nouns = [model.__name__ for model in apps.get_models() if issubclass(model, TenantOwned)]
    assert nouns
    missing = [
        noun
        for noun in nouns
        if noun not in glossary and re.sub(r"(?<!^)(?=[A-Z])", " ", noun).lower() not in spaced
    ]
    assert missing == []


def test_every_state_is_explained_or_drawn():
    said = set(re.findall(r"`(\w+)`", (DOCS / "glossary.md").read_text()))
    said |= set(re.findall(r"`(\w+)`", (DOCS / "state-machine.md").read_text()))
    every = {
        value
        for module in ("interrupts.models.states", "approvals.models.gates")
        for choices in TextChoices.__subclasses__()
        if choices.__module__ == module
        for value in choices.values
    }
    assert every
    assert sorted(every - said - {"http", "python", "agent"}) == []


def test_decisions_are_numbered_without_gaps_and_one_page_long():
    found = sorted((DOCS / "adr").glob("*.md"))
    numbers = [int(path.name[:4]) for path in found]
    assert numbers == list(range(1, len(found) + 1))
    for path, number in zip(found, numbers, strict=True):
        lines = path.read_text().splitlines()
        assert lines[0].startswith(f"# {number}. "), path.name
        assert len(lines) <= ONE_PAGE, path.name


# Where this tree was made is nobody's business: no path of a machine, no host of a registry's
# mirror, no tool of a workplace.
ELSEWHERE = {
    "a path of a machine": r"(?<![\w./:-])/(?:home|mnt|opt|root|srv|Users|workspace|work)/\w",
    "a brief": r"\b(?:BRIEF|CLAUDE|AGENTS)\.md\b|\bdomain\.md\b|\bstyle\.md\b|\bissues show\b",
}
THIS = Path(__file__).relative_to(ROOT)


def tracked() -> list[Path]:
    done = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        pytest.skip("no checkout of git")
    return [Path(name) for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_of(path: Path) -> str:
    try:
        return (ROOT / path).read_text()
    except UnicodeDecodeError:
        return ""


def told_elsewhere(text: str) -> list[str]:
    return [what for what, pattern in ELSEWHERE.items() if re.search(pattern, text)]


def test_nothing_in_the_tree_tells_where_it_was_made():
    found = {
        str(path): told
        for path in tracked()
        if path != THIS and (told := told_elsewhere(text_of(path)))
    }
    assert found == {}


@pytest.mark.parametrize(
    "text",
    [
        "see /" + "home/ada/x",
        'at "/' + "opt/wheels/x",
        "as in style" + ".md",
    ],
)
def test_what_tells_it_is_found(text):
    assert told_elsewhere(text)


def test_the_lock_file_names_the_public_index_and_nothing_else():
    hosts = set(re.findall(r'https?://([^/"]+)', (ROOT / "uv.lock").read_text()))
    assert hosts <= {"pypi.org", "files.pythonhosted.org"}
    for path in tracked():
        if path.name in {"requirements.txt", "requirements.in", "pyproject.toml", "Makefile"}:
            assert not re.search(r"(?:index-url|find-links|extra-index)", text_of(path)), path
