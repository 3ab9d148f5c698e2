"""Checks of arguments: each returns the checked value or raises a ``ValueError`` that names it.

Every message has the same three parts: the argument, what it got and what it wants.  A value is shown by its
``repr``, so that a string has its quotes; a description (a shape, a dtype) has none.
"""

import functools
import inspect
import math
import re
import types
from collections.abc import Callable, Collection, Iterable, Mapping
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from transformer_parts.maths import arguments

_BOOLEANS = (bool, np.bool_)
LARGEST_INTEGER = 2**63 - 1

MOST_ENTRIES = 2**26
"""The most entries of an array whose size plain numbers ask for: 512 MiB in float64."""


def refusal(name: str, got: str, wanted: str) -> ValueError:
    """Return the error to raise for the argument `name`; `got` is the ``repr`` of a value, or words about it."""
    return ValueError(f"{name}: got {got}, want {wanted}")


def boolean(name: str, value: object) -> bool:
    """Return `value` if it is True or False (a 0 or a "no" isn't taken for one)."""
    if not isinstance(value, _BOOLEANS):
        raise refusal(name, repr(value), "True or False")
    return bool(value)


def integer(
    name: str, value: object, *, minimum: int = 1, multiple_of: int = 1, maximum: int | None = LARGEST_INTEGER
) -> int:
    """Return `value` as an int from `minimum` to `maximum` (None: any) that is a multiple of `multiple_of`."""
    wanted = f"an integer of at least {minimum}"
    if maximum not in (None, LARGEST_INTEGER):
        wanted += f" and at most {maximum}"
    if multiple_of != 1:
        wanted += " that is even" if multiple_of == 2 else f" that is a multiple of {multiple_of}"
    if isinstance(value, _BOOLEANS) or not isinstance(value, Integral):
        raise refusal(name, repr(value), wanted)
    if value < minimum or value % multiple_of or (maximum is not None and value > maximum):
        got = repr(int(value)) if abs(value) <= LARGEST_INTEGER else "an integer beyond 64 bits"
        raise refusal(name, got, wanted)
    return int(value)


def sizes(**given: int) -> None:
    """Refuse the sizes of an array that would have more than `MOST_ENTRIES` entries, by the name of the largest."""
    if math.prod(given.values()) > MOST_ENTRIES:
        name = max(given, key=given.get)
        others = "".join(f" with {other} = {size}" for other, size in given.items() if other != name)
        raise refusal(name, f"{given[name]}{others}", f"an array of at most {MOST_ENTRIES} entries")


def number(
    name: str, value: object, *, above: float = -np.inf, minimum: float = -np.inf, maximum: float = np.inf
) -> float:
    """Return `value` as a finite float greater than `above`, at least `minimum` and at most `maximum`."""
    wanted = "a finite number"
    if above != -np.inf:
        wanted += f" above {above:g}"
    if minimum != -np.inf:
        wanted += f" of at least {minimum:g}"
    if maximum != np.inf:
        wanted += f" and at most {maximum:g}"
    if isinstance(value, _BOOLEANS) or not isinstance(value, Real):
        raise refusal(name, repr(value), wanted)
    try:
        value = float(value)
    except OverflowError:
        raise refusal(name, "an integer beyond float64", wanted) from None
    if not (np.isfinite(value) and value > above and minimum <= value <= maximum):
        raise refusal(name, repr(value), wanted)
    return value


def one_of(name: str, value: object, choices: Collection[str]) -> str:
    """Return `value` if it is one of `choices`."""
    if not isinstance(value, str) or value not in choices:
        raise refusal(name, repr(value), "one of " + ", ".join(map(repr, choices)))
    return value


def text(name: str, value: object) -> str:
    """Return `value` if it is a text."""
    if not isinstance(value, str):
        raise refusal(name, repr(value), "a text")
    return value


def members(name: str, value: Iterable) -> list:
    """Return the members of a collection, an array or an iterator; a text is none."""
    instance(name, value, Iterable)
    return value.ravel().tolist() if isinstance(value, np.ndarray) else list(value)


