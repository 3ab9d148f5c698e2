"""Explorer of the size of a cache, factor by factor."""

from types import MappingProxyType

import numpy as np

from transformer_parts.draw import theme
from transformer_parts.draw.cache import CacheBytes, CacheSizeView
from transformer_parts.explore import controls
from transformer_parts.explore.budget import CUSTOM, MODELS, divisors, offer
from transformer_parts.explore.handles import Handle
from transformer_parts.explore.panel import Panel
from transformer_parts.explore.readout import Row
from transformer_parts.language import _
from transformer_parts.maths import budget
from transformer_parts.models.configs import PUBLISHED

PRECISIONS = MappingProxyType(
    {_("float32, 4 bytes"): 4, _("bfloat16, 2 bytes"): 2, _("int8, 1 byte"): 1, _("int4, half a byte"): 0.5}
)

# Models whose every layer caches the whole context.
_MODELS = tuple(name for name in MODELS.values() if name not in ("toy layer", "Mistral 7B", "Gemma 2 2B"))


class CacheSize(Panel[CacheBytes]):
    """Bytes of a cache against the tokens in it, for published decoders and any other."""

    alt = _(
        "Bytes of the cache against the number of tokens, both scales logarithmic: a solid line for the chosen kv"
        " heads, a dashed one with a kv head for each query head, a dotted one with a single kv head. A level line is"
        " the memory there is, with a dot where each line reaches it; triangles mark the chosen number of tokens."
    )
    presets = MappingProxyType(
        {
            "Llama 3 8B": {"model": "Llama 3 8B", "value_bytes": 2, "length": 8192, "memory": 16},
            "Llama 2 7B": {"model": "Llama 2 7B", "value_bytes": 2, "length": 4096, "memory": 16},
            _("Llama 3 70B at 131,072"): {"model": "Llama 3 70B", "value_bytes": 2, "length": 131072, "memory": 64},
            "SmolLM2, float32": {"model": "SmolLM2 135M", "value_bytes": 4, "length": 16384, "memory": 2},
        }
    )
    primary = ("model", "n_kv_heads", "length", "memory")
    handles = MappingProxyType(
        {
            "length": Handle(_("tokens in the cache"), ("length",), "x"),
            "memory": Handle(_("memory there is"), ("memory",), "y"),
        }
    )
    powers = tuple(2**i for i in range(21))

    def make_controls(self):
        c = PUBLISHED["Llama 3 8B"].config
        return {
            "model": controls.choice(_("model"), [*_MODELS, CUSTOM], "Llama 3 8B"),
            "n_layers": controls.integer(_("layers"), c.n_layers, 1, 96),
            "n_heads": controls.integer(_("heads H"), c.n_heads, 1, 64),
            "n_kv_heads": controls.choice(_("kv heads G"), divisors(c.n_heads), c.n_kv_heads),
            "head_dim": controls.stops(_("head_dim K"), c.head_dim, [16, 32, 48, 64, 80, 96, 128, 160, 192, 256]),
            "value_bytes": controls.choice(_("precision"), PRECISIONS, 2),
            "length": controls.stops(_("tokens S"), 8192, self.powers),
            "memory": controls.stops(_("memory, GiB"), 16, [1, 2, 4, 8, 16, 24, 32, 48, 64, 80, 160, 320, 640]),
        }

    def make_view(self):
        return CacheSizeView()

    def couple(self, name):
        model, heads = self.controls["model"], self.controls["n_heads"].value
        sizes = ("n_layers", "n_heads", "n_kv_heads", "head_dim")
        if name == "model":
            if model.value != CUSTOM:
                c = PUBLISHED[model.value].config
                offer(self.controls["n_kv_heads"], divisors(c.n_heads), c.n_kv_heads)
                for size in sizes:
                    self.controls[size].value = getattr(c, size)
        elif name in sizes:
            if name == "n_heads":
                menu = self.controls["n_kv_heads"]
                offer(menu, divisors(heads), max(g for g in divisors(heads) if g <= menu.value))
            present = {size: self.controls[size].value for size in sizes}
            same = [n for n in _MODELS if all(getattr(PUBLISHED[n].config, s) == v for s, v in present.items())]
            if model.value not in same:
                model.value = (*same, CUSTOM)[0]

    def compute(self, *, model, n_layers, n_heads, n_kv_heads, head_dim, value_bytes, length, memory):
        def config(groups):
            sizes = {"n_layers": n_layers, "n_heads": n_heads, "n_kv_heads": groups, "head_dim": head_dim}
            return budget.DecoderConfig(d_model=n_heads * head_dim, d_ff=1, vocab_size=0, **sizes)

        configs = {groups: config(groups) for groups in (n_heads, n_kv_heads, 1)}

        def size(tokens):
            return {groups: budget.kv_cache_bytes(c, tokens, value_bytes) for groups, c in configs.items()}

        memory, per_token = memory * 2**30, size(1)
        curve = [size(tokens) for tokens in self.powers]
        return CacheBytes(
            n_layers=n_layers,
            n_heads=n_heads,
            n_kv_heads=n_kv_heads,
            head_dim=head_dim,
            value_bytes=value_bytes,
            tokens=np.array(self.powers),
            curves={groups: np.array([held[groups] for held in curve], dtype=float) for groups in configs},
            length=length,
            held=size(length),
            per_token=per_token,
            memory=memory,
            fits={groups: memory // per_token[groups] for groups in configs},
        )

    def rows(self, data):
        every, chosen = data.n_heads, data.n_kv_heads
        factors = f"2·{data.n_layers}·{chosen}·{data.head_dim}·{data.value_bytes:g}"
        return [
            Row(
                _("bytes per token: 2·layers·G·K·bytes = {factors}", factors=factors),
                f"{data.per_token[chosen]:,}",
                theme.VALUE,
                mark="chosen",
            ),
            Row(
                _("with a kv head for each query head (dashed)"),
                f"{data.per_token[every]:,}",
                theme.VALUE,
                minor=True,
                mark="all",
            ),
            Row(
                _("with a single kv head (dotted)"),
                f"{data.per_token[1]:,}",
                theme.VALUE,
                minor=True,
                mark="one",
            ),
            Row(
                _("cache, tokens held: {length:,}", length=data.length),
                _gibibytes(data.held[chosen]),
                theme.VALUE,
                mark="chosen",
            ),
            Row(_("with a kv head for each query head"), _gibibytes(data.held[every]), minor=True, mark="all"),
            Row(
                _("grouped heads take"),
                _("{n} / {all} = {percent:.2f} % of that", n=chosen, all=every, percent=100 * chosen / every),
            ),
            Row(
                _("tokens that fit into {memory:g} GiB", memory=data.memory / 2**30),
                f"{data.fits[chosen]:,}",
                theme.FIRST,
                mark="memory",
            ),
            Row(_("with a kv head for each query head"), f"{data.fits[every]:,}", minor=True),
        ]


def _gibibytes(size: int) -> str:
    return f"{size / 2**30:,.4f} GiB"
