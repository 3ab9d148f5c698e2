"""A passage through a real model: the size of the residual stream, and the prediction that grows in it."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.real_model import RealModelStreamView, Stream, passage_places
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.readout import Row, number
from transformer_parts.explore.real_model.reading import PassagePanel, quoted
from transformer_parts.language import _

SHOWN = 3


class RealModelStream(PassagePanel[Stream]):
    """The residual stream of each token by layer, and what the head would make of it there."""

    alt = _(
        "Above, on a logarithmic scale: the RMS of every token's residual vector by layer, grey; token 0 in red"
        " squares, the chosen token in blue dots. Below: the probability of the likeliest next token, black, and of the"
        " token that does come next, gold triangles, had the model ended at that layer."
    )
    presets = MappingProxyType(
        {
            _("A massive activation"): {"token": 0, "layer": 6},
            _("“harbour”, the first time"): {"token": 4, "layer": 30},
            _("“harbour”, the second time"): {"token": 17, "layer": 30},
            _("One layer earlier"): {"token": 17, "layer": 29},
        }
    )
    play = "layer"
    play_interval = 250
    tokens = MappingProxyType({"token": 0})
    handles = MappingProxyType(
        {
            "token": Handle(_("token of the passage"), ("token",)),
            "layer": Handle(_("line of the layer"), ("layer",), "x"),
        }
    )

    def make_controls(self):
        return {
            "token": controls.integer(_("token i"), 17, 0, len(self.passage) - 1),
            "layer": controls.integer(_("before layer ℓ"), 12, 0, self.passage.settings["n_layers"]),
        }

    def make_view(self):
        return RealModelStreamView()

    def compute(self, *, token, layer):
        return Stream(
            rms=self.passage.residual_rms,
            token=token,
            layer=layer,
            best=self.passage.lens_top[:, token, 0],
            following=self.passage.lens_next[:, token],
            tokens=self.passage.token_texts,
        )

    def track(self, handle):
        return passage_places(len(self.passage), self.view.size[0]) if handle == "token" else None

    def rows(self, data):
        passage, i, layer = self.passage, data.token, data.layer
        norm = 2 * layer
        rms, median = data.rms[norm, i], np.median(data.rms[norm])
        peak, channel = passage.residual_peak[norm, i], passage.peak_channel[norm, i]
        rows = [
            Row(_("token"), self.token(i), theme.FIRST, mark="token"),
            Row(
                _("the stream's RMS before this layer; the median of all tokens"),
                f"{number(rms, 2)}; {number(median, 2)}",
                minor=True,
            ),
            Row(_("its largest channel, and the size there"), f"{channel}, {number(peak, 1)}", minor=True),
            Row(_("had the model ended here, it would go on with"), self._best(layer, i), theme.INK, mark="best"),
        ]
        if layer < passage.settings["n_layers"]:
            rows.append(Row(_("it does go on with, after the last layer"), self._best(-1, i), minor=True))
        if i + 1 < len(passage):
            following = f"{quoted(passage.token_texts[i + 1])}, {number(data.following[layer], 6)}"
            rows.append(
                Row(_("the token that comes next, and its probability here"), following, theme.THIRD, mark="following")
            )
            rows.append(
                Row(_("its loss, −ln p, after the last layer"), number(-np.log(data.following[-1]), 3), minor=True)
            )
        return rows

    def _best(self, layer: int, token: int) -> str:
        passage = self.passage
        best = zip(passage.lens_ids[layer, token, :SHOWN], passage.lens_top[layer, token, :SHOWN], strict=True)
        return ", ".join(f"{quoted(passage.words[int(word)])} {number(p, 3)}" for word, p in best)