def array(name: str, value: ArrayLike, *, min_ndim: int = 1, finite: bool = True) -> NDArray:
    """Return the argument `name` as a non-empty real floating array of at least `min_ndim` axes.

    Integers become float64; every floating dtype (bfloat16 of ml_dtypes included) is kept.  NaN is refused, and with
    `finite` infinities too.
    """
    out = floating(name, value, min_ndim=min_ndim)
    if finite:
        all_numbers(name, out)
    else:
        _refuse_bad(name, out, "no NaN", lambda x: not np.isnan(x).any(), lambda x: ~np.isnan(x))
    return out


def floating(name: str, value: ArrayLike, *, min_ndim: int = 1) -> NDArray:
    """Return `value` as `array` does, without checking the entries: for callers whose own result reveals NaN."""
    if np.ma.is_masked(value):
        raise refusal(name, f"a masked array, {np.ma.count_masked(value)} of its entries masked", "every entry")
    out = as_array(name, value)
    if out.dtype.kind in "iu":
        out = out.astype(np.float64)
    if not is_floating(out.dtype):
        raise refusal(name, f"an array of {out.dtype}", "real numbers")
    if out.ndim < min_ndim:
        raise refusal(name, f"shape {out.shape}", f"at least {_axes(min_ndim)}")
    if out.size == 0:
        raise refusal(name, f"shape {out.shape}", "no empty axis")
    return out


def as_array(name: str, value: ArrayLike) -> NDArray:
    """Return `value` as an array of any dtype and shape; refuse rows of different lengths."""
    try:
        return np.asarray(value)
    except (ValueError, TypeError):
        raise refusal(name, f"a {type(value).__name__}", "an array whose rows have one length") from None


def mask(
    name: str, value: ArrayLike, to: tuple[int, ...], of: str, true: str = "may attend (what is added goes to bias)"
) -> NDArray[np.bool_]:
    """Return `value` as an array of booleans of the shape `to`, to which it broadcasts."""
    out = as_array(name, value)
    if out.dtype != np.bool_:
        raise refusal(name, str(out.dtype), f"bool, True = {true}")
    broadcasts(name, out.shape, to, of)
    return np.broadcast_to(out, to)


def all_numbers(name: str, x: NDArray) -> None:
    """Refuse NaN and infinities in `x`."""
    _refuse_bad(name, x, "finite numbers", all_finite, np.isfinite)


def cast(name: str, x: NDArray, dtype: np.dtype) -> NDArray:
    """Return `x` in `dtype` (itself where it has that dtype); refuse what overflows there."""
    if x.dtype == dtype:
        return x
    with np.errstate(over="ignore"):
        out = x.astype(dtype)
    if not all_finite(out):
        bad = ~np.isfinite(out) & np.isfinite(x)
        if bad.any():
            raise refusal(name, str(x[bad][0]), f"numbers within {np.dtype(dtype).name}")
    return out


def shape(name: str, x: NDArray, wanted: tuple[int | str, ...], why: str) -> None:
    """Refuse `x` unless it has the shape `wanted`, in which a letter means any size."""
    fits = x.ndim == len(wanted) and all(
        isinstance(size, str) or size == have for have, size in zip(x.shape, wanted, strict=True)
    )
    if not fits:
        letters = ", ".join(map(str, wanted)) + ("," if len(wanted) == 1 else "")
        raise refusal(name, f"shape {x.shape}", f"shape ({letters}), {why}")


def indices(name: str, value: ArrayLike, size: int, *, minimum: int = 0) -> NDArray:
    """Return `value` as a non-empty array of integers from `minimum` to `size` − 1, such as token ids."""
    out = as_array(name, value)
    if out.dtype.kind not in "iu":
        raise refusal(name, f"an array of {out.dtype}", "integers")
    if out.size == 0:
        raise refusal(name, f"shape {out.shape}", "no empty axis")
    if out.min() < minimum or out.max() >= size:
        bad = out[(out < minimum) | (out >= size)].flat[0]
        raise refusal(name, str(bad), f"integers from {minimum} to {size - 1}")
    return out


