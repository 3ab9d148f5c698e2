"""What `make lab` installs is all that the library and the tools import: nothing comes from a machine's own habits."""

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
# Packages that a declared one cannot be without.
COME_ALONG = {
    "ipywidgets": {"traitlets", "ipython"},
    "nbconvert": {"jinja2", "markupsafe", "pygments", "mistune"},
    "matplotlib": {"fonttools"},
}


def names(requirements):
    """Return the distributions of requirement lines, in the spelling of the index, and what comes along with them."""
    named = {re.match(r"[\w.-]+", line)[0].lower().replace("_", "-") for line in requirements}
    return named.union(*(COME_ALONG.get(name, ()) for name in named))


def imported(folder, own):
    """Yield each top-level package outside the standard library that files below a folder import, with the file."""
    for path in sorted((REPOSITORY / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            found = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                found = [node.module]
            for name in found:
                top = name.split(".")[0]
                if top not in sys.stdlib_module_names and top not in own:
                    yield top, path.relative_to(REPOSITORY).as_posix()


LIBRARY = names(PROJECT["dependencies"])
MODEL = LIBRARY | names(PROJECT["optional-dependencies"]["model"])
LINES = (REPOSITORY / "requirements.txt").read_text("utf-8").splitlines()
ALL = MODEL | names(line for line in LINES if line and line[0] not in "#-")


@pytest.mark.parametrize(
    ("folder", "declared"),
    [
        ("lib/transformer_parts/language", LIBRARY),
        ("lib/transformer_parts/maths", LIBRARY),
        ("lib/transformer_parts/models", MODEL),
        ("lib/transformer_parts/runs", MODEL),
        ("lib/transformer_parts/draw", LIBRARY),
        ("lib/transformer_parts/learn", LIBRARY),
        ("lib/transformer_parts/explore", LIBRARY),
        ("tools", ALL),
    ],
)
def test_every_package_that_is_imported_is_declared(folder, declared):
    own = {"transformer_parts", *(path.stem for path in (REPOSITORY / "tools").iterdir())}
    distributions = packages_distributions()
    missing = {
        f"{file}: {package}"
        for package, file in imported(folder, own)
        if not {name.lower().replace("_", "-") for name in distributions.get(package, [package])} & declared
    }
    assert not missing


def normal(name):
    return name.lower().replace("_", "-")


def ranges():
    """Return the lower end of each declared range by its distribution, and the requirement."""
    declared = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["model"]]
    declared += [line for line in LINES if line and line[0] not in "#-"]
    return {
        normal(found[1]): (found[2], line) for line in declared if (found := re.match(r"([\w.-]+)>=([\d.]+)", line))
    }


def test_the_lowest_versions_are_the_lower_ends_of_the_ranges():
    text = (REPOSITORY / "requirements-lowest.txt").read_text("utf-8")
    lowest = {normal(name): Version(version) for name, version in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}
    # A lower end may be written shorter than the version that is the first within it.
    short = {name: str(version) for name, version in lowest.items()}
    assert lowest.keys() == ranges().keys()
    wrong = {name: (low, short[name]) for name, (low, _) in ranges().items() if not short[name].startswith(low)}
    assert wrong == {}


def test_the_lock_has_every_package_by_its_hashes_and_within_its_range():
    entries = re.split(r"^(?=[\w.-]+==)", (REPOSITORY / "requirements.lock").read_text("utf-8"), flags=re.MULTILINE)[1:]
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}", entry) for entry in entries)
    locked = dict(re.match(r"([\w.-]+)==([^\s;]+)", entry).groups() for entry in entries)
    for name, (_, line) in ranges().items():
        assert Requirement(line).specifier.contains(locked[name]), name


# Modules that reach other machines, or start programs that could.
NETWORK = {"asyncio", "ftplib", "http", "smtplib", "socket", "ssl", "subprocess", "urllib", "webbrowser", "xmlrpc"}
# The one command that downloads: pip, when a reader asks for the real model's weights.
DOWNLOADS = {("subprocess", "lib/transformer_parts/models/weights.py")}


def test_nothing_but_the_command_for_the_weights_reaches_the_network():
    found = set()
    for path in sorted((REPOSITORY / "lib").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module] if isinstance(node, ast.ImportFrom) and node.level == 0 else []
            place = path.relative_to(REPOSITORY).as_posix()
            found |= {(name.split(".")[0], place) for name in names if name.split(".")[0] in NETWORK}
    assert found == DOWNLOADS


def test_the_front_end_asks_no_server():
    asking = re.compile(r"\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|\bimport\(|[\"'`]https?:")
    files = [*(REPOSITORY / "lib").rglob("*.js"), *(REPOSITORY / "lib").rglob("*.css")]
    assert files
    found = {f"{file.name}: {hit}" for file in files for hit in asking.findall(file.read_text("utf-8"))}
    assert found == set()
