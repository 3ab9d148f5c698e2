"""Explorer of what a long context costs a published model: length, grouping, precision, window and machine."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.long_context import CostByLength, LongContextCostsView
from transformer_parts.explore import controls
from transformer_parts.explore.budget import divisors, offer
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row, number
from transformer_parts.language import _
from transformer_parts.maths.budget import kv_cache_bytes
from transformer_parts.maths.long_context import long_context_cost
from transformer_parts.models.configs import PUBLISHED

NO_WINDOW = 0
#: Operations and bytes a second; round numbers of the size of such machines' data sheets.
MACHINES = MappingProxyType(
    {
        _("accelerator: 10¹⁵ FLOP/s, 3.35·10¹² B/s"): (1e15, 3.35e12),
        _("graphics card: 10¹⁴ FLOP/s, 10¹² B/s"): (1e14, 1e12),
        _("laptop: 10¹² FLOP/s, 10¹¹ B/s"): (1e12, 1e11),
    }
)
_MODELS = tuple(
    name
    for name, entry in PUBLISHED.items()
    if not entry.config.max_positions and name not in ("toy layer", "Gemma 2 2B")
)


class LongContextCosts(Panel[CostByLength]):
    """Bytes and seconds of one sequence against its length."""

    alt = _(
        "Two graphs against the length of the context, all scales logarithmic. Above, bytes: weights a level blue line,"
        " the cache gold, dashed with 16 bits, no window and a kv head for each query head. Below, the least seconds"
        " that a machine needs: the prompt in red, one new token after it in black."
    )
    _plain = MappingProxyType({"weight_bits": 16, "cache_bits": 16, "window": NO_WINDOW})
    presets = MappingProxyType(
        {
            _("Llama 3 8B at 4K"): {"model": "Llama 3 8B", "n_kv_heads": 8, "length": 4096, **_plain},
            _("at 128K"): {"model": "Llama 3 8B", "n_kv_heads": 8, "length": 131072, **_plain},
            _("without grouping"): {"model": "Llama 3 8B", "n_kv_heads": 32, "length": 131072, **_plain},
            _("cache in 4 bits"): {"model": "Llama 3 8B", "n_kv_heads": 8, "length": 131072, **_plain, "cache_bits": 4},
            _("window of 4K"): {"model": "Llama 3 8B", "n_kv_heads": 8, "length": 131072, **_plain, "window": 4096},
        }
    )
    primary = ("length", "n_kv_heads", "window", "cache_bits", "model")
    handles = MappingProxyType({"length": Handle(_("line of the length"), ("length",), "x")})
    lengths = tuple(2**i for i in range(9, 22))

    def make_controls(self):
        config = PUBLISHED["Llama 3 8B"].config
        windows = {_("none: all keys"): NO_WINDOW, "1,024": 1024, "4,096": 4096, "16,384": 16384}
        bits = {_("16 bits"): 16, _("8 bits"): 8, _("4 bits"): 4}
        return {
            "model": controls.choice(_("model"), _MODELS, "Llama 3 8B"),
            "n_kv_heads": controls.choice(_("kv heads G"), divisors(config.n_heads), config.n_kv_heads),
            "length": controls.stops(_("length L"), 131072, self.lengths),
            "window": controls.choice(_("window"), windows, NO_WINDOW),
            "weight_bits": controls.choice(_("weights in"), bits, 16),
            "cache_bits": controls.choice(_("cache in"), bits, 16),
            "machine": controls.choice(_("machine"), dict(MACHINES), next(iter(MACHINES.values()))),
        }

    def make_view(self):
        return LongContextCostsView()

    def couple(self, name):
        if name == "model":
            config = PUBLISHED[self.controls["model"].value].config
            offer(self.controls["n_kv_heads"], divisors(config.n_heads), config.n_kv_heads)

    def compute(self, *, model, n_kv_heads, length, window, weight_bits, cache_bits, machine):
        config = replace(PUBLISHED[model].config, n_kv_heads=n_kv_heads)
        full = replace(config, n_kv_heads=config.n_heads)
        settings = {
            "window": window or None,
            "weight_bits": weight_bits,
            "cache_bits": cache_bits,
            "flops_per_second": machine[0],
            "bytes_per_second": machine[1],
        }
        costs = [long_context_cost(config, tokens, **settings) for tokens in self.lengths]
        here = costs[self.lengths.index(length)]
        return CostByLength(
            lengths=np.array(self.lengths),
            cache_bytes=np.array([cost.cache_bytes for cost in costs], dtype=float),
            full_bytes=np.array([kv_cache_bytes(full, tokens) for tokens in self.lengths], dtype=float),
            weight_bytes=here.weight_bytes,
            prefill_seconds=np.array([cost.prefill_seconds for cost in costs]),
            token_seconds=np.array([cost.token_seconds for cost in costs]),
            length=length,
            attention_share=here.attention_share,
            at=(here.cache_bytes, kv_cache_bytes(full, length), here.prefill_seconds, here.token_seconds),
        )

    def rows(self, data):
        cache, full, prefill, token = data.at
        return [
            Row(_("weights"), _gibibytes(data.weight_bytes), theme.FIRST, mark="weights"),
            Row(_("cache of one sequence"), _gibibytes(cache), theme.THIRD, mark="cache"),
            Row(
                _("in 16 bits, without window and grouping (dashed)"),
                _gibibytes(full),
                theme.THIRD,
                minor=True,
                mark="full",
            ),
            Row(
                _("sequences whose caches weigh as much as the weights"),
                number(data.weight_bytes / cache, 2),
                minor=True,
            ),
            Row(
                _("attention's share of the prompt's operations"),
                f"{number(100 * data.attention_share, 1)} %",
                minor=True,
            ),
            Row(_("the prompt, at least"), _seconds(prefill), theme.SECOND, mark="prefill"),
            Row(_("one new token, at least"), _seconds(token), theme.INK, mark="token"),
            Row(_("new tokens a second, at most"), f"{1 / token:,.1f}", minor=True),
        ]


def _gibibytes(size: float) -> str:
    return f"{size / 2**30:,.3f} GiB"


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{1e3 * seconds:,.3f} ms"
    return f"{seconds:,.2f} s" if seconds < 3600 else f"{seconds / 3600:,.1f} h"
