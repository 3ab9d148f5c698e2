"""Which parts the published decoders use: positions, norm and its placement, feed-forward layer."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import NamedTuple

from transformer_parts.maths import require
from transformer_parts.models.configs import PUBLISHED, Published

#: By the norms of a layer.  A layer of one norm has both branches side by side, which read the same normed stream.
_PLACEMENTS = MappingProxyType({1: "Pre, parallel", 2: "Pre", 4: "Sandwich"})
_NORMS = MappingProxyType({"rms": "RMSNorm", "layer": "LayerNorm"})
#: By the activation, of a gated and of a plain layer.
_FEED_FORWARD = MappingProxyType(
    {"silu": ("SwiGLU", "SiLU"), "gelu": ("GEGLU", "GELU"), "gelu_tanh": ("GEGLU", "GELU (tanh)")}
)


class Architecture(NamedTuple):
    """The parts of a published decoder, each as one says it."""

    model: str
    positions: str  # "RoPE, base 10,000", or a learned table
    norm: str  # "RMSNorm" or "LayerNorm"
    placement: str  # "Pre", "Pre, parallel" or "Sandwich"
    feed_forward: str  # "SwiGLU", "GEGLU" or a plain activation
    qk_norm: str  # "yes" or ""
    kv_heads: str  # "8 of 32": key and value heads of the query heads


def architecture(model: str) -> Architecture:
    """Return the parts of a published decoder.

    Raises
    ------
    ValueError
        If there is no such model in `configs.PUBLISHED`.

    Examples
    --------
    >>> architecture("Gemma 2 2B")[1:5]
    ('RoPE, base 10,000', 'RMSNorm', 'Sandwich', 'GEGLU')
    """
    entry = PUBLISHED[require.one_of("model", model, PUBLISHED)]
    config = entry.config
    return Architecture(
        model,
        _positions(entry),
        _NORMS[config.norm],
        _PLACEMENTS[config.norms_per_layer],
        _FEED_FORWARD[entry.activation][config.ffn == "mlp"],
        "yes" if config.qk_norm else "",
        f"{config.n_kv_heads} of {config.n_heads}",
    )


def architectures(models: Sequence[str] | None = None) -> tuple[Architecture, ...]:
    """Return a row for each model, all released ones if none are named.

    Parameters
    ----------
    models : sequence of str, optional; names of `configs.PUBLISHED`

    Examples
    --------
    >>> [row.model for row in architectures() if row.norm == "LayerNorm"]
    ['GPT-2 small', 'GPT-2 XL', 'Phi-2']
    """
    released = [name for name, entry in PUBLISHED.items() if entry.config.vocab_size]
    named = released if models is None else require.members("models", models)
    return tuple(architecture(require.one_of("models", model, PUBLISHED)) for model in named)


def table(rows: Sequence[Architecture], columns: Sequence[str] = Architecture._fields) -> str:
    """Return rows as text, a column to each of the named fields, models that agree in all of them on one line.

    Examples
    --------
    >>> print(table(architectures(["Llama 1 7B", "Llama 2 7B"]), ("model", "norm")))
    model                   norm
    Llama 1 7B, Llama 2 7B  RMSNorm
    """
    columns = [require.one_of("columns", c, Architecture._fields) for c in require.members("columns", columns)]
    found: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        found.setdefault(tuple(getattr(row, c) for c in columns if c != "model"), []).append(row.model)
    lines = [[column.replace("_", " ") for column in columns]]
    for parts, models in found.items():
        left = iter(parts)
        lines.append([", ".join(models) if column == "model" else next(left) for column in columns])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _positions(entry: Published) -> str:
    if entry.config.max_positions:
        return f"learned, {entry.config.max_positions:,} rows"
    turned = f", {entry.rotary_dim} of {entry.config.head_dim} channels" if entry.rotary_dim else ""
    return f"RoPE, base {entry.rope_base:,.0f}{turned}"
