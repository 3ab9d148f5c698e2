"""The rules of the house that no ready-made law can say, and a look at whether the ready-made ones bite.

`pyproject.toml` holds the others: import-linter's contracts (which room may import which), ruff's banned names and
docstring rules, and pytest's run of the examples in docstrings.  Each rule here reads one module of
``lib/transformer_parts`` and yields complaints.
"""

import ast
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from size import code_lines

REPOSITORY = Path(__file__).parents[1]
PROJECT = REPOSITORY / "pyproject.toml"
PACKAGE = "transformer_parts"
MATHS = f"{PACKAGE}.maths"
LONGEST_MODULE = 250
# One sentence says what each of their functions checks or does.
PLUMBING = (f"{MATHS}.require", f"{MATHS}.cache.decoding")


def parse(name: str, text: str) -> SimpleNamespace:
    return SimpleNamespace(name=name, text=text, tree=ast.parse(text))


def module_at(path: Path) -> SimpleNamespace:
    name = ".".join(path.relative_to(REPOSITORY / "lib").with_suffix("").parts)
    return parse(name.removesuffix(".__init__"), path.read_text("utf-8"))


MODULES = tuple(map(module_at, sorted((REPOSITORY / "lib" / PACKAGE).rglob("*.py"))))


# ---------------------------------------------------------------- names, lengths, imports and state


def names_say_what_a_module_holds(module) -> Iterator[str]:
    for part in module.name.split("."):
        if part.strip("_") in ("utils", "util", "utilities", "helpers", "helper", "common", "misc"):
            yield f"{part} says nothing"


def modules_are_short(module) -> Iterator[str]:
    if (count := code_lines(module.text)) > LONGEST_MODULE:
        yield f"{count} lines of code, at most {LONGEST_MODULE} are wanted"


def maths_imports_numpy_alone(module) -> Iterator[str]:
    """import-linter can forbid packages by name, but not all but one."""
    allowed = {PACKAGE, "numpy", *sys.stdlib_module_names, *["ml_dtypes"] * (module.name == f"{MATHS}.precision")}
    for node in ast.walk(module.tree) if module.name.startswith(MATHS) else ():
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in [node.module] if isinstance(node, ast.ImportFrom) else names:
            if name.split(".")[0] not in allowed:
                yield f"line {node.lineno} imports {name}"


def constants_are_immutable(module) -> Iterator[str]:
    for node in statements(module.tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = ", ".join(map(ast.unparse, targets))
            if names != "__all__" and is_mutable(node.value):
                yield f"line {node.lineno} binds {names} to something mutable"


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, those inside if, try, with and for too."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            parts = [node, *getattr(node, "handlers", []), *getattr(node, "cases", [])]
            for part in parts:
                for name in ("body", "orelse", "finalbody"):
                    yield from statements(getattr(part, name, []))


def is_mutable(value: ast.expr) -> bool:
    """Return whether an expression makes a list, dict, set or array, or a tuple or read-only mapping of such."""
    match value:
        case ast.List() | ast.Dict() | ast.Set() | ast.ListComp() | ast.DictComp() | ast.SetComp():
            return True
        case ast.Tuple(elts=parts):
            return any(map(is_mutable, parts))
        case ast.IfExp(body=one, orelse=other) | ast.BinOp(left=one, right=other):
            return is_mutable(one) or is_mutable(other)
        case ast.Call(args=[ast.Dict(values=parts)]) if ast.unparse(value.func).endswith("MappingProxyType"):
            return any(map(is_mutable, parts))
        case ast.Call(args=[ast.DictComp(value=part)]) if ast.unparse(value.func).endswith("MappingProxyType"):
            return is_mutable(part)
        case ast.Call(func=function):
            arrays = r"(np|numpy)\.(array|asarray|zeros|ones|empty|full|arange|linspace|eye)"
            containers = r"(collections\.)?(list|dict|set|bytearray|defaultdict|OrderedDict|Counter|deque)"
            return re.fullmatch(f"{arrays}|{containers}", ast.unparse(function)) is not None
    return False


# ---------------------------------------------------------------- docstrings of names that are called from elsewhere
# For the other names of maths one sentence is enough, which ruff wants (D101, D102, D103).


@cache
def called() -> frozenset:
    """Return the functions and classes of maths that other rooms and notebooks use."""
    trees = [module.tree for module in MODULES if not module.name.startswith(MATHS)]
    for path in (REPOSITORY / "notebooks").glob("*/*.ipynb"):
        cells = json.loads(path.read_text("utf-8"))["cells"]
        trees.append(ast.parse("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")))
    things = (resolved(name) for tree in trees for name in uses(tree))
    return frozenset(thing for thing in things if inspect.isclass(thing) or inspect.isfunction(thing))


