"""Checks of arguments: each returns the checked value or raises a ``ValueError`` that names it.

Every message has the same three parts: the argument, what it got and what it wants.  A value is shown by its
``repr``, so that a string has its quotes; a description (a shape, a dtype) has none.
"""

from collections.abc import Collection
from numbers import Integral, Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

_BOOLEANS = (bool, np.bool_)


def refusal(name: str, got: str, wanted: str) -> ValueError:
    """Return the error to raise for the argument `name`; `got` is the ``repr`` of a value, or words about it."""
    return ValueError(f"{name}: got {got}, want {wanted}")


def boolean(name: str, value: object) -> bool:
    """Return `value` if it is True or False (a 0 or a "no" isn't taken for one)."""
    if not isinstance(value, _BOOLEANS):
        raise refusal(name, repr(value), "True or False")
    return bool(value)


def integer(name: str, value: object, *, minimum: int = 1, multiple_of: int = 1, maximum: int | None = None) -> int:
    """Return `value` as an int from `minimum` to `maximum` that is a multiple of `multiple_of`."""
    wanted = f"an integer of at least {minimum}"
    if maximum is not None:
        wanted += f" and at most {maximum}"
    if multiple_of != 1:
        wanted += " that is even" if multiple_of == 2 else f" that is a multiple of {multiple_of}"
    if isinstance(value, _BOOLEANS) or not isinstance(value, Integral):
        raise refusal(name, repr(value), wanted)
    if value < minimum or value % multiple_of or (maximum is not None and value > maximum):
        raise refusal(name, repr(int(value)), wanted)
    return int(value)


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
    try:
        out = np.asarray(value)
    except ValueError:
        raise refusal(name, f"a {type(value).__name__}", "an array whose rows have one length") from None
    if out.dtype.kind in "iu":
        out = out.astype(np.float64)
    if not is_floating(out.dtype):
        raise refusal(name, f"an array of {out.dtype}", "real numbers")
    if out.ndim < min_ndim:
        raise refusal(name, f"shape {out.shape}", f"at least {_axes(min_ndim)}")
    if out.size == 0:
        raise refusal(name, f"shape {out.shape}", "no empty axis")
    return out


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
    out = np.asarray(value)
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
    out = np.asarray(value)
    if out.ndim != 1 or out.dtype.kind not in "iu" or not np.array_equal(np.sort(out), np.arange(out.size)):
        raise refusal(name, f"{out.dtype} of shape {out.shape}", "each whole number from 0 on once")
    return out


def function(name: str, value: object) -> None:
    """Refuse `value` unless it can be called."""
    if not callable(value):
        raise refusal(name, repr(value), "a function of one array")


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


def compute_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype to compute in, of native byte order: float32 for the 16-bit ones, else the dtype itself."""
    return np.dtype(np.float32) if dtype.itemsize < 4 else dtype.newbyteorder("=")


def in_one_dtype(**given: ArrayLike) -> list[NDArray]:
    """Return named arrays in the one dtype to compute in, at least float32; their entries are not checked."""
    arrays = [floating(name, value) for name, value in given.items()]
    dtype = np.result_type(*(compute_dtype(x.dtype) for x in arrays))
    return [x.astype(dtype, copy=False) for x in arrays]


def finite(results: tuple[NDArray, ...], **given: NDArray) -> tuple[NDArray, ...]:
    """Return the results computed from the named arrays; where one is not finite, refuse the array that made it so."""
    if all(map(all_finite, results)):
        return results
    for name, x in given.items():
        all_numbers(name, x)
    name, x = next(iter(given.items()))
    raise refusal(name, f"entries up to {np.abs(x).max():.3g}", f"gradients within {x.dtype.name}")
