"""Whatever is given to a public function, it answers with finite numbers or with a ValueError that names an argument.

The public functions of maths, models, learn and runs are found by themselves: the names in ``__all__``, in a module
without one those whose docstring has a section "Parameters", and the methods of such classes.  Their valid arguments
are those with which they are called while the examples of all docstrings run, and while `MORE` runs.  In each call
one argument, or two, are then replaced by something hostile.
"""

import contextlib
import copy
import dataclasses
import doctest
import functools
import inspect
import io
import itertools
import math
import pkgutil
import random
import re
import signal
import sys
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

try:
    import resource
except ImportError:  # Windows has no such limit: there memory is not watched
    resource = None

ROOMS = ("maths", "models", "learn", "runs")
SECONDS = 4.0
BYTES = 2**31
"""What one call may take of the processor's time and of memory beyond what the process has."""

MORE = """
import tempfile
from pathlib import Path

from tiny_gguf import tiny_tensors, write_gguf
from transformer_parts.learn.exercise import Exercise
from transformer_parts.learn.interview_files import load_bank
from transformer_parts.learn.mock_interview import MockInterview, draw
from transformer_parts.learn.ratings import Ratings
from transformer_parts.learn.results import Results
from transformer_parts.maths import norm_placement
from transformer_parts.maths.cache import faults
from transformer_parts.maths.cross_entropy import cross_entropy_backward
from transformer_parts.maths.decoder import DecoderLayer, StackConfig, backward, forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.why_position import SelfAttention
from transformer_parts.models.generation import Session, generate
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.weights import GGUFFile
from transformer_parts.runs.stability import Arm, Task, run

layers, x = [DecoderLayer.random(d_model=8, n_heads=2, n_kv_heads=1, d_ff=16, seed=i) for i in (0, 1)], np.ones((6, 8))
faults.decode(layers, x, 3, "restart", pad=1, trained_length=4, layer=1)
faults.head_run(x, x, 3, "restart", trained_length=4, settings={"rope_base": 100.0})
faults.head_whole(x, x, 3, trained_length=4, settings={"rope_base": 100.0})
config = StackConfig(vocab_size=5, n_layers=2, d_model=8, n_heads=2, d_ff=16)
weights = initial_weights(config)
logits, tape = forward(weights, [[0, 3, 1]], config)
backward(cross_entropy_backward(logits, [[3, 1, 0]]), weights, tape, config)
norm_placement.sandwich_norm_backward(x, np.negative, np.positive, np.positive)
attend = SelfAttention.random(8, 2, scheme="rope")
attend.weights(x, start=1), attend.keys(x, start=1)

with tempfile.TemporaryDirectory() as folder:
    model = load_model(GGUFFile(write_gguf(Path(folder) / "tiny.gguf", tiny_tensors())), layout="split")
    model.forward([1, 2, 3], np.arange(3.0)), model.trace([1, 2], ["blk.0.q", "logits"])
    session = Session(model, capacity=4)
    session.feed([5, 6, 7], chunk=2)
    list(generate(session, 2, temperature=0.5, top_k=3, top_p=0.9, stop=(1,)))
    Ratings(Path(folder) / "ratings.json")
    Results(Path(folder) / "results.json")
Exercise("", np.negative, lambda rng: (rng.normal(size=2),), (), ()).check(np.negative, seed=1, cases=2)
load_bank(language="en")
interview = MockInterview(draw(load_bank().questions, 2, seed=1), 60.0)
interview.markdown(date="today", language="en")
next(run(Arm(), steps=4, task=Task(n_layers=1, d_model=8, n_heads=1, d_ff=8)))
"""


# ---------------------------------------------------------------- public functions and calls of them that are right


@dataclasses.dataclass(frozen=True)
class Door:
    """A public function, class or method, found under its name; `code` is that of the function that Python runs."""

    name: str
    call: Callable
    function: types.FunctionType

    def parameters(self) -> dict[str, inspect.Parameter]:
        return dict(inspect.signature(self.function).parameters)


TRUSTING = (
    "maths.decoder.layer.Layer",
    "maths.decoder.layer.DecoderLayer.attend",
    "maths.cache.fault_names.Fault.place",
    "maths.require",
    "maths.rope.phases_of",
    "maths.rope.turn_interleaved",
)
"""What works on arrays that its callers have checked, as the docstrings say: steps of a layer and of a rotation."""


