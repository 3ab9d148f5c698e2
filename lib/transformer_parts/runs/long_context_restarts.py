"""Loss by position over 8,192 tokens of a book, read in one piece and restarted every 4,096 and every 2,048 tokens.

``python -m transformer_parts.runs.long_context_restarts`` reads what `long_context` reads.  All is within the length
of the model's configuration and nothing is extended: a loss that is lower without the restarts shows that the model
uses what the restarts forget.  It takes about ten minutes of one processor.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transformer_parts.models import weights
from transformer_parts.models.smollm2 import load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.weights import GGUFFile
from transformer_parts.runs import long_text, recorded
from transformer_parts.runs.long_context import BLOCK, by_block, restarted_losses

NAME = "long_context_restarts"
LENGTH = 8192
#: Tokens after which the model forgets everything; at the first it reads all in one piece.
EVERY = (8192, 4096, 2048)
#: Parts of the book, each of 8,192 tokens.
PARTS = (0, 10, 20)


def record(parts: Sequence[int] = PARTS) -> tuple[dict, dict]:
    """Measure and return (arguments, series): the mean loss of each 1,024 positions, by part and by restarts."""
    package = next(weights.default_folder().glob("debian-handbook_*.deb"), None)
    if package is None:
        raise FileNotFoundError(f"no debian-handbook_*.deb in {weights.default_folder()}")
    file, book = GGUFFile(weights.find()), long_text.read_package(package)
    model, token_ids = load_model(file), np.asarray(load_tokenizer(file).encode(book.text).ids)
    arguments = {
        "model": weights.FILE_NAME,
        "text": book.package,
        "text_license": book.license,
        "text_sha256": book.sha256,
        "length": LENGTH,
        "block": BLOCK,
        "every": EVERY,
        "parts": tuple(parts),
    }
    series: dict[str, dict[str, NDArray]] = {f"every {every}": {} for every in EVERY}
    for part in parts:
        text = token_ids[part * LENGTH : (part + 1) * LENGTH]
        for every in EVERY:
            series[f"every {every}"][f"part {part}"] = by_block(restarted_losses(model, text, every))
    return arguments, series


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__.splitlines()[0])
