"""Compare the speed of the maths with a plain copy and with PyTorch: `make bench`.

The contenders of a row take turns in one run on one thread, and each row gives ratios of medians of CPU time; the
milliseconds are only there to show what was compared.  Where PyTorch is not installed its columns are empty.

A floor is what NumPy needs at least: the passes over memory that the formula cannot do without, each by one function of
NumPy on blocks that stay in cache, with no check of the arguments and no care for extreme numbers.
"""

import os
import statistics
import time
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial

# Slower kernels that some virtual machines name for old libraries; they would make the comparison unfair.
for _name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(_name, None)

import numpy as np
from threadpoolctl import threadpool_limits

from transformer_parts.maths import attention, norms, rope

try:
    import torch
except ModuleNotFoundError:
    torch = None

ROUNDS = 15


def medians(contenders: Mapping[str, Callable[[], object]], rounds: int = ROUNDS) -> dict[str, float]:
    """Return the median CPU seconds of each contender; they take turns, after one round that is not counted."""
    times = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, run in contenders.items():
            start = time.thread_time()
            run()
            times[name].append(time.thread_time() - start)
    return {name: statistics.median(seconds[1:]) for name, seconds in times.items()}


def report(title: str, seconds: Mapping[str, float], *, ours: str, targets: Mapping[str, float]) -> None:
    """Print the ratio of `ours` to every other contender, and whether it is within its target."""
    print(f"\n{title}")
    print(f"  {ours:34}{seconds[ours] * 1e3:9.2f} ms")
    for name, value in seconds.items():
        if name == ours:
            continue
        ratio = seconds[ours] / value
        verdict = "" if name not in targets else ("  met" if ratio <= targets[name] else "  MISSED")
        target = f"  (target ≤ {targets[name]:g})" if name in targets else ""
        print(f"  {name:34}{value * 1e3:9.2f} ms   ours / this = {ratio:5.2f}{target}{verdict}")


