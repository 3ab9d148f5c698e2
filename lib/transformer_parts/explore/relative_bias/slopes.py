"""Explorer of ALiBi's slopes, for any number of heads."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.relative_bias import BETWEEN, ONE_SEQUENCE, POWER, AlibiSlopesView, Slopes
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number, vector
from transformer_parts.language import _
from transformer_parts.maths import relative_bias
from transformer_parts.maths.attention import attention_weights

KEYS = 257


class AlibiSlopes(Panel[Slopes]):
    """The slope of each head, and the weights of keys that score alike."""

    alt = _(
        "Above, the slope of each head on an axis of powers of two: blue circles for the heads of a power of two, red"
        " squares for the heads beyond it, whose slopes lie between; grey crosses are the single sequence 2 to the"
        " power -8h/n. Below, the weight of a key against its distance, as a share of the nearest key's, for up to"
        " twenty heads in grey and for the chosen one in gold; a dashed line stands at one half."
    )
    handles = MappingProxyType(
        {
            "head": Handle(_("head"), ("head",), "x"),
            "distance": Handle(_("distance"), ("distance",), "x"),
        }
    )
    presets = MappingProxyType(
        {
            "n = 8": {"n_heads": 8, "head": 3, "distance": 8},
            "n = 12": {"n_heads": 12, "head": 9, "distance": 1},
            "n = 16": {"n_heads": 16, "head": 6, "distance": 8},
            "n = 20": {"n_heads": 20, "head": 17, "distance": 1},
            _("BLOOM: n = 112"): {"n_heads": 112, "head": 65, "distance": 1},
        }
    )
    play = "head"
    play_interval = 300

    def make_controls(self):
        return {
            "n_heads": controls.integer(_("heads n"), 12, 1, 128),
            "head": controls.integer(_("head h"), 9, 1, 12),
            "distance": controls.integer(_("distance"), 20, 0, KEYS - 1),
        }

    def couple(self, name):
        if name == "n_heads":
            self.controls["head"].max = self.controls["n_heads"].value

    def make_view(self):
        return AlibiSlopesView()

    def compute(self, *, n_heads, head, distance):
        slopes = relative_bias.alibi_slopes(n_heads)
        # One query after all keys, which score alike; the nearest key is the last.
        blank = np.zeros((n_heads, KEYS, 1))
        bias = relative_bias.alibi_bias(slopes, 1, KEYS)
        return Slopes(
            slopes=slopes,
            of_power=relative_bias.power_of_two_heads(n_heads),
            one_sequence=relative_bias.single_sequence_slopes(n_heads),
            weights=attention_weights(blank[:, :1], blank, bias=bias)[:, 0, ::-1],
            half_distances=relative_bias.half_distance(slopes),
            head=head,
            distance=distance,
        )

    def rows(self, data):
        h = data.head - 1
        ratios = data.ratios
        return [
            Row(_("slope m of the head"), number(data.slopes[h]), theme.THIRD),
            Row("−log₂ m", number(-np.log2(data.slopes[h]), 4), theme.THIRD),
            Row(_("the single sequence 2^(−8h/n) would give"), number(data.one_sequence[h]), ONE_SEQUENCE),
            Row(
                _("half the weight after"),
                _("{distance} positions", distance=number(data.half_distances[h], 2)),
                theme.THIRD,
            ),
            Row(_("weight of the nearest key"), number(data.weights[h, 0], 4), theme.THIRD),
            Row(
                _("weight at distance {distance}", distance=data.distance),
                number(data.weights[h, data.distance], 6),
                theme.THIRD,
            ),
            Row(
                _("heads of the power of two"),
                f"{data.of_power}: −log₂ m = {_powers(data.slopes[: data.of_power])}",
                POWER,
            ),
            Row(_("heads between"), _between(data), BETWEEN),
            Row(
                _("ratios of neighbours by size"),
                _("{least} to {most}", least=number(ratios.min(), 4), most=number(ratios.max(), 4))
                if len(ratios)
                else "—",
            ),
        ]


def _powers(slopes: np.ndarray) -> str:
    return vector(-np.log2(slopes), 2, 4)


def _between(data: Slopes) -> str:
    rest = data.slopes[data.of_power :]
    return f"{len(rest)}: −log₂ m = {_powers(rest)}" if len(rest) else _("none")