def public(room: str) -> Iterator[Door]:
    package = pkgutil.resolve_name(f"transformer_parts.{room}")
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = pkgutil.resolve_name(found.name)
        listed = getattr(module, "__all__", None)
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != found.name:
                continue
            full = f"{found.name}.{name}".removeprefix("transformer_parts.")
            if inspect.isclass(thing):
                yield from methods(full, thing)
            if name not in listed if listed is not None else "Parameters\n" not in (thing.__doc__ or ""):
                continue
            if inspect.isfunction(thing):
                yield Door(full, thing, inspect.unwrap(thing))
            elif inspect.isclass(thing) and "__init__" in vars(thing) and checks(thing):
                yield Door(full, thing, inspect.unwrap(thing.__init__))


def checks(kind: type) -> bool:
    """Return whether a class looks at what it is made of: a record of results doesn't."""
    return "__post_init__" in vars(kind) or not dataclasses.is_dataclass(kind)


def methods(name: str, kind: type) -> Iterator[Door]:
    """Yield the methods of a class that say what they take."""
    for method, function in vars(kind).items():
        own = inspect.isfunction(function) and function.__module__ == kind.__module__
        if own and "Parameters\n" in (function.__doc__ or ""):
            yield Door(f"{name}.{method}", function, inspect.unwrap(function))


DOORS = {door.name: door for room in ROOMS for door in public(room) if not door.name.startswith(TRUSTING)}


@functools.cache
def calls() -> Mapping[str, list[dict]]:
    """Return for each door the arguments of up to two calls."""
    by_code = {door.function.__code__: door for door in DOORS.values()}
    found: dict[str, list[dict]] = {}

    def watch(frame, event, argument):
        if event != "call" or (door := by_code.get(frame.f_code)) is None:
            return
        known = found.setdefault(door.name, [])
        if len(known) < 2:
            values = {name: frame.f_locals[name] for name in door.parameters()}
            if door.call is not door.function and inspect.isclass(door.call):
                del values["self"]
            with contextlib.suppress(Exception):  # what cannot be copied, such as a generator that has begun
                values = copied(values)
                if not any(same(values, other) for other in known):
                    known.append(values)

    for source, names in examples():
        with contextlib.redirect_stdout(io.StringIO()):
            sys.setprofile(watch)
            try:
                exec(source, names)
            finally:
                sys.setprofile(None)
    return found


def examples() -> Iterator[tuple[types.CodeType, dict]]:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [module for name, module in sys.modules.items() if name.startswith("transformer_parts.")]
    for module in modules:
        if module.__name__.split(".")[1] in ROOMS:
            for test in finder.find(module):
                names = dict(test.globs)
                for example in test.examples:
                    if not example.exc_msg:
                        yield compile(example.source, test.name, "single"), names
    yield compile(MORE, "MORE", "exec"), {"np": np}


def copied(value):
    """Return a copy that a call may change; what is frozen stays itself."""
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*map(copied, value))
    if isinstance(value, list | tuple):
        return type(value)(map(copied, value))
    if dataclasses.is_dataclass(value) or isinstance(value, types.MappingProxyType):
        return value
    try:
        return copy.deepcopy(value)
    except TypeError:  # a tokenizer, or what holds a mapping proxy
        return value


def same(one, other) -> bool:
    return repr(one) == repr(other)


# ---------------------------------------------------------------- what is given in their place

