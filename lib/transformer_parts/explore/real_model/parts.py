"""Explorer of what each part is for: a real model with one part broken, and the gates of its layers."""

from types import MappingProxyType

from transformer_parts.draw import theme
from transformer_parts.draw.real_model import Parts, RealModelPartsView
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.readout import Row, number
from transformer_parts.explore.real_model.reading import PassagePanel
from transformer_parts.language import _
from transformer_parts.models.passage import GATE_EDGES, TRAINED

#: What may be broken, in words; their English texts are the names in `Passage.losses`.
_BROKEN = (
    _("no RoPE"),
    _("RoPE in the other layout"),
    _("scores not divided by √K"),
    _("LayerNorm for RMSNorm"),
    _("ReLU for SiLU"),
    _("no gate"),
)


class RealModelParts(PassagePanel[Parts]):
    """The loss of each token with one part of the model broken, and how the gates of a layer are spread."""

    alt = _(
        "Above: the loss of each token, blue dots for the model as trained, red squares with one part broken. Below:"
        " how one layer's gates before the activation are spread, grey over all tokens and blue for the chosen one;"
        " dashed gold, SiLU of the gate on the scale at the right."
    )
    presets = MappingProxyType(
        {
            _("No RoPE"): {"part": "no RoPE", "token": 18, "layer": 16},
            _("The wrong layout"): {"part": "RoPE in the other layout", "token": 18, "layer": 16},
            _("LayerNorm for RMSNorm"): {"part": "LayerNorm for RMSNorm", "token": 18, "layer": 16},
            _("No gate"): {"part": "no gate", "token": 18, "layer": 0},
        }
    )
    tokens = MappingProxyType({"token": 1})
    guide = MappingProxyType(
        {
            _("No RoPE"): _("The second “harbour” was likely; without positions it is not."),
        }
    )
    handles = MappingProxyType({"token": Handle(_("token of the passage"), ("token",), "x")})

    def make_controls(self):
        last = len(self.passage) - 1
        broken = [_BROKEN[_BROKEN.index(name)] for name in self.passage.losses if name != TRAINED]
        return {
            "part": controls.choice(_("broken"), broken, "no RoPE"),
            "token": controls.integer(_("token t"), min(18, last), 1, last),
            "layer": controls.integer(_("gates of layer"), 16, 0, self.passage.settings["n_layers"] - 1),
        }

    def make_view(self):
        return RealModelPartsView()

    def compute(self, *, part, token, layer):
        counts = self.passage.gate_counts[layer]
        return Parts(
            trained=self.passage.losses[TRAINED],
            broken=self.passage.losses[part],
            token=token,
            edges=GATE_EDGES,
            all_gates=counts.sum(axis=0) / counts.sum(),
            token_gates=counts[token] / counts[token].sum(),
            all_shares=self.passage.gate_shares[layer].mean(axis=0),
            token_shares=self.passage.gate_shares[layer, token],
            tokens=self.passage.token_texts,
            title=_BROKEN[_BROKEN.index(part)],
        )

    def rows(self, data):
        t, trained, broken = data.token, data.trained.mean(), data.broken.mean()
        return [
            Row(_("mean loss as trained, in nats a token"), number(trained, 3), theme.FIRST, mark="trained"),
            Row(_("with the part broken"), number(broken, 3), theme.SECOND, mark="broken"),
            Row(_("what it costs"), number(broken - trained, 3)),
            Row(_("token t"), self.token(t), minor=True),
            Row(
                _("its loss as trained, and broken"),
                f"{number(data.trained[t - 1], 3)}, {number(data.broken[t - 1], 3)}",
            ),
            Row(_("the layer's gates below 0, and above 1"), _shares(data.all_shares), theme.FAINT, minor=True),
            Row(_("those of token t"), _shares(data.token_shares), theme.FIRST, minor=True),
        ]


def _shares(shares) -> str:
    return ", ".join(f"{number(100 * share, 1)} %" for share in shares)
