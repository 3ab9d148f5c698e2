"""The rules of the house: which room may import which, what a module may hold, and what its docstrings say.

Each rule reads the source of one module of ``lib/transformer_parts`` and yields complaints; further down, each is
shown a few lines that it must refuse and a few that it must let pass.
"""

import ast
import doctest
import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = "transformer_parts"
LIB = REPOSITORY / "lib" / PACKAGE
LONGEST_MODULE = 300
# Modules that serve the other modules of the maths room alone: what `require` says at its top holds for all of it.
PLUMBING = (f"{PACKAGE}.maths.require", f"{PACKAGE}.maths.attention_blocks")

# The rooms each room may import from, beside itself.
MAY_IMPORT = MappingProxyType(
    {
        "language": (),
        "maths": (),
        "models": ("language", "maths"),
        "runs": ("language", "maths", "models"),
        "draw": ("language", "maths", "models", "runs"),
        "learn": ("language", "maths", "models", "runs"),
        "explore": ("language", "maths", "models", "runs", "draw", "learn"),
    }
)


class Module(NamedTuple):
    """The source of one module and where it stands."""

    name: str
    text: str
    tree: ast.Module
    is_package: bool = False

    @property
    def room(self) -> str:
        """The room's name; empty for the package's own ``__init__``."""
        return [*self.name.split("."), ""][1]


def parse(name: str, text: str, *, is_package: bool = False) -> Module:
    return Module(name, text, ast.parse(text), is_package)


def module_at(path: Path) -> Module:
    parts = (PACKAGE, *path.relative_to(LIB).with_suffix("").parts)
    is_package = parts[-1] == "__init__"
    return parse(".".join(parts[:-1] if is_package else parts), path.read_text("utf-8"), is_package=is_package)


MODULES = tuple(module_at(path) for path in sorted(LIB.rglob("*.py")))