ANYWHERE = {
    "None": lambda: None,
    "text": lambda: "text",
    "empty text": lambda: "",
    "bytes": lambda: b"1",
    "object": object,
    "a type": lambda: int,
    "function": lambda: lambda *given: None,
    "ragged": lambda: [[1.0], [1.0, 2.0]],
    "list of None": lambda: [None],
    "list of text": lambda: ["a", "b"],
    "list of NaN": lambda: [math.nan, 1.0],
    "empty list": lambda: [],
    "dict": lambda: {},
    "dict of None": lambda: {"a": None},
    "set": lambda: {1, 2},
    "iterator": lambda: iter([1, 2]),
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "True": lambda: True,
    "complex": lambda: 1j,
    "complex array": lambda: np.ones((2, 2), complex),
    "0": lambda: 0,
    "-1": lambda: -1,
    "-0.0": lambda: -0.0,
    "1": lambda: 1,
    "1.5": lambda: 1.5,
    "7": lambda: 7,
    "float16": lambda: np.float16(2),
    "bfloat16": lambda: ml_dtypes.bfloat16(2),
    "int8": lambda: np.int8(2),
    "fraction": lambda: Fraction(7, 2),
    "tiny": lambda: 1e-320,
    "huge": lambda: 1e308,
    "-huge": lambda: -1e308,
    "10**8": lambda: 10**8,
    "10**12": lambda: 10**12,
    "2**63": lambda: 2**63,
    "10**30": lambda: 10**30,
    "-10**30": lambda: -(10**30),
    "10**400": lambda: 10**400,
    "[10**30]": lambda: [10**30, 1],
    "0-d": lambda: np.array(2.0),
    "0-d int": lambda: np.array(2),
    "0-d object": lambda: np.array(None),
    "objects": lambda: np.array([1.0, None], object),
    "integers as objects": lambda: np.array([1, 2], object),
    "empty": lambda: np.empty((0, 3)),
    "empty last": lambda: np.empty((2, 0)),
    "structured": lambda: np.zeros(3, [("a", float), ("b", int)]),
    "dates": lambda: np.zeros(3, "datetime64[D]"),
    "durations": lambda: np.zeros(3, "timedelta64[s]"),
    "unicode": lambda: np.array(["a", "b"]),
    "five axes": lambda: np.ones((1, 2, 1, 2, 2)),
    "booleans": lambda: np.array([[True, False], [False, True]]),
    "matrix of 3": lambda: np.eye(3),
    "row of 2": lambda: np.ones(2),
    "longdouble": lambda: np.ones(2, np.longdouble),
    "namespace": types.SimpleNamespace,
    "rng": lambda: np.random.default_rng(0),
}