def permutation(name: str, value: ArrayLike) -> NDArray[np.integer]:
    """Return `value` as an array of integers that holds each of 0 … n − 1 once."""
    out = as_array(name, value)
    if out.ndim != 1 or out.dtype.kind not in "iu" or not np.array_equal(np.sort(out), np.arange(out.size)):
        raise refusal(name, f"{out.dtype} of shape {out.shape}", "each whole number from 0 on once")
    return out


def function(name: str, value: object) -> None:
    """Refuse `value` unless it can be called."""
    if not callable(value):
        raise refusal(name, repr(value), "a function of one array")


def applied(name: str, function: Callable, x: NDArray) -> NDArray:
    """Return function(x), finite and of the shape of `x`, for an elementwise `function` given as argument `name`."""
    y = array(f"{name}'s result", function(x), min_ndim=0)
    shape(f"{name}'s result", y, x.shape, "that of its argument")
    return y


def _refuse_bad(name, x, wanted, quick, good) -> None:
    if quick(x):
        return
    bad = np.argwhere(~good(x))
    where = tuple(int(i) for i in bad[0])
    raise refusal(name, f"{x[where]} at index {where} ({len(bad)} such in all)", wanted)


def all_finite(x: NDArray) -> bool:
    """Return whether every entry of a floating array is finite.

    A dot product of the array with itself is read at memory speed and is finite only if every entry is;
    where it isn't (perhaps the squares alone overflowed) the entries are checked one by one.
    """
    if x.dtype in (np.float32, np.float64) and x.flags.c_contiguous:
        flat = x.reshape(-1)
        with np.errstate(all="ignore"):
            if np.isfinite(np.dot(flat, flat)):
                return True
    return bool(np.isfinite(x).all())


def ndim(name: str, x: NDArray, axes: int) -> None:
    """Refuse `x` unless it has exactly `axes` axes."""
    if x.ndim != axes:
        raise refusal(name, f"shape {x.shape}", f"exactly {_axes(axes)}")


def even_last_axis(name: str, x: NDArray) -> None:
    """Refuse `x` unless its last axis is even, so that all its channels make pairs."""
    if x.shape[-1] % 2:
        raise refusal(name, f"shape {x.shape}", "an even last axis, all of whose channels make pairs")


def _axes(count: int) -> str:
    return f"{count} {'axis' if count == 1 else 'axes'}"


def last_axis(name: str, x: NDArray, size: int, of: str) -> None:
    """Refuse `x` unless its last axis has `size` entries, as `of` (an argument and its axis) has."""
    if x.shape[-1] != size:
        raise refusal(name, f"shape {x.shape}", f"a last axis of {size}, as {of}")


def broadcasts(name: str, shape: tuple[int, ...], to: tuple[int, ...], of: str) -> None:
    """Refuse a shape that does not broadcast to exactly the shape `to` of `of`."""
    try:
        fits = np.broadcast_shapes(shape, to) == tuple(to)
    except ValueError:
        fits = False
    if not fits:
        raise refusal(name, f"shape {shape}", f"a shape that broadcasts to {tuple(to)}, {of}")


def broadcasts_with(name: str, shape: tuple[int, ...], other: tuple[int, ...], of: str) -> None:
    """Refuse a shape that does not broadcast with the shape `other` of `of`."""
    try:
        np.broadcast_shapes(shape, other)
    except ValueError:
        raise refusal(name, f"shape {shape}", f"a shape that broadcasts with {other}, {of}") from None


