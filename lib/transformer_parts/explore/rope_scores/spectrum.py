"""The wavelengths of a head's pairs, and what is left of them at an offset."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.rope_scores import RopeSpectrumView, Spectrum
from transformer_parts.explore import controls
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths import rope, rope_scores

REFERENCE_BASE = 10000.0


class RopeSpectrum(Panel[Spectrum]):
    """How many positions each pair takes for a whole turn, and which pairs a model has seen turn fully."""

    alt = _(
        "Above: the wavelength of each pair of channels on a logarithmic scale, a filled circle where it fits into the"
        " trained length L and an open square, on a tinted ground, where it does not; a grey line for base 10,000."
        " Below: the cosine of the angle by which the offset turns each pair apart, with their mean."
    )
    handles = MappingProxyType(
        {
            "trained": Handle(_("trained length"), ("trained_length",), "y"),
            "offset": Handle(_("offset"), ("offset",), "y"),
        }
    )
    presets = MappingProxyType(
        {
            _("Trained on 4,096"): {"head_dim": 128, "rope_base": 1e4, "trained_length": 4096, "offset": 64},
            _("Base 500,000"): {"head_dim": 128, "rope_base": 5e5, "trained_length": 4096, "offset": 64},
            _("Far apart"): {"head_dim": 128, "rope_base": 1e4, "trained_length": 4096, "offset": 1707},
            _("By hand: head_dim 4"): {"head_dim": 4, "rope_base": 1e4, "trained_length": 512, "offset": 2},
        }
    )

    def make_controls(self):
        powers = [2**i for i in range(18)]
        return {
            "head_dim": controls.integer("head_dim", 128, 2, 256, step=2),
            "rope_base": controls.power(_("base"), 1e4, 10, 1e7, form=",.0f", also=[5e5]),
            "trained_length": controls.stops(_("trained length L"), 4096, powers[6:]),
            "offset": controls.stops(_("offset |Δ|"), 64, {*powers, *(3 * power for power in powers[:16]), 1707}),
        }

    def make_view(self):
        return RopeSpectrumView()

    def compute(self, *, head_dim, rope_base, trained_length, offset):
        inv_freq = rope.inv_freq(head_dim, rope_base)
        # q = k with every pair (1, 0): a pair adds the cosine of the angle between its two halves.
        pair = np.tile([1.0, 0.0], head_dim // 2)
        return Spectrum(
            wavelengths=rope.wavelengths(inv_freq),
            reference=rope.wavelengths(rope.inv_freq(head_dim, REFERENCE_BASE)),
            trained_length=trained_length,
            offset=offset,
            alignment=rope_scores.pair_scores(pair, pair, [offset], inv_freq, scale=1.0)[:, 0],
        )

    def rows(self, data):
        pairs, complete = len(data.wavelengths), int(data.complete.sum())
        longer = int((data.wavelengths > data.offset).sum())
        return [
            Row(_("fastest pair: positions per turn"), number(data.wavelengths[0], 4)),
            Row(_("slowest pair: positions per turn"), number(data.wavelengths[-1], 1)),
            Row(
                _("of a turn seen by the slowest pair"),
                f"{100 * min(1, data.trained_length / data.wavelengths[-1]):.2f} %",
            ),
            Row(
                _("pairs that complete a turn within L"),
                _("{some} of {all}", some=complete, all=pairs),
                theme.QUERY,
            ),
            Row(_("pairs that do not"), _("{some} of {all}", some=pairs - complete, all=pairs), theme.KEY),
            Row(_("pairs whose wavelength exceeds the offset"), _("{some} of {all}", some=longer, all=pairs)),
            Row(_("mean of cos Δθ over the pairs"), number(data.alignment.mean()), theme.THIRD),
        ]
