"""Retrieval from a long text by the real model: the log-probability of hidden numbers, as trained and by YaRN.

``python -m transformer_parts.runs.passkey`` needs what `long_context` needs and takes longer; the file is rewritten
after each text.

Several sentences such as "The key of the red door is 48291." are placed at even depths in pages of a book.  After them
the sentence is begun once more for each door, and every number of the text is scored as its end: the right one should
be the likeliest.  The others are the distractors.  In two hops a door's key lies in a box, and the box has a number.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from transformer_parts.maths import require
from transformer_parts.maths.cross_entropy import log_softmax
from transformer_parts.models import weights
from transformer_parts.models.generation import Session
from transformer_parts.models.smollm2 import SmolLM2, load_model
from transformer_parts.models.tokenizer import load_tokenizer
from transformer_parts.models.variants import with_rope
from transformer_parts.models.weights import GGUFFile
from transformer_parts.runs import long_text, recorded
from transformer_parts.runs.long_context import scaled_rope

NAME = "passkey"
METHODS = ("plain", "yarn")
#: The factor of YaRN at every length: the model is extended once.
FACTOR = 2
DOORS = ("red", "blue", "green", "white", "black", "yellow", "brown", "grey")
BOXES = ("iron", "wooden", "glass", "paper", "copper", "silver", "stone", "plastic")
DIGITS = 5


@dataclass(frozen=True)
class Text:
    """A text with hidden sentences, and what is asked after it."""

    tokens: list[int]  # the text
    depths: tuple[float, ...]  # the depth of each sentence, from 0 (the beginning) to 1
    questions: dict[str, list[list[int]]]  # by kind, the beginning of a sentence for each door
    answers: list[list[int]]  # the number of each door, digit by digit


def hide(tokenizer: Tokenizer, pages: Sequence[int], length: int, doors: int, *, two_hops: bool, seed: int) -> Text:
    """Return a text of `length` tokens in which sentences about 1 to 8 doors are hidden at even depths.

    `pages` are tokens of a book, at least `length` of them.  With `two_hops` each door's number is in a box that
    another sentence names, otherwise in one sentence.  `seed` draws the numbers and the places.
    """
    doors = require.integer("doors", doors, maximum=len(DOORS))
    rng = np.random.default_rng(seed)
    numbers = ["".join(map(str, digits)) for digits in rng.integers(0, 10, (doors, DIGITS))]
    order = rng.permutation(doors)
    boxes = [BOXES[i] for i in rng.permutation(len(BOXES))[:doors]]

    def encode(text: str) -> list[int]:
        return tokenizer.encode(text).ids

    answers = [[encode(digit)[0] for digit in number] for number in numbers]
    if two_hops:
        first = [f"\nThe key of the {DOORS[i]} door lies in the {boxes[i]} box.\n" for i in order]
        second = [f"\nThe number of the {boxes[i]} box is {numbers[i]}.\n" for i in rng.permutation(doors)]
        sentences = first + second
        questions = {
            "one hop": [encode(f"\nThe number of the {box} box is ") for box in boxes],
            "two hops": [
                encode(f"\nThe key of the {DOORS[i]} door lies in the box of the number ") for i in range(doors)
            ],
        }
        depths = [0.0] * doors
    else:
        sentences = [f"\nThe key of the {DOORS[i]} door is {numbers[i]}.\n" for i in order]
        questions = {"one hop": [encode(f"\nThe key of the {DOORS[i]} door is ") for i in range(doors)]}
        depths = [0.0] * doors
    hidden = [encode(sentence) for sentence in sentences]
    left = require.integer("length", length, minimum=2 * sum(map(len, hidden))) - sum(map(len, hidden))
    places = [round(left * (j + 0.5) / len(hidden)) for j in range(len(hidden))]
    tokens, start = [], 0
    for j, (place, sentence) in enumerate(zip(places, hidden, strict=True)):
        tokens += [*pages[start:place], *sentence]
        start = place
        if j < doors:
            depths[order[j]] = len(tokens) / length
    tokens += pages[start:left]
    return Text(tokens, tuple(depths), questions, answers)


def log_probabilities(session: Session, question: Sequence[int], answers: Sequence[Sequence[int]]) -> NDArray:
    """Return the mean log-probability of a digit of each answer after the session's text and a question, in nats.

    The session is as it was then.
    """
    text = len(session.tokens)
    session.feed(question)
    first, asked, out = session.logits, len(session.tokens), []
    for answer in answers:
        rows = [first]
        if len(answer) > 1:
            rows = np.vstack([first, session.model.logits(session.hidden(answer[:-1]))])
        found = log_softmax(np.asarray(rows, dtype=np.float64))
        out.append(found[np.arange(len(answer)), list(answer)].mean())
        session.rewind(asked)
    session.rewind(text)
    return np.array(out)


def ask(model: SmolLM2, text: Text) -> dict[str, NDArray]:
    """Return, by kind of question, the log-probability of every number (columns) for every door (rows)."""
    session = Session(model, capacity=len(text.tokens) + 64)
    session.hidden(text.tokens)
    return {
        kind: np.stack([log_probabilities(session, question, text.answers) for question in questions])
        for kind, questions in text.questions.items()
    }


def plan(lengths: Sequence[int]) -> Iterator[dict]:
    """Yield what is measured, the quick things first: two seeds where a text takes less than a minute."""
    for length in lengths:
        for seed in range(2 if length <= 4096 else 1):
            yield {"length": length, "doors": 8, "two_hops": False, "seed": seed}
        if length in (2048, 4096):
            for seed in range(2 if length == 2048 else 1):
                yield {"length": length, "doors": 4, "two_hops": True, "seed": seed}
        if length == 4096:
            for doors in (1, 2, 4):
                yield {"length": length, "doors": doors, "two_hops": False, "seed": 0}


def main() -> None:
    """Measure, and write the file after each text."""
    parser = argparse.ArgumentParser(prog=recorded.command(NAME), description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="where to write (default: the library's own data)")
    parser.add_argument("--package", type=Path, help="debian-handbook_….deb (default: the one in the weights' folder)")
    parser.add_argument("--lengths", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 12288])
    options = parser.parse_args()
    package = options.package or next(weights.default_folder().glob("debian-handbook_*.deb"), None)
    if package is None:
        parser.error(f"no debian-handbook_*.deb in {weights.default_folder()}: apt-get download debian-handbook")
    file, book = GGUFFile(weights.find()), long_text.read_package(package)
    model, tokenizer = load_model(file), load_tokenizer(file)
    pages = tokenizer.encode(book.text).ids
    scaled = scaled_rope("yarn", model.sizes, FACTOR * model.sizes.context_length)
    models = {"plain": model, "yarn": with_rope(model, scaled)}
    arguments = {
        "model": weights.FILE_NAME,
        "text": book.package,
        "text_license": book.license,
        "text_sha256": book.sha256,
        "trained_length": model.sizes.context_length,
        "factor": FACTOR,
        "digits": DIGITS,
    }
    begun, series = process_time(), {}
    for case in plan(options.lengths):
        # Each seed has pages of its own.
        start = 20_000 + 40_000 * case["seed"]
        where = {name: value for name, value in case.items() if name != "length"}
        text = hide(tokenizer, pages[start : start + case["length"]], case["length"], **where)
        name = f"{case['length']} tokens, {case['doors']} doors, {1 + case['two_hops']} hops, seed {case['seed']}"
        series[name] = {"depths": list(text.depths)}
        for method in METHODS:
            found = ask(models[method], text)
            series[name][method] = {kind: table.round(4) for kind, table in found.items()}
            right = {kind: float(np.diag(table).mean()) for kind, table in found.items()}
            sys.stdout.write(f"{process_time() - begun:8.0f} s  {name}, {method}: {right}\n")
            sys.stdout.flush()
        recorded.save(
            NAME, arguments=arguments, series=series, cpu_seconds=process_time() - begun, folder=options.folder
        )


if __name__ == "__main__":
    main()