def is_floating(dtype: np.dtype) -> bool:
    """Return whether a dtype is a real floating one, bfloat16 (an extension dtype) included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def dtype(name: str, value: DTypeLike, *, least_bits: int = 16) -> np.dtype:
    """Return `value` as a real floating dtype of at least so many bits."""
    try:
        out = np.dtype(value)
    except TypeError:
        raise refusal(name, repr(value), "a floating dtype") from None
    if not is_floating(out) or value is None or out.itemsize * 8 < least_bits:
        raise refusal(name, str(out), f"a floating dtype of at least {least_bits} bits")
    return out


def compute_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype to compute in, of native byte order: float32 for the 16-bit ones, else the dtype itself."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype.newbyteorder("=")


def in_one_dtype(**given: ArrayLike) -> list[NDArray]:
    """Return named arrays in the one dtype to compute in, at least float32; their entries are not checked."""
    arrays = [floating(name, value) for name, value in given.items()]
    dtype = np.result_type(*(compute_dtype(x.dtype) for x in arrays))
    return [x.astype(dtype, copy=False) for x in arrays]


def door(function: Callable) -> Callable:
    """Let a public function refuse arguments of a wrong class, and a result that overflows, by the argument's name.

    The class is read from the annotation, where that is one of ours, or a mapping, a sequence or a function.  What is
    refused on the way is blamed on the argument whose entries are furthest from 1, or on all numbers if none is far.
    """
    signature = inspect.signature(function)
    wanted = {
        p.name: (arguments.classes(p.annotation), arguments.elements(p.annotation))
        for p in signature.parameters.values()
    }
    wanted = {name: classes for name, classes in wanted.items() if any(classes)}

    def run(positional, named):
        given = signature.bind(*positional, **named).arguments
        for name, (classes, elements) in wanted.items():
            if name in given:
                instance(name, given[name], *classes)
                for i, element in enumerate(given[name] if elements else ()):
                    instance(f"{name}[{i}]", element, *elements)
        try:
            with np.errstate(all="ignore"):
                result = function(*positional, **named)
            if _shows_numbers(result):
                return result
            refused = "result: got infinities, want finite numbers"
        except ValueError as error:
            refused = str(error)
            if ": got " not in refused or signature.parameters.keys() & re.findall(r"\w+", refused.split(": got ")[0]):
                raise
        sizes = {name: arguments.extremeness(value) for name, value in given.items()}
        furthest = max(sizes, key=sizes.get)
        names = [furthest] if sizes[furthest] > 30 else [name for name in sizes if sizes[name] >= 0] or sizes
        raise ValueError(f"{', '.join(names)}: got what is refused as {refused}")

    def checked(*positional, **named):
        return run(positional, named)

    # doctest reads a function only where its globals are those of the module
    made = types.FunctionType(checked.__code__, function.__globals__, closure=checked.__closure__)
    return functools.wraps(function)(made)


def instance(name: str, value: object, *classes: type) -> None:
    """Refuse `value` unless it is of one of the classes; a mapping has names as keys."""
    if not isinstance(value, classes) or isinstance(value, str | bytes):
        if Callable in classes:
            raise refusal(name, repr(value), "a function")
        wanted = " or ".join(c.__name__ for c in classes if c is not type(None))
        raise refusal(name, "None" if value is None else f"a {type(value).__name__}", f"a {wanted}")
    if isinstance(value, Mapping) and not all(isinstance(key, str) for key in value):
        raise refusal(name, "keys that are no strings", "names as keys")


def _shows_numbers(result: object) -> bool:
    """Return whether all numbers in a result, also those in tuples and mappings, are finite."""
    if isinstance(result, np.ndarray | np.generic | float):
        result = np.asarray(result)
        return not is_floating(result.dtype) or all_finite(result)
    if isinstance(result, Mapping):
        result = tuple(result.values())
    return not isinstance(result, tuple | list) or all(map(_shows_numbers, result))


def finite(results: tuple[NDArray, ...], **given: NDArray) -> tuple[NDArray, ...]:
    """Return the results computed from the named arrays; where one is not finite, refuse the array that made it so."""
    if all(map(all_finite, results)):
        return results
    for name, x in given.items():
        all_numbers(name, x)
    name, x = next(iter(given.items()))
    raise refusal(name, f"entries up to {np.abs(x).max():.3g}", f"gradients within {x.dtype.name}")