def imports(module: Module) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of all that a module imports, inside its functions too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            source = node.module or ""
            if node.level:
                parents = module.name.split(".")
                parents = parents[: len(parents) - node.level + module.is_package]
                source = ".".join([*parents, *filter(None, [source])])
            yield from ((node.lineno, f"{source}.{alias.name}") for alias in node.names)


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements that run when a module is imported, those inside if, try, with and for too."""
    for node in body:
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for name in ("body", "orelse", "finalbody"):
                yield from statements(getattr(node, name, []))
            for part in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
                yield from statements(part.body)


# ---------------------------------------------------------------- the rules


def rooms_import_only_rooms_before_them(module: Module) -> Iterator[str]:
    if module.room and module.room not in MAY_IMPORT:
        yield f"{module.name}: {module.room} is no room of the house"
        return
    allowed = (module.room, *MAY_IMPORT.get(module.room, ()))
    for line, target in imports(module):
        first, *rest = target.split(".")
        if first == PACKAGE and (not rest or rest[0] == "*" or (rest[0] in MAY_IMPORT and rest[0] not in allowed)):
            yield f"{module.name}:{line} imports {target}"


def imports_are_written_out(module: Module) -> Iterator[str]:
    """An import by a computed name would pass by the other rules."""
    for node in ast.walk(module.tree):
        name = getattr(node, "attr", getattr(node, "id", getattr(node, "name", None)))
        if name in ("import_module", "__import__"):
            yield f"{module.name}:{getattr(node, 'lineno', 1)} calls {name}"


def maths_is_numpy_alone(module: Module) -> Iterator[str]:
    if module.room != "maths":
        return
    allowed = {"numpy", PACKAGE, *sys.stdlib_module_names}
    if module.name == f"{PACKAGE}.maths.precision":
        allowed.add("ml_dtypes")
    for line, target in imports(module):
        if target.split(".")[0] not in allowed:
            yield f"{module.name}:{line} imports {target}"


def figures_have_no_global_state(module: Module) -> Iterator[str]:
    """Neither pyplot, which keeps every figure, nor rcParams, which every figure reads."""
    banned = {"pyplot", "pylab", "rcParams", "rcParamsDefault", "rc", "rc_context", "rcdefaults", "rc_file"}
    for line, target in imports(module):
        parts = target.split(".")
        if parts[0] in ("matplotlib", "pylab", "mpl_toolkits") and (banned & set(parts) or parts[1:2] == ["style"]):
            yield f"{module.name}:{line} imports {target}"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and (
            node.attr in banned - {"rc"}
            or ast.unparse(node) in ("matplotlib.rc", "mpl.rc", "matplotlib.style", "mpl.style")
        ):
            yield f"{module.name}:{node.lineno} reads {ast.unparse(node)}"


def names_say_what_a_module_holds(module: Module) -> Iterator[str]:
    for part in module.name.split("."):
        if part.strip("_") in ("utils", "util", "utilities", "helpers", "helper", "common", "misc"):
            yield f"{module.name}: {part} says nothing"


def modules_are_short(module: Module) -> Iterator[str]:
    count = len(module.text.splitlines())
    if count > LONGEST_MODULE:
        yield f"{module.name} has {count} lines, at most {LONGEST_MODULE} (better 250) are wanted"


def input_checks_are_no_asserts(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Assert):
            yield f"{module.name}:{node.lineno} asserts, which python -O leaves out"


def modules_keep_no_state(module: Module) -> Iterator[str]:
    for node in statements(module.tree.body):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [ast.unparse(target) for target in targets]
            if names != ["__all__"] and is_mutable(node.value):
                yield f"{module.name}:{node.lineno} binds {', '.join(names)} to something mutable"
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Global):
            yield f"{module.name}:{node.lineno} has a global statement"
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("functools.cache", "functools.lru_cache"):
            yield f"{module.name}:{node.lineno} has a cache for the whole module"
    for line, target in imports(module):
        if target in ("functools.cache", "functools.lru_cache"):
            yield f"{module.name}:{line} has a cache for the whole module"


def is_mutable(value: ast.expr) -> bool:
    """Tell whether an expression makes a list, dict, set or array, or a tuple or read-only mapping of such."""
    displays = ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    if isinstance(value, displays):
        return True
    if isinstance(value, ast.Tuple):
        return any(map(is_mutable, value.elts))
    if isinstance(value, ast.IfExp):
        return is_mutable(value.body) or is_mutable(value.orelse)
    if isinstance(value, ast.BinOp):
        return is_mutable(value.left) or is_mutable(value.right)
    if not isinstance(value, ast.Call):
        return False
    *owner, name = ast.unparse(value.func).split(".")
    if name == "MappingProxyType":
        (argument,) = value.args
        if isinstance(argument, ast.Call):  # dict(…), zip(…): what is in it is not seen here
            return False
        inner = argument.values if isinstance(argument, ast.Dict) else [getattr(argument, "value", argument)]
        return any(map(is_mutable, inner))
    if owner in (["np"], ["numpy"]):
        return name in ("array", "asarray", "zeros", "ones", "empty", "full", "arange", "linspace", "eye")
    return name in ("list", "dict", "set", "bytearray", "defaultdict", "OrderedDict", "Counter", "deque")


def paths_are_left_alone(module: Module) -> Iterator[str]:
    if "sys.path" in module.text or "sys.path" in (target for _, target in imports(module)):
        yield f"{module.name} contains sys.path"


def maths_is_documented(module: Module) -> Iterator[str]:
    """Numpydoc: the parameters by name, what is returned, what is raised, and an example.

    Public are the names in ``__all__`` where there is one, otherwise those without an underscore.  Names that
    other modules of the room share but that are not public need a docstring alone.
    """
    if module.room != "maths":
        return
    public = names_in_all(module)
    for node in module.tree.body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        where, docstring = f"{module.name}.{node.name}", ast.get_docstring(node)
        if docstring is None:
            yield f"{where} has no docstring"
        elif module.name not in PLUMBING and (public is None or node.name in public):
            check = undocumented if isinstance(node, ast.FunctionDef) else undocumented_class
            yield from (f"{where}: {what}" for what in check(node, docstring))
            if not is_record(node) and ">>>" not in sections(docstring).get("Examples", ""):
                yield f"{where}: no Examples that run"


def names_in_all(module: Module) -> set[str] | None:
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return set(ast.literal_eval(node.value))
    return None


def is_record(node: ast.FunctionDef | ast.ClassDef) -> bool:
    """Tell whether a class has fields and properties alone; the functions that return it show it in use."""
    return isinstance(node, ast.ClassDef) and all(
        is_property(method) or (method.name.startswith("_") and method.name not in ("__init__", "__call__"))
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    )


def is_property(method: ast.FunctionDef) -> bool:
    return any("property" in ast.unparse(decorator) for decorator in method.decorator_list)


def undocumented_class(node: ast.ClassDef, docstring: str) -> Iterator[str]:
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    fields = {
        item.target.id
        for item in node.body
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and not item.target.id.startswith("_")
    }
    for method in methods:
        if method.name == "__init__":
            fields = parameters(method)
    documented = names_of(docstring, "Parameters") | names_of(docstring, "Attributes")
    if fields - documented:
        yield f"not documented: {', '.join(sorted(fields - documented))}"
    for method in methods:
        if method.name.startswith("_"):
            continue
        text = ast.get_docstring(method)
        if text is None:
            yield f"{method.name} has no docstring"
        elif not is_property(method):
            yield from (f"{method.name}: {what}" for what in undocumented(method, text))


def undocumented(node: ast.FunctionDef, docstring: str) -> Iterator[str]:
    """Yield what a function's docstring lacks, or names that the function does not have."""
    if wrong := parameters(node) ^ names_of(docstring, "Parameters"):
        yield f"Parameters and signature differ in {', '.join(sorted(wrong))}"
    own = list(nodes_of(node))
    if any(isinstance(n, ast.Return) and n.value is not None for n in own) and "Returns" not in sections(docstring):
        yield "no Returns"
    checks = (ast.unparse(n.func) for n in own if isinstance(n, ast.Call))
    silent = ("require.is_floating", "require.compute_dtype", "require.all_finite")
    raises = any(isinstance(n, ast.Raise) for n in own)
    raises = raises or any(name.startswith("require.") and name not in silent for name in checks)
    if raises and "Raises" not in sections(docstring):
        yield "no Raises"