Change = Callable[[np.ndarray], object]
OF_AN_ARRAY: dict[str, Change] = {
    "as a list": lambda x: x.tolist(),
    "big-endian": lambda x: x.astype(x.dtype.newbyteorder(">")),
    "read-only": lambda x: np.lib.stride_tricks.as_strided(x, writeable=False),
    "float16": lambda x: x.astype(np.float16),
    "bfloat16": lambda x: x.astype(ml_dtypes.bfloat16),
    "float32": lambda x: x.astype(np.float32),
    "longdouble": lambda x: x.astype(np.longdouble),
    "complex": lambda x: x.astype(complex),
    "objects": lambda x: x.astype(object),
    "text": lambda x: x.astype(str),
    "int8": lambda x: x.astype(np.int8),
    "booleans": lambda x: x.astype(bool),
    "strided": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "turned": lambda x: x.T,
    "Fortran": np.asfortranarray,
    "negative": lambda x: -x,
    "zero": np.zeros_like,
    "first of it": lambda x: x[0],
    "one more axis": lambda x: x[None],
    "longer": lambda x: np.concatenate([x, x], axis=-1),
    "longer at first": lambda x: np.concatenate([x, x], axis=0),
    "shorter": lambda x: x[..., :-1],
    "empty": lambda x: x[:0],
    "NaN in it": lambda x: spoilt(x, np.nan),
    "inf in it": lambda x: spoilt(x, np.inf),
    "-inf in it": lambda x: spoilt(x, -np.inf),
    "huge": lambda x: x * 1e300,
    "largest": lambda x: np.full_like(x, np.finfo(x.dtype).max),
    "± largest": lambda x: np.full_like(x, np.finfo(x.dtype).max) * (-1) ** (np.indices(x.shape).sum(0) // 2),
    "largest float32": lambda x: np.full_like(x, np.finfo(np.float32).max, np.float32),
    "largest float16": lambda x: np.full_like(x, np.finfo(np.float16).max, np.float16),
    "largest bfloat16": lambda x: np.full(x.shape, 3e38, ml_dtypes.bfloat16),
    "tiny": lambda x: x * 1e-310,
    "masked": lambda x: np.ma.masked_array(x, mask=np.arange(x.size).reshape(x.shape) == 0),
    "plus one": lambda x: x + 1,
    "int64 limits": lambda x: np.full(x.shape, np.iinfo(np.int64).min),
    "uint64 limits": lambda x: np.full(x.shape, np.iinfo(np.uint64).max, np.uint64),
    "uint8": lambda x: x.astype(np.uint8),
}
OF_A_NUMBER: dict[str, Change] = {
    "one more": lambda n: n + 1,
    "one less": lambda n: n - 1,
    "twice": lambda n: n * 2,
    "negative": lambda n: -n,
    "as a float": float,
    "as an int64": np.int64,
    "as text": str,
    "as a list": lambda n: [n],
    "as an array": lambda n: np.array([n]),
    "as 0-d": np.array,
    "a thousandfold": lambda n: n * 1000,
    "a millionfold": lambda n: n * 10**6,
}
OF_A_DICT: dict[str, Change] = {
    "without one": lambda d: dict(list(d.items())[1:]),
    "one more": lambda d: {**d, "more": np.ones(2)},
    "number as key": lambda d: {**d, 1: np.ones(2)},
    "one None": lambda d: {**d, next(iter(d)): None},
    "one text": lambda d: {**d, next(iter(d)): "text"},
    "one ragged": lambda d: {**d, next(iter(d)): [[1.0], [1.0, 2.0]]},
    "one NaN": lambda d: {**d, next(iter(d)): np.full_like(next(iter(d.values())), np.nan)},
    "one cut": lambda d: {**d, next(iter(d)): next(iter(d.values()))[:1]},
    "keys": list,
    "big-endian": lambda d: {k: v.astype(v.dtype.newbyteorder(">")) for k, v in d.items()},
    "bfloat16": lambda d: {k: v.astype(ml_dtypes.bfloat16) for k, v in d.items()},
    "float16": lambda d: {k: v.astype(np.float16) for k, v in d.items()},
    "huge": lambda d: {k: v * 1e300 for k, v in d.items()},
}
OF_A_SEQUENCE: dict[str, Change] = {
    "cut": lambda s: s[:-1],
    "empty": lambda s: s[:0],
    "twice": lambda s: s + s,
    "None in it": lambda s: [*s[:-1], None],
    "text in it": lambda s: [*s[:-1], "text"],
    "object in it": lambda s: [object(), *s[1:]],
    "NaN in it": lambda s: [*s[:-1], math.nan],
    "iterator": iter,
    "first of it": lambda s: s[0],
}
OF_TEXT: dict[str, Change] = {"capitals": str.upper, "longer": lambda t: t + "x", "list": list}
OF_A_FUNCTION: dict[str, Change] = {
    "gives None": lambda f: lambda *x: None,
    "gives text": lambda f: lambda *x: "text",
    "gives NaN": lambda f: lambda *x: x[0] * math.nan,
    "gives a number": lambda f: lambda *x: 1.0,
    "gives less": lambda f: lambda *x: f(*x)[:1],
    "gives complex": lambda f: lambda *x: np.asarray(f(*x)) * 1j,
}
OF_A_RECORD: dict[str, Change] = {
    "its class": type,
    "its fields": lambda r: {f.name: getattr(r, f.name) for f in dataclasses.fields(r)},
    "its name": lambda r: type(r).__name__,
}


def spoilt(x: np.ndarray, by: float) -> np.ndarray:
    out = np.array(x, np.result_type(x.dtype, np.float16))
    out.flat[-1] = by
    return out


def changes(value) -> dict[str, Change]:
    if isinstance(value, np.ndarray):
        return OF_AN_ARRAY
    if isinstance(value, bool | None):
        return {}
    if isinstance(value, int | float | np.number):
        return OF_A_NUMBER
    if isinstance(value, str):
        return OF_TEXT
    if isinstance(value, Mapping):
        return OF_A_DICT
    if isinstance(value, list | tuple):
        return OF_A_SEQUENCE | ({} if as_array(value) is None else OF_AN_ARRAY)
    if dataclasses.is_dataclass(value):
        return OF_A_RECORD
    return OF_A_FUNCTION if callable(value) else {}


def as_array(value) -> np.ndarray | None:
    try:
        out = np.asarray(value)
    except ValueError:
        return None
    return out if out.dtype.kind in "iufb" and out.size else None


def hostile(kind: str, value) -> object:
    """Return what `kind` says: something for any argument, or `value` changed."""
    if kind in ANYWHERE:
        return ANYWHERE[kind]()
    change = changes(value)[kind.removeprefix("changed: ")]
    if isinstance(value, list | tuple) and kind.removeprefix("changed: ") not in OF_A_SEQUENCE:
        value = np.asarray(value)
    with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
        return change(value)


def kinds(value) -> list[str]:
    anywhere = [kind for kind in ANYWHERE if kind != "a type" or not callable(value)]  # what int() raises is its own
    return [*anywhere, *(f"changed: {name}" for name in changes(value))]


# ---------------------------------------------------------------- the calls


@dataclasses.dataclass(frozen=True)
class Case:
    """A call of a door, by the number of the valid call, with the kinds of what replaces some arguments."""

    door: Door
    call: int
    replaced: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.door.name} {self.call} {self.replaced}"

    def complaint(self) -> str | None:
        given = copied(calls()[self.door.name][self.call])
        try:
            for name, kind in self.replaced:
                given[name] = hostile(kind, given[name])
        except Exception:
            return None  # there is no such change of this value
        shown = ", ".join(f"{name}={brief(given[name])}" for name, _ in self.replaced)
        what = f"{self.door.name}({shown})"
        try:
            with bounded(), warnings.catch_warnings(action="error"):
                result = called(self.door, given)
        except ValueError as error:
            words = re.findall(r"\w+", str(error))
            if not re.match(r"[^:]+: got .*, want ", str(error), re.DOTALL) or not given.keys() & set(words):
                of_a_function = any(inspect.isfunction(value) for value in given.values())
                if not (of_a_function and ": got " in str(error)):  # a function that was given may refuse its argument
                    return f"{what} -> names no argument: {brief(error)}"
        except Exception as error:
            return f"{what} -> {type(error).__name__}: {brief(error)}"
        else:
            if self.door.name not in SHOWS_OVERFLOW and not all_finite(result):
                return f"{what} -> not finite: {brief(result)}"
        return None


