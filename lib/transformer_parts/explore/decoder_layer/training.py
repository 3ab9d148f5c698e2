"""Explorer of recorded runs of small decoders, each with one part exchanged: training loss and honest loss."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw.decoder_layer import CHOSEN, SEEN, USUAL, DecoderTrainingView, Losses
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.runs import recorded

VARIANTS = MappingProxyType(
    {
        _("none: the usual decoder"): "usual",
        _("no RoPE"): "no RoPE",
        _("LayerNorm for RMSNorm"): "LayerNorm",
        _("plain FFN, same budget"): "plain FFN",
        _("norms after the sums (Post)"): "Post",
        _("no causal mask"): "no mask",
        _("targets not shifted"): "targets not shifted",
    }
)
#: The same, short enough for the end of a line.
SHORT = MappingProxyType(
    {
        "usual": _("usual"),
        "no RoPE": _("no RoPE"),
        "LayerNorm": "LayerNorm",
        "plain FFN": _("plain FFN"),
        "Post": "Post",
        "no mask": _("no mask"),
        "targets not shifted": _("not shifted"),
    }
)


class DecoderTraining(Panel[Losses]):
    """Recorded runs: one change at a time, the same batches.

    Attributes
    ----------
    recording : RecordedRun; all that was recorded
    """

    alt = _(
        "Above, losses over the steps of training, below by position in the sequence. Blue circles are the usual"
        " decoder, red squares the chosen one as it would be used, gold triangles the chosen one as its training sees"
        " it; thin grey lines are the other decoders. A dashed line is ln V, a uniform guess's loss. Shaded are the"
        " positions whose next token can be known."
    )
    presets = MappingProxyType(
        {
            _("Before training"): {"variant": "usual", "step": 0},
            _("After training"): {"variant": "usual", "step": 200},
            _("No RoPE"): {"variant": "no RoPE", "step": 200},
            "LayerNorm": {"variant": "LayerNorm", "step": 200},
            _("Plain FFN"): {"variant": "plain FFN", "step": 200},
            _("Post"): {"variant": "Post", "step": 200},
            _("No mask"): {"variant": "no mask", "step": 200},
            _("Targets not shifted"): {"variant": "targets not shifted", "step": 200},
        }
    )
    play = "step"
    play_interval = 250
    primary = ("variant", "step")
    guide = MappingProxyType(
        {
            _("No mask"): _(
                "In training a token can look at the next one: the triangles fall. The squares show it without that."
            ),
            _("Targets not shifted"): _(
                "It learns to repeat its input, not to predict: the triangles fall and the squares rise."
            ),
        }
    )
    handles = MappingProxyType({"step": Handle(_("line of the training step"), ("step",), "x")})

    def __init__(self, *, language: str | None = None):
        self.recording = recorded.load("decoder_layer")
        super().__init__(language=language)

    def make_controls(self):
        arguments = self.recording.arguments
        last, every = arguments["plan"]["steps"], arguments["every"]
        return {
            "variant": controls.choice(_("change"), VARIANTS, "no mask"),
            "step": controls.integer(_("training step"), last, 0, last, step=every),
            "seed": controls.integer(_("seed, curves"), 0, 0, len(arguments["seeds"]) - 1),
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
        chosen, record = series[variant], step // arguments["every"]
        return Losses(
            variant=variant,
            steps=np.arange(len(chosen["honest"][seed])) * arguments["every"],
            look=record,
            training=chosen["training"][seed],
            honest=chosen["honest"][seed],
            usual=series["usual"]["honest"][seed],
            others=np.array([series[name]["honest"][seed] for name in series]),
            names=tuple(SHORT[name] for name in series),
            title=SHORT[variant],
            honest_at=chosen["honest_by_position"][record],
            seen_at=chosen["seen_by_position"][record],
            usual_at=series["usual"]["honest_by_position"][record],
            known_from=arguments["segment"] - 1,
            uniform=float(np.log(arguments["config"]["vocab_size"])),
        )

    def rows(self, data):
        known, series = data.known_from, self.recording.series[data.variant]
        return [
            Row(_("ln V, the loss of a uniform guess"), number(data.uniform, 4), minor=True),
            Row(_("least possible here"), number(data.least, 4), minor=True),
            Row(_("usual decoder"), number(data.usual[data.look], 4), USUAL),
            Row(_("this decoder"), number(data.honest[data.look], 4), CHOSEN),
            Row(_("its perplexity, e to the loss"), number(np.exp(data.honest[data.look]), 2), CHOSEN, minor=True),
            Row(_("first time round: this decoder"), number(data.honest_at[:known].mean(), 3), CHOSEN, minor=True),
            Row(
                _("first time round: as its training sees it"), number(data.seen_at[:known].mean(), 3), SEEN, minor=True
            ),
            Row(_("after that: this decoder"), number(data.honest_at[known:].mean(), 3), CHOSEN),
            Row(_("after that: as its training sees it"), number(data.seen_at[known:].mean(), 3), SEEN),
            Row(_("after training, each seed: all positions"), _per_seed(series["honest"]), minor=True),
            Row(
                _("after training, each seed: after the first time"),
                _per_seed(series["honest_where_known"]),
                minor=True,
            ),
        ]


def _per_seed(losses: np.ndarray) -> str:
    return ", ".join(number(loss, 3) for loss in losses[:, -1].round(3))