def parameters(node: ast.FunctionDef) -> set[str]:
    signature = node.args
    every = [*signature.posonlyargs, *signature.args, signature.vararg, *signature.kwonlyargs, signature.kwarg]
    return {a.arg for a in every if a is not None} - {"self", "cls"}


def nodes_of(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function without those of the functions in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.Lambda | ast.ClassDef):
            yield child
            yield from nodes_of(child)


def sections(docstring: str) -> dict[str, str]:
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", inspect.cleandoc(docstring), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def names_of(docstring: str, section: str) -> set[str]:
    entries = [line for line in sections(docstring).get(section, "").splitlines() if line and not line[0].isspace()]
    return {name.strip(" *`") for line in entries for name in re.split(r"\s+:|:\s", line)[0].split(",")}


RULES = (
    rooms_import_only_rooms_before_them,
    imports_are_written_out,
    maths_is_numpy_alone,
    figures_have_no_global_state,
    names_say_what_a_module_holds,
    modules_are_short,
    input_checks_are_no_asserts,
    modules_keep_no_state,
    paths_are_left_alone,
    maths_is_documented,
)


# ---------------------------------------------------------------- the rules hold


def test_the_house_is_found():
    assert {f"{PACKAGE}.maths.rope", f"{PACKAGE}.maths", PACKAGE} <= {module.name for module in MODULES}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_rule_holds_in_every_module(rule):
    complaints = [complaint for module in MODULES for complaint in rule(module)]
    assert not complaints, "\n" + "\n".join(complaints)


def test_notebooks_leave_paths_alone():
    notebooks = [path for path in (REPOSITORY / "notebooks").rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts]
    assert not [path.name for path in notebooks if "sys.path" in path.read_text("utf-8")]


@pytest.mark.parametrize("name", [module.name for module in MODULES])
def test_examples_in_docstrings_run(name):
    printed = []
    runner = doctest.DocTestRunner()
    for test in doctest.DocTestFinder().find(importlib.import_module(name)):
        runner.run(test, out=printed.append)
    assert runner.failures == 0, "".join(printed)


# ---------------------------------------------------------------- the rules can fail


DOCUMENTED = '''
def half(x, *, scale=1.0):
    """Return half of x.

    Parameters
    ----------
    x : array_like
        Numbers.
    scale : float
        Factor.

    Returns
    -------
    ndarray
        Half of them.

    Raises
    ------
    ValueError
        If an entry is not finite.

    Examples
    --------
    >>> half(2)
    1.0
    """
    return scale * require.array("x", x) / 2
'''
CLASS = '''
class Pair:
    """Two numbers.

    Parameters
    ----------
    a, b : float
        The numbers.

    Examples
    --------
    >>> Pair(1, 2).total
    3
    """
    a: float
    b: float

    @property
    def total(self):
        """The sum."""
        return self.a + self.b

    def times(self, factor):
        """Return both times a factor.

        Parameters
        ----------
        factor : float
            The factor.

        Returns
        -------
        Pair
            A new one.
        """
        return Pair(factor * self.a, factor * self.b)
'''

