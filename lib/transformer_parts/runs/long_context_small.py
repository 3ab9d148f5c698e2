"""Context extension of a small decoder, with and without fine-tuning.

Two layers learn to repeat random segments within 64 tokens and are evaluated at up to 512, as trained and by each
method, without any further training and after a short one at 256 tokens.  The command
``python -m transformer_parts.runs.long_context_small`` rewrites the recording.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_parts.maths import context_extension, require, rope
from transformer_parts.maths.context_extension import ScaledRope
from transformer_parts.maths.decoder import StackConfig, forward
from transformer_parts.maths.initialization import initial_weights
from transformer_parts.maths.training import Plan, repeated_segments, train
from transformer_parts.runs import recorded

NAME = "long_context_small"
METHODS = ("plain", "position_interpolation", "ntk_aware", "yarn")
TRAINED = 64
LENGTHS = (64, 128, 256, 512)
TUNED = 256
STEPS, TUNING_STEPS = 700, 120
SEEDS = (0, 1, 2, 3, 4)

Weights = Mapping[str, NDArray]


class Result(NamedTuple):
    """What one decoder predicts at one length."""

    accuracy: float  # the share of the tokens which repeat that are the likeliest by the decoder
    loss: float  # their mean loss, in nats


def config() -> StackConfig:
    """Return the decoder: 2 layers of width 64, 2 heads of 32 channels, a vocabulary of 64."""
    return StackConfig(vocab_size=64, n_layers=2, d_model=64, n_heads=2, d_ff=128, tied=False)


def plan(seed: int) -> Plan:
    """Return how the decoder is trained before it is extended."""
    return Plan(steps=STEPS, batch_size=32, length=TRAINED, peak=1e-2, floor=1e-3, seed=seed)


def scaled_rope(method: str, length: int, like: StackConfig) -> ScaledRope:
    """Return a method's frequencies for a text of `length` tokens, those of training up to the trained length."""
    require.one_of("method", method, METHODS)
    factor, settings = max(1.0, length / TRAINED), {"rope_base": like.rope_base}
    match method:
        case "position_interpolation":
            return context_extension.position_interpolation(like.head_dim, factor, **settings)
        case "ntk_aware":
            return context_extension.ntk_aware(like.head_dim, factor, **settings)
        case "yarn":
            return context_extension.yarn(like.head_dim, factor, TRAINED, **settings)
        case _:
            return ScaledRope(rope.inv_freq(like.head_dim, **settings), 1.0)


def extended(weights: Weights, like: StackConfig, scaled: ScaledRope) -> tuple[dict[str, NDArray], StackConfig]:
    """Return weights and config of the decoder with other frequencies.

    The attention factor multiplies query and key; here its square is multiplied into the queries' weights.
    """
    changed = {
        name: w * np.asarray(scaled.attention_factor**2, w.dtype) if name.endswith("w_q") else w
        for name, w in weights.items()
    }
    return changed, replace(like, inv_freq=tuple(scaled.inv_freq.tolist()))


def trained(seed: int, steps: int = STEPS) -> Iterator[tuple[int, float, Weights]]:
    """Yield step, loss and weights of the small decoder's training; the schedule is that of `STEPS`."""
    like = config()
    weights = initial_weights(like, std=0.1, seed=seed, dtype=np.float32)
    for record in train(weights, like, plan(seed)):
        yield record.step, record.loss, record.weights
        if record.step + 1 == steps:
            return


def tuned(weights: Weights, like: StackConfig, seed: int, steps: int = TUNING_STEPS) -> dict[str, NDArray]:
    """Return the weights after a short training at `TUNED` tokens with the frequencies of `like`."""
    further = Plan(steps=steps, batch_size=4, length=TUNED, peak=1e-3, floor=1e-4, warmup_steps=10, seed=1000 + seed)
    *_, last = train(weights, like, further)
    return last.weights


def tried(weights: Weights, like: StackConfig, length: int, seed: int, batch_size: int = 8) -> Result:
    """Return how well a decoder repeats segments of a quarter to half of `length`, on sequences it has not seen."""
    rng = np.random.default_rng(2000 + seed)
    tokens, targets = repeated_segments(rng, batch_size=batch_size, length=length, vocab_size=like.vocab_size)
    logits, _ = forward(weights, tokens, like)
    z, y = logits[targets >= 0].astype(np.float64), targets[targets >= 0]
    z -= z.max(axis=-1, keepdims=True)
    losses = np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(y)), y]
    return Result(float((z.argmax(axis=-1) == y).mean()), float(losses.mean()))


def measure(seed: int) -> dict[str, dict]:
    """Return accuracy and loss of one decoder by method and length, before and after fine-tuning."""
    like, losses = config(), []
    for _, loss, weights in trained(seed):  # noqa: B007  the last weights are extended below
        losses.append(loss)
    found = {"training_loss": float(np.mean(losses[-20:])), "first_losses": losses[:20]}
    for method in METHODS:
        before = [tried(*extended(weights, like, scaled_rope(method, n, like)), n, seed) for n in LENGTHS]
        changed, other = extended(weights, like, scaled_rope(method, TUNED, like))
        short_before = tried(changed, other, TRAINED, seed)
        after = tuned(changed, other, seed)
        found[method] = {
            "accuracy": [result.accuracy for result in before],
            "loss": [result.loss for result in before],
            # What the frequencies for `TUNED` tokens cost a text of `TRAINED`, and what tuning does about both.
            "short_accuracy": short_before.accuracy,
            "tuned_accuracy": tried(after, other, TUNED, seed).accuracy,
            "tuned_short_accuracy": tried(after, other, TRAINED, seed).accuracy,
        }
    return found


def record() -> tuple[dict, dict]:
    """Measure all seeds; return arguments and series as `recorded.save` takes them."""
    arguments = {
        "trained_length": TRAINED,
        "lengths": list(LENGTHS),
        "tuned_length": TUNED,
        "steps": STEPS,
        "tuning_steps": TUNING_STEPS,
        "seeds": list(SEEDS),
    }
    return arguments, {f"seed {seed}": measure(seed) for seed in SEEDS}


if __name__ == "__main__":
    recorded.main(NAME, record, __doc__.splitlines()[0])
