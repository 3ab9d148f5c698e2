"""One hop and two hops on a small decoder: can it be taught in a short training to follow a reference.

Pairs of symbols come in any order: a b, b c and so on for other chains.  Then it is asked, after one mark, what
follows a (one hop: b), after another, what follows that (two hops: c).  The command
``python -m transformer_parts.runs.long_context_hops`` rewrites the recording.
"""

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import require
from transformer_parts.maths.decoder import StackConfig, forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import Batches, Plan, repeated_segments, train
from transformer_parts.runs import recorded

NAME = "long_context_hops"
CHAINS = 8
#: The last symbols of the vocabulary are the marks of the two kinds of question.
SYMBOLS = 62
KINDS = ("one hop", "two hops")
#: Steps on repeated segments, which teach to look up what followed a token, and steps in all.
FIRST, STEPS = 400, 1600
SEEDS = (0, 1, 2, 3, 4)
TRIED_EVERY = 200


def config() -> StackConfig:
    """Return the decoder: 3 layers of width 64, 2 heads of 32 channels, a vocabulary of 64."""
    return StackConfig(vocab_size=SYMBOLS + 2, n_layers=3, d_model=64, n_heads=2, d_ff=128, tied=False)


def chains(
    rng: np.random.Generator, batch_size: int, *, count: int = CHAINS
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return tokens and targets of shape (B, 7·count), and of each target how many hops lead to it.

    Targets are those of the answers alone, −1 elsewhere.  Every chain is asked about once.
    """
    count = require.integer("count", count, maximum=SYMBOLS // 3)
    symbols = rng.permuted(np.tile(np.arange(SYMBOLS), (batch_size, 1)), axis=1)[:, : 3 * count]
    a, b, c = symbols.reshape(batch_size, 3, count).transpose(1, 0, 2)
    pairs = np.stack([np.concatenate([a, b], axis=1), np.concatenate([b, c], axis=1)], axis=-1)
    order = rng.permuted(np.tile(np.arange(2 * count), (batch_size, 1)), axis=1)
    pairs = np.take_along_axis(pairs, order[..., None], axis=1).reshape(batch_size, 4 * count)
    hops = rng.integers(1, 3, (batch_size, count))
    asked = np.stack([SYMBOLS - 1 + hops, a, np.where(hops == 1, b, c)], axis=-1)
    tokens = np.concatenate([pairs, asked.reshape(batch_size, 3 * count)], axis=1)
    targets, found = np.full((2, *tokens.shape), -1)
    places = 4 * count + 1 + 3 * np.arange(count)
    targets[:, places], found[:, places] = asked[..., 2], hops
    return tokens, targets, found


def batches(seed: int, like: StackConfig) -> Batches:
    """Return the batches of the training: repeated segments first, then chains."""
    rng = np.random.default_rng(seed)

    def batch(step: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        if step < FIRST:
            return repeated_segments(rng, batch_size=32, length=64, vocab_size=like.vocab_size)
        return chains(rng, 32)[:2]

    return batch


def tried(weights, like: StackConfig, seed: int, batch_size: int = 128) -> dict[str, float]:
    """Return the share of right answers by kind of question, on chains it has not seen."""
    tokens, targets, hops = chains(np.random.default_rng(3000 + seed), batch_size)
    best = forward(weights, tokens, like)[0].argmax(axis=-1)
    return {kind: float((best == targets)[hops == 1 + i].mean()) for i, kind in enumerate(KINDS)}


def measure(seed: int, steps: int = STEPS) -> dict[str, list[float]]:
    """Return the share of right answers by kind as the training goes on, and the loss of every step."""
    like = config()
    plan = Plan(steps=STEPS, peak=6e-3, floor=6e-4, seed=seed)
    weights = initial_weights(like, std=0.1, seed=seed, dtype=np.float32)
    found = {"steps": [], **{kind: [] for kind in KINDS}, "losses": []}
    for record in train(weights, like, plan, batches=batches(seed, like)):
        found["losses"].append(record.loss)
        if (record.step + 1) % TRIED_EVERY == 0:
            found["steps"].append(record.step + 1)
            for kind, share in tried(record.weights, like, seed).items():
                found[kind].append(share)
        if record.step + 1 == steps:
            break
    return found


def record() -> tuple[dict, dict]:
    """Measure all seeds; return arguments and series as `recorded.save` takes them."""
    arguments = {"chains": CHAINS, "first": FIRST, "steps": STEPS, "seeds": list(SEEDS)}
    return arguments, {f"seed {seed}": measure(seed) for seed in SEEDS}


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__.splitlines()[0])