REFUSED = [
    (rooms_import_only_rooms_before_them, "maths.rope", "from transformer_parts.draw import theme"),
    (rooms_import_only_rooms_before_them, "maths.rope", "def f():\n    import transformer_parts.models.configs"),
    (rooms_import_only_rooms_before_them, "maths.rope", "from ..draw import theme"),
    (rooms_import_only_rooms_before_them, "maths.rope", "from .. import learn"),
    (rooms_import_only_rooms_before_them, "models.configs", "from transformer_parts import draw"),
    (rooms_import_only_rooms_before_them, "models.configs", "from transformer_parts import *"),
    (rooms_import_only_rooms_before_them, "draw.rope", "import transformer_parts"),
    (rooms_import_only_rooms_before_them, "draw.rope", "class A:\n    from transformer_parts.explore import panel"),
    (rooms_import_only_rooms_before_them, "models.configs", "from transformer_parts.runs.recorded import load"),
    (rooms_import_only_rooms_before_them, "runs.stability", "from transformer_parts.draw import theme"),
    (rooms_import_only_rooms_before_them, "draw.rope", "from transformer_parts.learn.rope import ROTATE"),
    (rooms_import_only_rooms_before_them, "learn.rope", "from transformer_parts.draw.rope import Clock"),
    (rooms_import_only_rooms_before_them, "learn.rope", "from transformer_parts.explore import rope"),
    (rooms_import_only_rooms_before_them, "cellar.rope", ""),
    (imports_are_written_out, "maths.rope", "import importlib\nimportlib.import_module('transformer_parts.draw')"),
    (imports_are_written_out, "maths.rope", "from importlib import import_module as load"),
    (imports_are_written_out, "maths.rope", "draw = __import__('transformer_parts.draw')"),
    (maths_is_numpy_alone, "maths.rope", "import scipy.special"),
    (maths_is_numpy_alone, "maths.rope", "def f():\n    from torch import nn"),
    (maths_is_numpy_alone, "maths.norms", "import ml_dtypes"),
    (figures_have_no_global_state, "draw.rope", "import matplotlib.pyplot as plt"),
    (figures_have_no_global_state, "draw.rope", "def f():\n    from matplotlib import pyplot"),
    (figures_have_no_global_state, "draw.theme", "import matplotlib\nmatplotlib.rcParams['font.size'] = 9"),
    (figures_have_no_global_state, "draw.theme", "import matplotlib as mpl\nmpl.rc('font', size=9)"),
    (figures_have_no_global_state, "draw.theme", "from matplotlib import rc_context"),
    (figures_have_no_global_state, "draw.theme", "from matplotlib.style import use"),
    (names_say_what_a_module_holds, "draw.utils", ""),
    (names_say_what_a_module_holds, "maths._helpers", ""),
    (modules_are_short, "maths.rope", "x = 1\n" * 301),
    (input_checks_are_no_asserts, "maths.rope", "def f(x):\n    if x:\n        assert x > 0"),
    (modules_keep_no_state, "maths.rope", "cache = {}"),
    (modules_keep_no_state, "maths.rope", "SIZES: list[int] = [1, 2]"),
    (modules_keep_no_state, "maths.rope", "SQUARES = {n: n * n for n in range(9)}"),
    (modules_keep_no_state, "maths.rope", "PAIRS = ((1, 2), [3, 4])"),
    (modules_keep_no_state, "maths.rope", "try:\n    import gguf\nexcept ImportError:\n    seen = set()"),
    (modules_keep_no_state, "maths.rope", "seen = dict()"),
    (modules_keep_no_state, "maths.rope", "MODELS = MappingProxyType({'a': [1, 2]})"),
    (modules_keep_no_state, "maths.rope", "TABLE = np.zeros(5)"),
    (modules_keep_no_state, "maths.rope", "from functools import lru_cache\n@lru_cache\ndef f(n):\n    return n"),
    (modules_keep_no_state, "maths.rope", "import functools\n@functools.cache\ndef f(n):\n    return n"),
    (modules_keep_no_state, "maths.rope", "n = 0\ndef f():\n    global n\n    n += 1"),
    (paths_are_left_alone, "maths.rope", "import sys\nsys.path.insert(0, '..')"),
    (paths_are_left_alone, "maths.rope", "from sys import path"),
    (maths_is_documented, "maths.rope", "def half(x):\n    return x / 2"),
    (maths_is_documented, "maths.require", "def half(x):\n    return x / 2"),
    (maths_is_documented, "maths.rope", 'def half(x):\n    """Return half of x."""\n    return x / 2'),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace("x : array_like", "y : array_like")),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace("    scale : float\n        Factor.\n", "")),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace("x, *, scale=1.0", "x, *, scale=1.0, shift=0.0")),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace("Returns\n    -------", "Gives\n    -----")),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace("Raises\n    ------", "Warns\n    -----")),
    (maths_is_documented, "maths.rope", DOCUMENTED.replace(">>>", ">>")),
    (maths_is_documented, "maths.rope", "__all__ = ['half']\ndef half(x):\n    'Return half of x.'\n    return x / 2"),
    (maths_is_documented, "maths.rope", "__all__ = ['f']\ndef half(x):\n    return x / 2"),
    (maths_is_documented, "maths.rope", CLASS.replace("a, b : float", "a : float")),
    (maths_is_documented, "maths.rope", CLASS.replace('"""The sum."""', "")),
    (maths_is_documented, "maths.rope", CLASS.replace("factor : float", "by : float")),
    (maths_is_documented, "maths.rope", CLASS.replace(">>>", "")),
]