def uses(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names of maths that a module imports, or reads from a module that it imports."""
    bound = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(f"{MATHS}."):
            bound |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    yield from bound.values()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in bound:
            yield f"{bound[node.value.id]}.{node.attr}"


def resolved(name: str) -> object:
    """Return the object of a dotted name; None where a name of the caller's own hides a module's."""
    try:
        return pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return None


def undocumented(thing: Callable) -> Iterator[str]:
    """Yield what a docstring lacks of parameters by name, of what is returned and of an example, or says wrongly."""
    name, docstring, signature = thing.__qualname__, inspect.getdoc(thing) or "", inspect.signature(thing)
    documented, parameters = entries(docstring, "Parameters"), signature.parameters.keys() - {"self"}
    # "…" leaves the other parameters to the class that is named there.  Attributes need not be parameters.
    wrong = documented - parameters - {"…"} if "…" in documented else documented ^ parameters
    if wrong := wrong - entries(docstring, "Attributes"):
        yield f"{name} and its docstring differ in {', '.join(sorted(wrong))}"
    if inspect.isclass(thing):
        # A method that overrides another is documented there.
        inherited = {key for base in thing.__mro__[1:] for key in vars(base)}
        methods = [item for key, item in vars(thing).items() if inspect.isfunction(item) and key[0] != "_"]
        methods = [method for method in methods if method.__name__ not in inherited]
        for method in methods:
            yield from (complaint for complaint in undocumented(method) if "no example" not in complaint)
        if not methods:  # a record is shown in use by what returns it
            return
    elif signature.return_annotation not in (None, "None") and not re.search("(Returns|Yields)\n---", docstring):
        yield f"{name}: no Returns"
    if ">>>" not in docstring:
        yield f"{name}: no example"


def entries(docstring: str, section: str) -> set[str]:
    """Return the names that a section of a docstring has entries for."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", docstring, flags=re.MULTILINE)
    lines = dict(zip(parts[1::2], parts[2::2], strict=True)).get(section, "").splitlines()
    names = [
        re.split(r"\s+:|:\s", line)[0]
        for line in lines
        if line and not line[0].isspace() and not line.startswith("Source: ")
    ]
    return {name.strip(" *`") for line in names for name in line.split(",")}


# ---------------------------------------------------------------- the rules hold, and bite

