"""The place of each tensor of a decoder layer in the diagram, what feeds it, and its formula."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from transformer_parts.maths.decoder import StackConfig

#: Width and height of a tile, and the place of the first and the distance of the next, in CSS pixels.
TILE = (54, 27)
LEFT, ACROSS, DOWN = 42, 74.5, 52
UPPER, LOWER = 428, 288
#: From the middle of a tile down to the baseline of its symbol.
LABEL_DROP = 33
#: How far above the highest tile of a row the residual stream runs.
OVER = 12

SYMBOLS: Mapping[str, str] = MappingProxyType(
    {
        "x": "$X$",
        "norm1": r"$\hat{X}$",
        "q": "$Q$",
        "k": "$K$",
        "v": "$V$",
        "q_rotated": r"$\tilde{Q}$",
        "k_rotated": r"$\tilde{K}$",
        "scores": "$S$",
        "weights": "$A$",
        "mixed": "$O$",
        "attention": r"$\mathrm{Attn}$",
        "sum1": "$X{+}\\mathrm{Attn}$",
        "U": "$U$",
        "norm2": r"$\hat{U}$",
        "gate": "$G$",
        "up": "$C$",
        "product": r"$G\odot C$",
        "hidden": "$Z$",
        "ffn": r"$\mathrm{FFN}$",
        "sum2": "$U{+}\\mathrm{FFN}$",
        "Y": "$Y$",
    }
)
_NORMS = MappingProxyType({"rms": r"\mathrm{RMSNorm}", "layer": r"\mathrm{LayerNorm}"})


class Place(NamedTuple):
    """The middle of a tile in CSS pixels from the lower left, and which tensor it shows."""

    name: str
    x: float
    y: float


class Diagram(NamedTuple):
    """Tiles, the lines between them, and the two lines of the residual stream."""

    places: tuple[Place, ...]
    edges: tuple[tuple[tuple[float, float], ...], ...]
    residual: tuple[tuple[tuple[float, float], ...], ...]


def diagram(names: Sequence[str]) -> Diagram:
    """Lay out the tensors of these names: attention above, the feed-forward layer below; U is in both rows."""
    present = set(names)
    rotated = "q_rotated" in present
    upper = _columns(
        [
            *[("x",), ("norm1",), ("q", "k", "v"), ("q_rotated", "k_rotated"), ("scores",), ("weights",), ("mixed",)],
            *[("attention",), ("sum1",), ("U",)],
        ],
        present,
        UPPER,
        height=3,
    )
    lower = _columns(
        [("U",), ("norm2",), ("gate", "up"), ("product",), ("hidden",), ("ffn",), ("sum2",), ("Y",)],
        present,
        LOWER,
        height=2,
    )
    into = "norm1" if "norm1" in present else "x"
    query, key = ("q_rotated", "k_rotated") if rotated else ("q", "k")
    end = "sum1" if "sum1" in present else "U"
    pairs = [("x", into), *((into, part) for part in "qkv"), ("q", query), ("k", key), (query, "scores")]
    pairs += [(key, "scores"), ("scores", "weights"), ("weights", "mixed"), ("mixed", "attention")]
    pairs += [("attention", end), (end, "U")]
    edges = [_straight(upper[a], upper[b]) for a, b in pairs if a != b]
    edges.append(_elbow(upper["v"], upper["mixed"]))
    into, hidden = ("norm2" if "norm2" in present else "U"), ("product" if "product" in present else "hidden")
    end = "sum2" if "sum2" in present else "Y"
    inner = [(into, part) for part in ("gate", "up") if part in present]
    pairs = [("U", into), *inner, *((part, hidden) for _, part in inner)] + ([] if inner else [(into, hidden)])
    pairs += [(hidden, "ffn"), ("ffn", end), (end, "Y")]
    edges += [_straight(lower[a], lower[b]) for a, b in pairs if a != b]
    residual = (
        _over(upper["x"], upper["sum1" if "sum1" in present else "U"], UPPER + DOWN),
        _over(lower["U"], lower[end], LOWER + DOWN / 2),
    )
    places = tuple(Place(name, *at) for row in (upper, lower) for name, at in row.items())
    return Diagram(places, tuple(edges), residual)


def _columns(columns, present, middle, height) -> dict[str, tuple[float, float]]:
    found, column = {}, 0
    for stack in columns:
        kept = [name for name in stack if name in present]
        for name in kept:
            # Queries are above keys above values, in whichever column; a single tensor is in the middle.
            level = (height - 1) / 2 - stack.index(name) if len(stack) > 1 else 0
            found[name] = (LEFT + ACROSS * column, middle + DOWN * level)
        column += bool(kept)
    return found


def _straight(start, end) -> tuple:
    return (start[0] + TILE[0] / 2, start[1]), (end[0] - TILE[0] / 2, end[1])


def _elbow(start, end) -> tuple:
    return (start[0] + TILE[0] / 2, start[1]), (end[0], start[1]), (end[0], end[1] - LABEL_DROP - 5)


def _over(start, end, top) -> tuple:
    height = top + TILE[1] / 2 + OVER
    return (
        (start[0], start[1] + TILE[1] / 2),
        (start[0], height),
        (end[0], height),
        (end[0], end[1] + TILE[1] / 2),
    )


def formula(name: str, config: StackConfig, *, masked: bool) -> str:
    """Return the formula of a tensor in mathtext."""
    post, norm = config.placement == "post", _NORMS[config.norm]
    x, u = ("X", "U") if post else (r"\hat{X}", r"\hat{U}")
    turned = config.rope_base is not None
    q, k = (r"\tilde{Q}", r"\tilde{K}") if turned else ("Q", "K")
    hidden = r"(G\odot C)\,W_d" if config.gated else r"Z\,W_{out}"
    formulas = {
        "x": "X",
        "norm1": rf"\hat{{X}}={norm}(X)",
        "q": f"Q={x}\\,W_Q",
        "k": f"K={x}\\,W_K",
        "v": f"V={x}\\,W_V",
        "q_rotated": r"\tilde{Q}_t=R(t\theta)\,Q_t",
        "k_rotated": r"\tilde{K}_t=R(t\theta)\,K_t",
        "scores": rf"S={q}\,{k}^{{\mathsf{{T}}}}/\sqrt{{d_h}}",
        "weights": rf"A=\mathrm{{softmax}}(S{'+M' if masked else ''})",
        "mixed": "O=A\\,V",
        "attention": r"\mathrm{Attn}=[O_1\cdots O_h]\,W_O",
        "sum1": r"X+\mathrm{Attn}",
        "U": rf"U={norm}(X+\mathrm{{Attn}})" if post else r"U=X+\mathrm{Attn}",
        "norm2": rf"\hat{{U}}={norm}(U)",
        "gate": rf"G=\mathrm{{SiLU}}({u}\,W_g)",
        "up": f"C={u}\\,W_u",
        "product": r"G\odot C",
        "hidden": rf"Z=\mathrm{{ReLU}}({u}\,W_{{in}})",
        "ffn": rf"\mathrm{{FFN}}={hidden}",
        "sum2": r"U+\mathrm{FFN}",
        "Y": rf"Y={norm}(U+\mathrm{{FFN}})" if post else r"Y=U+\mathrm{FFN}",
    }
    return f"${formulas[name]}$"