PASSED = [
    (rooms_import_only_rooms_before_them, "draw.rope", "from transformer_parts.maths import rope\nfrom . import theme"),
    (rooms_import_only_rooms_before_them, "explore.rope", "from ..draw.rope import Clock\nimport numpy as np"),
    (rooms_import_only_rooms_before_them, "learn.rope", "from transformer_parts.models import configs"),
    (rooms_import_only_rooms_before_them, "explore.rope", "from transformer_parts.learn.rope import ROTATE"),
    (rooms_import_only_rooms_before_them, "draw.stability", "from transformer_parts.runs.recorded import Recording"),
    (imports_are_written_out, "models.excerpt", "from importlib.resources import files"),
    (maths_is_numpy_alone, "maths.precision", "import ml_dtypes\nimport math\nfrom numpy.typing import NDArray"),
    (maths_is_numpy_alone, "draw.rope", "from matplotlib.figure import Figure"),
    (figures_have_no_global_state, "draw.rope", "from matplotlib.figure import Figure\nfigure = Figure()"),
    (names_say_what_a_module_holds, "maths.rope", ""),
    (modules_are_short, "maths.rope", "x = 1\n" * 300),
    (input_checks_are_no_asserts, "maths.rope", "def f(x):\n    if x <= 0:\n        raise ValueError"),
    (modules_keep_no_state, "maths.rope", "__all__ = ['f']\nKINDS = ('a', 'b')\nSEEN = frozenset({1, 2})"),
    (
        modules_keep_no_state,
        "maths.rope",
        "RULES = MappingProxyType({'a': (1, 2)})\ndef f():\n    seen = {}\n    return seen",
    ),
    (modules_keep_no_state, "maths.rope", "MODELS = types.MappingProxyType({n: (n,) for n in range(3)})"),
    (paths_are_left_alone, "maths.rope", "import sys\nsys.exit"),
    (maths_is_documented, "maths.rope", DOCUMENTED + CLASS + "def _private(x):\n    return x"),
    (maths_is_documented, "draw.rope", "def half(x):\n    return x / 2"),
    (maths_is_documented, "maths.rope", "__all__ = ['f']\ndef half(x):\n    'Return half of x.'\n    return x / 2"),
    (maths_is_documented, "maths.require", "def half(x):\n    'Return half of x.'\n    return x / 2"),
    (maths_is_documented, "maths.rope", CLASS[: CLASS.index("    def times")].replace(">>>", "")),
]


def short(value) -> str:
    return getattr(value, "__name__", str(value)[:40])


def test_every_rule_is_shown_something_to_refuse():
    assert {rule for rule, _, _ in REFUSED} == set(RULES) == {rule for rule, _, _ in PASSED}


@pytest.mark.parametrize(("rule", "name", "text"), REFUSED, ids=short)
def test_rule_refuses(rule, name, text):
    assert list(rule(parse(f"{PACKAGE}.{name}", text)))


@pytest.mark.parametrize(("rule", "name", "text"), PASSED, ids=short)
def test_rule_lets_pass(rule, name, text):
    assert not list(rule(parse(f"{PACKAGE}.{name}", text)))


def test_relative_imports_are_read_from_where_they_stand():
    text = "from . import a\nfrom .b import c\nfrom .. import draw"
    within = [target for _, target in imports(parse(f"{PACKAGE}.maths.rope", text))]
    assert within == [f"{PACKAGE}.maths.a", f"{PACKAGE}.maths.b.c", f"{PACKAGE}.draw"]
    package = [target for _, target in imports(parse(f"{PACKAGE}.maths", text, is_package=True))]
    assert package == within