RULES = (names_say_what_a_module_holds, modules_are_short, maths_imports_numpy_alone, constants_are_immutable)
REFUSED = [
    (names_say_what_a_module_holds, "draw.utils", ""),
    (names_say_what_a_module_holds, "maths._helpers.rope", ""),
    (modules_are_short, "maths.rope", "x = (\n" + "1 +\n" * 248 + "1)\ny = 1"),
    (maths_imports_numpy_alone, "maths.rope", "import scipy.special"),
    (maths_imports_numpy_alone, "maths.rope", "def f():\n    from torch import nn"),
    (maths_imports_numpy_alone, "maths.norms", "import ml_dtypes"),
    (constants_are_immutable, "maths.rope", "cache = {}"),
    (constants_are_immutable, "maths.rope", "SIZES: list[int] = [1, 2]"),
    (constants_are_immutable, "maths.rope", "PAIRS = ((1, 2), [3, 4])"),
    (constants_are_immutable, "maths.rope", "try:\n    import gguf\nexcept ImportError:\n    seen = set()"),
    (constants_are_immutable, "maths.rope", "MODELS = MappingProxyType({'a': [1, 2]})"),
    (constants_are_immutable, "maths.rope", "MODELS = types.MappingProxyType({n: [n] for n in range(3)})"),
    (constants_are_immutable, "maths.rope", "TABLE = 2 * np.zeros(5)"),
]
PASSED = [
    (names_say_what_a_module_holds, "maths.rope", ""),
    (modules_are_short, "maths.rope", '"""A module.\n\nOf x."""\n' + "x = 1\n" * 250 + "# a comment\n\n"),
    (maths_imports_numpy_alone, "maths.precision", "import ml_dtypes\nimport math\nfrom numpy.typing import NDArray"),
    (maths_imports_numpy_alone, "draw.rope", "from matplotlib.figure import Figure"),
    (constants_are_immutable, "maths.rope", "__all__ = ['f']\nKINDS = ('a', 'b')\ndef f():\n    seen = {}"),
    (constants_are_immutable, "maths.rope", "RULES = MappingProxyType({'a': (1, 2)})"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds_in_every_module(rule):
    assert len(MODULES) > 100
    complaints = [f"{module.name}: {complaint}" for module in MODULES for complaint in rule(module)]
    assert not complaints, "\n" + "\n".join(complaints)


@pytest.mark.parametrize(("rule", "name", "text"), REFUSED)
def test_rule_refuses(rule, name, text):
    assert [*rule(parse(f"{PACKAGE}.{name}", text))]


@pytest.mark.parametrize(("rule", "name", "text"), PASSED)
def test_rule_lets_pass(rule, name, text):
    assert not [*rule(parse(f"{PACKAGE}.{name}", text))]


def test_called_names_are_documented():
    things = [thing for thing in called() if thing.__module__ not in PLUMBING]
    assert len(things) > 100
    complaints = [f"{thing.__module__}.{complaint}" for thing in things for complaint in undocumented(thing)]
    assert not complaints, "\n" + "\n".join(sorted(complaints))


def half(x, *, by=2) -> float:
    """Return a part of x.

    Parameters
    ----------
    x, by : float
        The numbers.

    Returns
    -------
    float
        Their quotient.

    Examples
    --------
    >>> half(2)
    1.0
    """
    return x / by


class Pair(NamedTuple):
    """Two numbers.

    Attributes
    ----------
    a, b : float
        The numbers.
    """

    a: float
    b: float


@pytest.mark.parametrize(
    ("thing", "old", "new", "complaint"),
    [
        (half, "x, by", "x, to", "half and its docstring differ in by, to"),
        (half, "x, by", "x", "half and its docstring differ in by"),
        (half, "Returns\n    -", "Gives\n    -", "half: no Returns"),
        (half, ">>>", ">>", "half: no example"),
        (Pair, "a, b", "a", "Pair and its docstring differ in b"),
        (type("Part", (), {"take": half, "__doc__": ""}), "", "", "Part: no example"),
    ],
)
def test_a_docstring_is_refused_for_what_it_lacks(thing, old, new, complaint, monkeypatch):
    monkeypatch.setattr(thing, "__doc__", thing.__doc__.replace(old, new))
    assert [*undocumented(thing)] == [complaint]


def test_names_are_called_by_import_and_by_attribute():
    text = f"from {MATHS} import rope as r\nfrom {MATHS}.cache import KVCache\nr.rotate(1)"
    assert {*uses(ast.parse(text))} == {f"{MATHS}.{name}" for name in ("rope", "rope.rotate", "cache.KVCache")}


# ---------------------------------------------------------------- the ready-made laws hold, and bite


def run(*command: str | Path, **options) -> subprocess.CompletedProcess:
    program, *arguments = command
    return subprocess.run(
        [Path(sys.executable).parent / program, *arguments], capture_output=True, text=True, **options
    )


def lint_imports(lib: Path) -> subprocess.CompletedProcess:
    return run("lint-imports", "--no-cache", PROJECT, env=os.environ | {"PYTHONPATH": str(lib), "COLUMNS": "200"})


def test_rooms_import_from_the_rooms_below():
    done = lint_imports(REPOSITORY / "lib")
    assert done.returncode == 0, done.stdout


def test_a_room_imports_from_no_other_room_and_every_room_has_its_place(tmp_path):
    may_import = {"maths": "", "language": "", "models": "maths", "runs": "maths models"}
    may_import |= dict.fromkeys(("draw", "learn"), "maths models runs language")
    may_import |= {"explore": "maths models runs language draw learn", "cellar": ""}
    for room in ("", *may_import):
        (tmp_path / PACKAGE / room).mkdir(parents=True, exist_ok=True)
        others = [other for other in may_import if other != room] if room else []
        text = "\n".join(f"def f():\n    from {PACKAGE}.{other} import a" for other in others)
        (tmp_path / PACKAGE / room / "__init__.py").write_text(text)
    said = lint_imports(tmp_path).stdout
    refused = {*re.findall(rf"{PACKAGE}\.(\w+) is not allowed to import {PACKAGE}\.(\w+):", said)}
    rooms = may_import.keys() - {"cellar"}
    assert refused == {(room, other) for room in rooms for other in rooms - {room, *may_import[room].split()}}
    assert f"not listed as layers:\n\n- {PACKAGE}.cellar" in said


BANNED = {
    "import matplotlib.pyplot as plt": "TID251",
    "from matplotlib import pyplot": "TID251",
    "import pylab": "TID251",
    "import matplotlib as mpl; mpl.rcParams['font.size'] = 9": "TID251",
    "mpl.rc('font', size=9)": "TID251",
    "from matplotlib import rc_context": "TID251",
    "from matplotlib.style import use": "TID251",
    "from functools import cache": "TID251",
    "import functools; f = functools.lru_cache(print)": "TID251",
    "from importlib import import_module as load": "TID251",
    "import sys; sys.path.insert(0, '..')": "TID251",
    "from sys import path": "TID251",
    "from . import theme": "TID252",
    "def f(): global n; n = 1": "PLW0603",
    "assert len('a') == 1": "S101",
    "def undocumented(): ...": "D103",
    "class Undocumented: ...": "D101",
}


def test_ruff_refuses_what_is_banned():
    arguments = ("check", "--config", PROJECT, "--stdin-filename", "lib/transformer_parts/maths/planted.py")
    done = run("ruff", *arguments, "--output-format=json", "-", input="\n".join(BANNED), cwd=REPOSITORY)
    found = {(item["location"]["row"], item["code"]) for item in json.loads(done.stdout)}
    assert {*enumerate(BANNED.values(), 1)} <= found


def test_examples_in_docstrings_are_run(tmp_path):
    (tmp_path / "planted.py").write_text('"""\n>>> 1 + 1\n3\n"""')
    done = run("pytest", "-c", PROJECT, "--rootdir", tmp_path, tmp_path / "planted.py", cwd=tmp_path)
    assert "Expected:\n    3\nGot:\n    2" in done.stdout
    assert "1 failed" in done.stdout