def floor_of_split(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, rows: int = 256) -> None:
    """Two products, the exchange of the halves and a sum, all of them with ready-made sines (L, 2, P)."""
    out, halves = np.empty_like(x), (*x.shape[:-1], 2, x.shape[-1] // 2)
    parts, results = (a.reshape(-1, *halves[-3:]) for a in (x.reshape(halves), out.reshape(halves)))
    scratch = np.empty((rows, *halves[-2:]), x.dtype)
    for start in range(0, x.shape[-2], rows):
        at = slice(start, start + rows)
        for part, result in zip(parts[:, at], results[:, at], strict=True):
            np.multiply(part, cos[at], out=scratch)
            np.copyto(result, part[:, ::-1])
            np.multiply(result, sin[at], out=result)
            np.add(result, scratch, out=result)


def floor_of_norm(x: np.ndarray, weight: np.ndarray, bias: np.ndarray | None) -> None:
    """RMSNorm: a sum of squares and two products; LayerNorm: another sum, a difference and a sum with the bias."""
    out, ones = np.empty_like(x), np.ones(x.shape[-1], x.dtype)
    step = max(1, norms.BLOCK_BYTES // x[0].nbytes)
    for start in range(0, len(x), step):
        rows, result = x[start : start + step], out[start : start + step]
        if bias is not None:
            rows = np.subtract(rows, np.vecdot(rows, ones)[:, None], out=result)
        np.multiply(rows, np.vecdot(rows, rows)[:, None], out=result)
        np.multiply(result, weight, out=result)
        if bias is not None:
            np.add(result, bias, out=result)


def floor_of_attention(query: np.ndarray, key: np.ndarray, value: np.ndarray, rows: int = 64) -> None:
    """The two matrix products of causal attention and a pass for each of maximum, difference, exponential and sum."""
    shared, length, width = query.shape[1] // key.shape[1], query.shape[2], query.shape[3]
    room, ones = np.empty(shared * rows * length, query.dtype), np.ones(length, query.dtype)
    for queries, keys, values in zip(query.reshape(-1, shared, length, width), key[0], value[0], strict=True):
        for stop in range(rows, length + 1, rows):
            part = queries[:, stop - rows : stop].reshape(-1, width)
            block = np.matmul(part, keys[:stop].T, out=room[: len(part) * stop].reshape(-1, stop))
            np.subtract(block, block.max(-1)[:, None], out=block)
            np.exp(block, out=block)
            np.vecdot(block, ones[:stop])
            block @ values[:stop]


def bench_rotate() -> None:
    """Rotate (1, 32, 2048, 128) float32 in both layouts."""
    x = np.random.default_rng(0).standard_normal((1, 32, 2048, 128)).astype(np.float32)
    positions = np.arange(2048)
    others = {"numpy copy": x.copy}
    targets = {"numpy copy": 2.5}
    phase = rope.phases_of(rope.angles(positions, rope.inv_freq(128)), x.dtype)
    cosines, sines = np.stack([phase.real] * 2, axis=1), np.stack([-phase.imag, phase.imag], axis=1)
    floors = {
        "interleaved": lambda: np.multiply(x.view(phase.dtype), phase),
        "split": lambda: floor_of_split(x, cosines, sines),
    }
    if torch is not None:
        angle = rope.angles(positions, rope.inv_freq(128))
        tensor = torch.from_numpy(x)
        phases = torch.polar(torch.ones(angle.shape), torch.from_numpy(angle).float())
        cos, sin = (torch.from_numpy(np.tile(f(angle), 2).astype(np.float32)) for f in (np.cos, np.sin))

        def complex_form():
            pairs = torch.view_as_complex(tensor.reshape(*tensor.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * phases).flatten(-2)

        def half_form():
            first, second = tensor.chunk(2, dim=-1)
            return tensor * cos + torch.cat((-second, first), dim=-1) * sin

        # PyTorch gets its sines and cosines ready-made; ours computes them in the timed call.
        others |= {"torch, complex numbers": complex_form, "torch, halves exchanged": half_form}
        targets |= {"torch, complex numbers": 1.0, "torch, halves exchanged": 1.0}
    for layout in rope.LAYOUTS:
        ours = f"rotate, {layout}"
        runs = {ours: lambda layout=layout: rope.rotate(x, positions, layout=layout), "NumPy's floor": floors[layout]}
        times = medians(runs | others)
        report(f"RoPE, {layout} layout, float32 {x.shape}, sines included", times, ours=ours, targets=targets)


def bench_norms() -> None:
    """RMSNorm and LayerNorm at a wide and a narrow model width."""
    for shape in ((2048, 4096), (2048, 576)):
        rng = np.random.default_rng(0)
        x = rng.standard_normal(shape).astype(np.float32)
        weight, bias = rng.standard_normal((2, shape[-1])).astype(np.float32)
        ours = {
            "rms_norm": lambda x=x, w=weight: norms.rms_norm(x, w),
            "layer_norm": lambda x=x, w=weight, b=bias: norms.layer_norm(x, w, b),
        }
        for name, run in ours.items():
            shift = bias if name == "layer_norm" else None
            floor = partial(floor_of_norm, x, weight, shift)
            contenders = {name: run, "NumPy's floor": floor, "numpy copy": x.copy}
            if torch is not None:
                tensor, w, b = map(torch.from_numpy, (x, weight, bias))
                width = (shape[-1],)
                contenders["torch"] = {
                    "rms_norm": lambda t=tensor, w=w, n=width: torch.nn.functional.rms_norm(t, n, w, 1e-6),
                    "layer_norm": lambda t=tensor, w=w, b=b, n=width: torch.nn.functional.layer_norm(t, n, w, b),
                }[name]
            target = 1.2 if shape[-1] == 576 and shift is not None else 1.0
            report(f"{name}, float32 {shape}", medians(contenders), ours=name, targets={"torch": target})


def bench_attention() -> None:
    """Causal attention with grouped heads: time beside PyTorch at 2048 tokens, memory at 16384."""
    rng = np.random.default_rng(0)

    def tensors(length):
        return [rng.standard_normal((1, heads, length, 64)).astype(np.float32) for heads in (9, 3, 3)]

    query, key, value = tensors(2048)
    contenders = {
        "attention": lambda: attention.attention(query, key, value, causal=True),
        "NumPy's floor": lambda: floor_of_attention(query, key, value),
    }
    if torch is not None:
        q, k, v = map(torch.from_numpy, (query, key, value))
        contenders["torch"] = lambda: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=True
        )
    times = medians(contenders)
    report("causal attention, 9 heads, 3 kv heads, 2048 tokens", times, ours="attention", targets={"torch": 1.5})

    query, key, value = tensors(16384)
    tracemalloc.start()
    start = time.thread_time()
    attention.attention(query, key, value, causal=True)
    seconds = time.thread_time() - start
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    scores = 9 * 16384**2 * 4
    print("\ncausal attention, 9 heads, 3 kv heads, 16384 tokens")
    print(
        f"  {seconds:.1f} s, peak {peak / 2**20:.0f} MiB beyond its input; all scores at once: {scores / 2**20:.0f} MiB"
    )


def main() -> None:
    """Run all comparisons on one thread."""
    print(f"NumPy {np.__version__}, PyTorch {torch.__version__ if torch else 'not installed'}, one thread")
    if torch is not None:
        torch.set_num_threads(1)
    with threadpool_limits(1):
        bench_rotate()
        bench_norms()
        bench_attention()


if __name__ == "__main__":
    main()
