"""Where the parameters are: a decoder's tally by part, beside that of another."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter
from matplotlib.transforms import blended_transform_factory

from transformer_parts.draw import theme
from transformer_parts.draw.view import View
from transformer_parts.maths.budget import BudgetMatch, Tally


class Look(NamedTuple):
    """How a part of the tally looks wherever it is shown: its symbol, colour and hatching."""

    symbol: str
    colour: str
    hatch: str = ""


#: Gold is what a vocabulary or a list of positions needs, blue attention, red feed-forward, black the norms.
LOOKS: Mapping[str, Look] = MappingProxyType(
    {
        "embedding": Look("$W_E$", theme.THIRD),
        "positions": Look("$W_P$", theme.THIRD, "xxxx"),
        "attention": Look("$W_{QKVO}$", theme.FIRST),
        "feed_forward": Look(r"$W_{\mathrm{FFN}}$", theme.SECOND),
        "norms": Look(r"$\gamma$", theme.INK),
        "head": Look("$W_U$", theme.THIRD, "////"),
    }
)
ROWS: Mapping[str, Look] = MappingProxyType({**LOOKS, "total": Look(r"$\Sigma$", theme.INK)})


@dataclass(frozen=True)
class TwoTallies:
    """A decoder's parameters by part, and those of another beside it."""

    model: Tally  # model, reference: parameters of the two
    reference: Tally
    reference_name: str  # what the second is
    formulas: Mapping[str, str]  # for each part of the model, the sum that gives it
    tied: bool  # whether the model's head is its embedding
    attention_width: int  # H·K, the query heads' channels together
    d_model: int  # D
    match: BudgetMatch  # the model's feed-forward matrices against a plain layer's of width 4·D
    flops: int  # operations of the products with weights, per token
    cache_bytes: int  # bytes of keys and values per token, in 16 bits
    # told, note: what a publication says of the model's size, and what to know of that; "" for sizes of one's own
    told: str
    note: str


class BudgetTallyView(View[TwoTallies]):
    """Above, each decoder's shares as a bar of 100 %; below, the parts themselves on a logarithmic scale.

    The model has filled dots, the one beside it empty squares; on the right is the ratio of the two.  The one
    beside it belongs to the background, which is drawn again when another is chosen.
    """

    size = (680, 460)

    def build(self) -> None:
        self.shares = theme.style(self.fig.add_axes((0.105, 0.585, 0.78, 0.405)), grid=False)
        self.shares.set(xlim=(0, 1), ylim=(-0.42, 1.62), yticks=[])
        self.shares.spines["left"].set_visible(False)
        self.shares.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))

        self.parts = theme.style(self.fig.add_axes((0.105, 0.065, 0.78, 0.435)))
        self.parts.set(xscale="log", xlim=(1, 1e12), ylim=(-0.6, len(ROWS) - 0.4))
        self.parts.set_yticks(range(len(ROWS)), [look.symbol for look in ROWS.values()][::-1], fontsize=theme.SYMBOL)
        for tick, look in zip(self.parts.get_yticklabels(), reversed(ROWS.values()), strict=True):
            tick.set_color(look.colour)
        self.parts.xaxis.set_major_locator(LogLocator(1000, numticks=9))
        self.parts.xaxis.set_minor_locator(LogLocator(10, numticks=15))
        self.parts.xaxis.set_minor_formatter(NullFormatter())
        self.parts.axhline(0.5, color=theme.FAINT, linewidth=theme.THIN)

        square = {"marker": "s", "markersize": 11, "markerfacecolor": "none", "markeredgewidth": 1.6}
        self.reference = _Decoder(self.shares, self.parts, 0, square)
        self.model = _Decoder(self.shares, self.parts, 1, {"marker": "o", "markersize": 9})
        for artist in self.model.artists:
            self.moving(artist)
        beside = blended_transform_factory(self.fig.transFigure, self.parts.transData)
        look = {"ha": "right", "va": "center_baseline", "color": theme.INK, "fontsize": theme.TEXT}
        self.ratios = {
            name: self.moving(self.parts.text(0.985, len(ROWS) - 1 - i, "", transform=beside, **look))
            for i, name in enumerate(ROWS)
        }
        self._beside: Tally | None = None

    def update(self, data: TwoTallies) -> Self:
        self.model.show(data.model)
        if self._beside != data.reference:
            self._beside = data.reference
            self.reference.show(data.reference)
            self.redraw_background()
        for name, ratio in self.ratios.items():
            one, other = (tally.parts.get(name, tally.total) for tally in (data.model, data.reference))
            ratio.set_text(f"× {one / other:.3g}" if one and other else "")
        return self


class _Decoder:
    """The artists of one decoder: its bar of shares with their percentages and the total, and its dots."""

    height = 0.46

    def __init__(self, shares: Axes, parts: Axes, y: int, mark: dict):
        text = {"ha": "center", "va": "center_baseline", "color": theme.PAPER, "fontsize": theme.TEXT}
        self.segments, self.percents, self.dots = {}, {}, {}
        for part, look in LOOKS.items():
            self.segments[part] = shares.add_patch(
                Rectangle((0, y - self.height / 2), 0, self.height, facecolor=look.colour, edgecolor=theme.PAPER)
            )
            self.segments[part].set(linewidth=theme.THIN, hatch=look.hatch or None)
            self.percents[part] = shares.text(0, y, "", **text, zorder=4)
            if look.hatch:
                self.percents[part].set_bbox({"facecolor": look.colour, "edgecolor": "none", "pad": 2})
        self.total = shares.text(1, y + 0.27, "", **text | {"ha": "right", "va": "bottom", "color": theme.INK})
        for i, (name, look) in enumerate(ROWS.items()):
            place = len(ROWS) - 1 - i
            (self.dots[name],) = parts.plot([1], [place], color=look.colour, clip_on=False, zorder=3 + y, **mark)
        beside = blended_transform_factory(shares.figure.transFigure, shares.transData)
        shares.plot(0.07, y, color=theme.INK, transform=beside, clip_on=False, **mark)

    @property
    def artists(self) -> list[Artist]:
        """All that changes."""
        return [*self.segments.values(), *self.percents.values(), *self.dots.values(), self.total]

    def show(self, tally: Tally) -> None:
        """Set the data of all artists."""
        left = 0.0
        for part, share in tally.shares.items():
            self.segments[part].set(x=left, width=share, visible=share > 0)
            self.percents[part].set(x=left + share / 2, text=f"{100 * share:.1f}", visible=share > 0.06)
            left += share
        self.total.set_text(f"Σ = {tally.total:,}")
        for name, dot in self.dots.items():
            number = tally.parts.get(name, tally.total)
            dot.set_xdata([number])
            dot.set_visible(number > 0)
