"""Explorer of scores and attention before and after an extension, of made content and of a real model's heads."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.artists import envelope, window_of
from transformer_parts.draw.context_extension import Attention, ExtensionScoresView
from transformer_parts.explore import controls
from transformer_parts.explore.cache.heads import KINDS
from transformer_parts.explore.context_extension.methods import FACTORS, METHODS
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.ranges import values_of
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import rope
from transformer_parts.maths.context_extension import entropy_by_length
from transformer_parts.models.excerpt import load_excerpt

COLUMNS = 256
ALL = 0


class ExtensionScores(Panel[Attention]):
    """The score against the distance, and the entropy of attention over a context of growing length."""

    alt = _(
        "Above: the score of a query with equal keys against their distance m - n, as trained in black and extended in"
        " blue; grey begins where training ended. Below: the entropy of the attention weights over the nearest keys,"
        " as trained in black, extended in blue, dashed without the attention factor; the dotted line is the entropy"
        " of equal weights."
    )
    _equal = MappingProxyType({"content": "equal", "rope_base": 10000.0, "trained_length": 4096, "factor": 8})
    presets = MappingProxyType(
        {
            _("YaRN, s = 8"): {**_equal, "method": "YaRN, code's ramp", "shown": ALL},
            _("PI blurs neighbours"): {**_equal, "method": "Position Interpolation", "shown": 16},
            _("YaRN keeps neighbours"): {**_equal, "method": "YaRN, code's ramp", "shown": 16},
            _("Real head, as trained"): {
                "content": (16, 0),
                "method": "RoPE as trained",
                "rope_base": 100000.0,
                "trained_length": 8192,
                "factor": 4,
                "shown": ALL,
            },
            _("Real head, PI"): {
                "content": (16, 0),
                "method": "Position Interpolation",
                "rope_base": 100000.0,
                "trained_length": 8192,
                "factor": 4,
                "shown": 16,
            },
        }
    )
    primary = ("content", "method", "factor", "shown")
    handles = MappingProxyType({"factor": Handle(_("end of the trained length"), ("factor",), "x")})
    head_dim = 128

    def make_controls(self):
        self._excerpt = load_excerpt()
        contents = {_("q = k, all pairs alike"): "equal"}
        contents |= {
            _("SmolLM2 layer {layer}, head {head}: {kind}", layer=head.layer, head=head.head, kind=KINDS[head.kind]): (
                head.layer,
                head.head,
            )
            for head in self._excerpt.telling_heads
        }
        shown = {
            _("all, up to s·L"): ALL,
            _("the nearest 16"): 16,
            _("the nearest 256"): 256,
            _("the nearest 4,096"): 4096,
        }
        return {
            "content": controls.choice(_("content"), contents, "equal"),
            "method": controls.choice(_("method"), list(METHODS), "YaRN, code's ramp"),
            "factor": controls.stops(_("s, extension by"), 8, [factor for factor in FACTORS if factor <= 8]),
            "trained_length": controls.stops(_("L, trained length"), 4096, [512, 1024, 2048, 4096, 8192]),
            "rope_base": controls.power(_("base"), 10000.0, 100, 1e7, form=",.0f", also=[5e5]),
            "shown": controls.choice(_("distances shown"), shown, ALL),
        }

    def make_view(self):
        return ExtensionScoresView()

    def track(self, handle):
        axes, trained = self.view.entropy_axes, self.state["trained_length"]
        lengths = values_of(self.controls["factor"]) * trained
        last = np.minimum(self.state["shown"] or lengths, lengths) - 1
        # The edge stands where the axis, which goes on from it as far as the extension, has the trained length.
        part = (trained + 0.01 * last) / (1.02 * last)
        (left, bottom), (right, _bottom) = self.view.at(axes, axes.get_xlim(), 0)
        return np.stack([left + part * (right - left), np.full(len(part), bottom)], axis=-1)

    def couple(self, name):
        if name == "content" and self.controls["content"].value != "equal":
            self.controls["rope_base"].value = self._excerpt.rope_base
            self.controls["trained_length"].value = 8192

    def _content(self, content):
        if content == "equal":
            return np.ones(self.head_dim), np.ones(self.head_dim)
        return self._excerpt.query(*content).mean(axis=0), self._excerpt.key(*content).mean(axis=0)

    def compute(self, *, content, method, factor, trained_length, rope_base, shown):
        query, key = self._content(content)
        length = factor * trained_length
        scaled = METHODS[method](len(query), factor, trained_length, length, rope_base)
        offsets = -np.arange(length)
        before = rope.scores_by_offset(query, key, offsets, rope_base=rope_base)
        bare = rope.scores_by_offset(query, key, offsets, inv_freq=scaled.inv_freq)
        # The factor multiplies the query and the key: once, and once more.
        once = scaled.attention_factor * bare
        after = scaled.attention_factor * once
        entropies = [entropy_by_length(scores) for scores in (before, bare, once, after)]
        count = min(shown or length, length)
        window = window_of(count, COLUMNS)
        counts = np.unique(np.linspace(1, count, min(count, COLUMNS)).astype(int))
        return Attention(
            before=envelope(0, before[:count], window),
            after=envelope(0, after[:count], window),
            counts=counts,
            uniform=np.log(counts),
            entropy_before=entropies[0][counts - 1],
            entropy_bare=entropies[1][counts - 1],
            entropy_after=entropies[3][counts - 1],
            trained_length=trained_length,
            length=length,
            attention_factor=scaled.attention_factor,
            near=tuple(zip(before[:2].tolist(), bare[:2].tolist(), strict=True)),
            entropies=tuple(entropy[-1].item() for entropy in entropies),
            entropy_trained=entropies[0][trained_length - 1].item(),
        )

    def rows(self, data):
        trained, bare, once, after = data.entropies
        (before_0, after_0), (before_1, after_1) = data.near
        return [
            Row(
                _("score lost over one step of distance: as trained, extended"),
                f"{number(before_0 - before_1, 4)}, {number(after_0 - after_1, 4)}",
            ),
            Row(_("attention factor of q and of k"), number(data.attention_factor), minor=True),
            Row(
                _("entropy over L = {trained_length:,} keys, as trained", trained_length=data.trained_length),
                number(data.entropy_trained, 4),
                minor=True,
            ),
            Row(
                _("entropy over s·L = {length:,} keys, as trained", length=data.length),
                number(trained, 4),
                theme.INK,
                mark="before",
            ),
            Row(_("extended, without the attention factor (dashed)"), number(bare, 4), theme.FIRST, mark="bare"),
            Row(_("extended, with it on q alone (a mistake)"), number(once, 4), minor=True),
            Row(_("extended, with it on q and on k (solid)"), number(after, 4), theme.FIRST, mark="after"),
        ]
