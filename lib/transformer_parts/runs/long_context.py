"""Loss by position over 16,384 tokens of a book, for a model configured for 8,192, by method of context extension.

``python -m transformer_parts.runs.long_context`` reads the package of `long_text` and the weights of
`models.weights` in the folder ``weights``.  One pass over 16,384 tokens takes minutes: the file is rewritten after
each, so that a run may be stopped, and ``--resume`` makes the passes alone that the file lacks.
"""

import argparse
import sys
from collections.abc import Container, Iterator
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_parts.maths import context_extension, require, rope
from transformer_parts.maths.cache import KVCache, stack_step
from transformer_parts.maths.context_extension import ScaledRope
from transformer_parts.models import weights
from transformer_parts.models.configs import LlamaSizes
from transformer_parts.models.smollm2 import SmolLM2, load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.variants import token_losses, with_rope
from transformer_parts.models.weights import GGUFFile
from transformer_parts.runs import long_text, recorded

NAME = "long_context"
LENGTH = 16384
BLOCK = 1024
#: "restarted" is the model as trained that forgets everything every 8,192 tokens, the length of its configuration.
METHODS = ("plain", "yarn", "ntk_aware", "dynamic_ntk", "position_interpolation", "restarted")


def scaled_rope(method: str, sizes: LlamaSizes, length: int) -> ScaledRope:
    """Return a method's frequencies for a text of `length` tokens.

    The factor is length over trained length, and at least 1: "dynamic_ntk" is the only one of `METHODS` by which a
    model that met a shorter text before has other frequencies now.
    """
    require.one_of("method", method, METHODS)
    factor = max(1.0, length / sizes.context_length)
    settings = {"rope_base": sizes.rope_base}
    match method:
        case "position_interpolation":
            return context_extension.position_interpolation(sizes.head_dim, factor, **settings)
        case "ntk_aware":
            return context_extension.ntk_aware(sizes.head_dim, factor, **settings)
        case "dynamic_ntk":
            return context_extension.dynamic_ntk(sizes.head_dim, length, sizes.context_length, **settings)
        case "yarn":
            return context_extension.yarn(sizes.head_dim, factor, sizes.context_length, **settings)
        case _:
            return ScaledRope(rope.inv_freq(sizes.head_dim, **settings), 1.0)


def hidden_dynamic(model: SmolLM2, token_ids: ArrayLike, block: int = BLOCK) -> NDArray[np.float32]:
    """Return the residual vectors after the last layer, with frequencies that follow the length, (L, D).

    The cache keeps keys before the rotation; with every block of tokens all of them are turned by the frequencies
    of the length at the block's end.  Up to the trained length this is the model as trained.
    """
    token_ids, trained = np.asarray(token_ids), model.sizes.context_length
    caches = [KVCache(rotated=False, capacity=len(token_ids)) for _ in model.layers]
    stops = [*range(min(trained, len(token_ids)), len(token_ids), block), len(token_ids)]
    out, start = [], 0
    for stop in stops:
        scaled = scaled_rope("dynamic_ntk", model.sizes, stop)
        out.append(stack_step(model.layers, model.embedding[token_ids[start:stop]], caches, inv_freq=scaled.inv_freq))
        start = stop
    return np.concatenate(out)


def method_losses(model: SmolLM2, method: str, token_ids: ArrayLike) -> NDArray[np.float64]:
    """Return the loss of each token but the first under a method, (L − 1,), in nats."""
    token_ids, trained = np.asarray(token_ids), model.sizes.context_length
    if method == "dynamic_ntk":
        hidden = hidden_dynamic(model, token_ids)
    elif method == "restarted":
        return restarted_losses(model, token_ids, trained)
    else:
        hidden = with_rope(model, scaled_rope(method, model.sizes, len(token_ids))).hidden(token_ids)
    return token_losses(model, hidden, token_ids)


def restarted_losses(model: SmolLM2, token_ids: ArrayLike, window: int) -> NDArray[np.float64]:
    """Return the loss of each token but the first, in nats, for a model that forgets everything every `window`."""
    # The last token of a window is the first of the next, so that each token is predicted once.
    token_ids = np.asarray(token_ids)
    windows = [token_ids[start : start + window + 1] for start in range(0, len(token_ids) - 1, window)]
    return np.concatenate([token_losses(model, model.hidden(ids[:-1]), ids) for ids in windows])


def by_block(losses: ArrayLike, block: int = BLOCK) -> NDArray[np.float64]:
    """Return the mean loss of each block of positions; position 0 has no loss, so the first block has one fewer.

    Examples
    --------
    >>> by_block([1.0, 3.0, 5.0, 4.0, 4.0], 3).tolist()
    [2.0, 4.333333333333333]
    """
    losses = np.asarray(losses, dtype=np.float64)
    starts = np.maximum(np.arange(0, len(losses) + 1, block) - 1, 0)
    return np.add.reduceat(losses, starts) / np.diff(starts, append=len(losses))


def measure(
    model: SmolLM2, token_ids: ArrayLike, windows: list[int], length: int = LENGTH, *, known: Container = ()
) -> Iterator[tuple]:
    """Yield (method, window, mean loss by block) for one pass after another, but for the (method, window) known."""
    token_ids = np.asarray(token_ids)
    for window in windows:
        part = token_ids[window * length : (window + 1) * length]
        for method in METHODS:
            if (method, window) not in known:
                yield method, window, by_block(method_losses(model, method, part))


def main() -> None:
    """Measure, and write the file after each pass."""
    parser = argparse.ArgumentParser(prog=recorded.command(NAME), description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where to write (default: the library's own data)")
    parser.add_argument("--package", type=Path, help="debian-handbook_….deb (default: the one in the weights' folder)")
    parser.add_argument("--windows", type=int, nargs="+", default=[0], help="parts of the book, each of 16384")
    parser.add_argument("--resume", action="store_true", help="keep the passes that the file has")
    options = parser.parse_args()
    package = options.package or next(weights.default_folder().glob("debian-handbook_*.deb"), None)
    if package is None:
        parser.error(f"no debian-handbook_*.deb in {weights.default_folder()}: apt-get download debian-handbook")
    file, book = GGUFFile(weights.find()), long_text.read_package(package)
    model, token_ids = load_model(file), load_tokenizer(file).encode(book.text).ids
    arguments = {
        "model": weights.FILE_NAME,
        "text": book.package,
        "text_license": book.license,
        "text_sha256": book.sha256,
        "text_tokens": len(token_ids),
        "length": LENGTH,
        "block": BLOCK,
        "trained_length": model.sizes.context_length,
        "factor": LENGTH / model.sizes.context_length,
    }
    begun, series = process_time(), {method: {} for method in METHODS}
    if options.resume:
        before = recorded.load(NAME, options.folder)
        if dict(before.arguments) != arguments:
            parser.error("the file is of another model or text")
        begun -= before.provenance["cpu_seconds"]
        series |= {method: dict(windows) for method, windows in before.series.items()}
    known = {(method, int(name.removeprefix("window "))) for method, windows in series.items() for name in windows}
    for method, window, means in measure(model, token_ids, options.windows, known=known):
        series[method][f"window {window}"] = means
        spent = process_time() - begun
        path = recorded.save(NAME, arguments=arguments, series=series, cpu_seconds=spent, folder=options.folder)
        sys.stdout.write(f"{spent:8.0f} s  {method}, window {window}: {means.round(2).tolist()}\n")
        sys.stdout.flush()
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
