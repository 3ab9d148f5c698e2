"""Small decoders with one part exchanged each, as they were trained: what the loss showed and what was true."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.decoder_layer import CHOSEN, SEEN, USUAL, DecoderTrainingView, Losses
from transformer_parts.explore import controls
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.runs import recorded

VARIANTS = MappingProxyType(
    {
        "none: the usual decoder": "usual",
        "no RoPE": "no RoPE",
        "LayerNorm for RMSNorm": "LayerNorm",
        "plain FFN, same budget": "plain FFN",
        "norms after the sums (Post)": "Post",
        "no causal mask": "no mask",
        "targets not shifted": "targets not shifted",
    }
)


class DecoderTraining(Panel[Losses]):
    """Recorded runs: one change at a time, the same batches.

    Attributes
    ----------
    recording : Recording
        All that was recorded.
    """

    alt = (
        "Above, losses over the steps of training, below by position in the sequence. Blue circles are the usual"
        " decoder, red squares the chosen one as it would be used, gold triangles the chosen one as its training sees"
        " it; thin grey lines are the other decoders. A dashed line is ln V, a uniform guess's loss. Shaded are the"
        " positions whose next token can be known."
    )
    still = "figures/decoder_training.png"
    presets = MappingProxyType(
        {
            "Before training": {"variant": "usual", "step": 0},
            "After training": {"variant": "usual", "step": 200},
            "No RoPE": {"variant": "no RoPE", "step": 200},
            "LayerNorm": {"variant": "LayerNorm", "step": 200},
            "Plain FFN": {"variant": "plain FFN", "step": 200},
            "Post": {"variant": "Post", "step": 200},
            "No mask": {"variant": "no mask", "step": 200},
            "Targets not shifted": {"variant": "targets not shifted", "step": 200},
        }
    )
    play = "step"
    play_interval = 250

    def __init__(self, *, language: str | None = None):
        self.recording = recorded.load("decoder_layer")
        super().__init__(language=language)

    def make_controls(self):
        arguments = self.recording.arguments
        last, every = arguments["plan"]["steps"], arguments["every"]
        return {
            "variant": controls.choice("change", VARIANTS, "no mask"),
            "step": controls.integer("training step", last, 0, last, step=every),
            "seed": controls.integer("seed, curves", 0, 0, len(arguments["seeds"]) - 1),
        }

    def make_view(self):
        arguments = self.recording.arguments
        return DecoderTrainingView(
            arguments["plan"]["steps"],
            arguments["plan"]["length"],
            np.log(arguments["config"]["vocab_size"]),
            arguments["segment"] - 1,
        )

    def compute(self, *, variant, step, seed):
        arguments, series = self.recording.arguments, self.recording.series
        chosen, look = series[variant], step // arguments["every"]
        return Losses(
            variant=variant,
            steps=np.arange(len(chosen["honest"][seed])) * arguments["every"],
            look=look,
            training=chosen["training"][seed],
            honest=chosen["honest"][seed],
            usual=series["usual"]["honest"][seed],
            others=np.array([series[name]["honest"][seed] for name in series]),
            honest_at=chosen["honest_by_position"][look],
            seen_at=chosen["seen_by_position"][look],
            usual_at=series["usual"]["honest_by_position"][look],
            known_from=arguments["segment"] - 1,
            uniform=float(np.log(arguments["config"]["vocab_size"])),
        )

    def rows(self, data):
        known, series = data.known_from, self.recording.series[data.variant]
        return [
            Row("ln V, the loss of a uniform guess", number(data.uniform, 4)),
            Row("least possible here", number(data.least, 4)),
            Row("usual decoder", number(data.usual[data.look], 4), USUAL),
            Row("this decoder", number(data.honest[data.look], 4), CHOSEN),
            Row("its perplexity, e to the loss", number(np.exp(data.honest[data.look]), 2), CHOSEN),
            Row("first time round: this decoder", number(data.honest_at[:known].mean(), 3), CHOSEN),
            Row("first time round: as its training sees it", number(data.seen_at[:known].mean(), 3), SEEN),
            Row("after that: this decoder", number(data.honest_at[known:].mean(), 3), CHOSEN),
            Row("after that: as its training sees it", number(data.seen_at[known:].mean(), 3), SEEN),
            Row("after training, each seed: all positions", _each(series["honest"])),
            Row("after training, each seed: after the first time", _each(series["honest_where_known"])),
        ]


def _each(losses: np.ndarray) -> str:
    return ", ".join(number(loss, 3) for loss in losses[:, -1].round(3))