SHOWS_OVERFLOW = {
    "maths.cross_entropy.log_softmax",
    "maths.feedforward.count_gates",
    "maths.norms.angle",
    "maths.norms.mean_square_in",
    "maths.norms.rms_norm_in",
    "maths.precision.round_to",
    "maths.relative_bias.half_distance",
    "maths.stability.grown_attention",
    "maths.training.clip_to_norm",
    "maths.rope_layout.convert_projection",
    "maths.rope_layout.reorder",
}
"""Their docstrings say that the result may show overflow or NaN, or that entries are only moved."""


def called(door: Door, given: dict) -> object:
    positional, named = [], {}
    for name, parameter in door.parameters().items():
        if name not in given:
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            positional += list(given[name])
        elif parameter.kind is parameter.VAR_KEYWORD:
            named |= given[name]
        elif parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = given[name]
        else:
            positional.append(given[name])
    result = door.call(*positional, **named)
    return next(result, None) if inspect.isgenerator(result) else result


@contextlib.contextmanager
def bounded() -> Iterator[None]:
    """Raise MemoryError or TimeoutError where a call takes too much."""

    def stop(number, frame):
        raise TimeoutError(f"more than {SECONDS} seconds")

    if resource is None:
        yield
        return
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[0]) * resource.getpagesize()
    before, limits = signal.signal(signal.SIGVTALRM, stop), resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (size + BYTES, limits[1]))
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        resource.setrlimit(resource.RLIMIT_AS, limits)


def all_finite(value, depth: int = 4) -> bool:
    if isinstance(value, float | complex | np.number | np.ndarray):
        value = np.asarray(value)
        return value.dtype.names or value.dtype.kind not in "fcV" or bool(np.isfinite(value.astype(complex)).all())
    if depth == 0 or isinstance(value, str | bytes):
        return True
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, list | tuple) or type(value).__name__ == "dict_values":
        return all(all_finite(item, depth - 1) for item in value)
    return True


def brief(value) -> str:
    return " ".join(repr(value).split())[:160]


def singles(door: Door) -> list[Case]:
    return [
        Case(door, number, ((name, kind),))
        for number, given in enumerate(calls().get(door.name, ()))
        for name in given
        if name != "self"
        for kind in kinds(given[name])
        if name != "note" or kind in ANYWHERE  # what a callback returns in place of a tensor is its own affair
    ]


def pairs(door: Door, count: int) -> list[Case]:
    """Return `count` cases in which two arguments are replaced."""
    rng, out = random.Random(door.name), []
    for number, given in enumerate(calls().get(door.name, ())):
        names = [name for name in given if name != "self"]
        both = list(itertools.combinations(names, 2))
        for _ in range(count if both else 0):
            chosen = rng.choice(both)
            out.append(Case(door, number, tuple((name, rng.choice(kinds(given[name]))) for name in chosen)))
    return out


@pytest.mark.parametrize("name", [name for name, door in DOORS.items() if set(door.parameters()) - {"self"}])
def test_hostile_arguments_are_refused_by_name(name, sample):
    door = DOORS[name]
    cases = sample.of(singles(door), 100) + sample.of(pairs(door, 40), 20)
    assert cases, "no call of it is known: add one to MORE"
    complaints = list(filter(None, (case.complaint() for case in cases)))
    assert not complaints, "\n".join([f"{len(complaints)} of {len(cases)} calls", *complaints[:20]])
