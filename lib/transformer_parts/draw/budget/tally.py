"""Where the parameters are: a decoder's tally by part, beside that of another."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple, Self

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.ticker import MultipleLocator
from matplotlib.transforms import blended_transform_factory

from transformer_parts.draw import theme
from transformer_parts.draw.overlay import Grip, Word
from transformer_parts.draw.view import View
from transformer_parts.language import _
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
#: Names of the parts, short enough for the picture.
NAMES: Mapping[str, str] = MappingProxyType(
    {
        "embedding": _("embedding"),
        "positions": _("positions"),
        "attention": _("attention"),
        "feed_forward": _("feed-forward"),
        "norms": _("norms"),
        "head": _("head"),
    }
)


@dataclass(frozen=True)
class TwoTallies:
    """A decoder's parameters by part, and those of another beside it."""

    model: Tally  # model, reference: parameters of the two
    reference: Tally
    model_name: str  # model_name, reference_name: what the two are
    reference_name: str
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
    """Above, each decoder's parameters as one bar; below, part by part.  The total of the second decoder is the unit.

    The model has full bars, the one beside it pale ones; on the right is the ratio of the two.  The one beside it
    belongs to the background, which is drawn again when another is chosen.  A bar that is longer than the axes is cut.
    """

    size = (680, 460)
    left, width = 0.245, 0.655
    reach = 2.0
    most_part = 1.5

    def build(self) -> None:
        self.whole = self._axes(0.735, 0.235, self.reach, 2)
        self.whole.set_yticks([])
        self.parts = self._axes(0.085, 0.555, self.most_part, len(LOOKS))
        self.parts.set_yticks(range(len(LOOKS)), [look.symbol for look in LOOKS.values()][::-1], fontsize=theme.SYMBOL)
        for tick, look in zip(self.parts.get_yticklabels(), reversed(LOOKS.values()), strict=True):
            tick.set_color(theme.of_words(look.colour))
        self.parts.tick_params(axis="y", length=0)
        self.reference = _Decoder(self.whole, self.parts, first=False)
        self.model = _Decoder(self.whole, self.parts, first=True)
        for artist in self.model.artists:
            self.moving(artist)
        beside = blended_transform_factory(self.fig.transFigure, self.parts.transData)
        look = {"ha": "right", "va": "center_baseline", "color": theme.INK, "fontsize": theme.TEXT}
        self.ratios = {
            name: self.moving(self.parts.text(0.985, self._row(name), "", transform=beside, **look)) for name in LOOKS
        }
        self._beside: Tally | None = None
        self.shows = {name: (self.model.segments[name], self.model.bars[name]) for name in LOOKS}

    def _axes(self, bottom: float, height: float, reach: float, rows: int) -> Axes:
        axes = theme.style(self.fig.add_axes((self.left, bottom, self.width, height)), grid=False)
        axes.set(xlim=(0, reach), ylim=(-0.5, rows - 0.5))
        axes.grid(axis="x", color=theme.GRID, linewidth=theme.THIN)
        axes.xaxis.set_major_locator(MultipleLocator(0.5))
        axes.xaxis.set_major_formatter(lambda value, _place: f"{value:g}×")
        return axes

    @staticmethod
    def _row(name: str) -> int:
        return len(LOOKS) - 1 - list(LOOKS).index(name)

    def update(self, data: TwoTallies) -> Self:
        unit = data.reference.total
        self.model.show(data.model, unit)
        if self._beside != data.reference:
            self._beside = data.reference
            self.reference.show(data.reference, unit)
            self.redraw_background()
        for name, ratio in self.ratios.items():
            one, other = data.model.parts[name], data.reference.parts[name]
            ratio.set_text(f"× {one / other:.3g}" if one and other else "")
        return self

    def grips(self, data):
        unit = data.reference.total
        return {
            "layers": self._end(self.whole, data.model.total / unit, 1),
            "width": self._end(self.parts, data.model.feed_forward / unit, self._row("feed_forward")),
            "vocabulary": self._end(self.parts, data.model.embedding / unit, self._row("embedding")),
        }

    def _end(self, axes: Axes, length: float, row: int) -> Grip:
        """Return a grip at the end of a model's bar, which a hand may take anywhere in its row."""
        far = axes.get_xlim()[1]
        place = self.at(axes, min(length, far), row + _Decoder.offset * (axes is self.parts))
        return Grip(*place, self.box(axes, (0, far), (row - 0.5, row + 0.5)))

    def words(self, data):
        edge = self.left * self.size[0]
        for name, row in ((data.model_name, 1), (data.reference_name, 0)):
            yield Word(name, edge - 2, self.at(self.whole, 0, row)[1], theme.INK, "left")
        for name, look in LOOKS.items():
            yield Word(NAMES[name], edge - 62, self.at(self.parts, 0, self._row(name))[1], look.colour, "left")
        yield self.word("= 1×", self.whole, 1, -0.1)
        ratio = data.model.total / data.reference.total
        if ratio > self.reach:
            yield self.word(_("cut here"), self.whole, self.reach, 1.42, side="left")


class _Decoder:
    """The artists of one decoder: its bar with percentages and total, and a bar for each part."""

    height = 0.5
    #: From the middle of a part's row to the middle of the bar, whose height this is twice.
    offset = 0.19

    def __init__(self, whole: Axes, parts: Axes, *, first: bool):
        text = {"ha": "center", "va": "center_baseline", "color": theme.PAPER, "fontsize": theme.TEXT}
        self.y, opaque = (1, 1.0) if first else (0, 0.45)
        self.segments, self.percents, self.bars = {}, {}, {}
        for i, (part, look) in enumerate(LOOKS.items()):
            paint = {"facecolor": look.colour, "edgecolor": theme.PAPER, "linewidth": theme.THIN, "alpha": opaque}
            paint["hatch"] = look.hatch or None
            bottom = len(LOOKS) - 1 - i - (0 if first else 2 * self.offset)
            self.segments[part] = whole.add_patch(Rectangle((0, self.y - 0.35), 0, self.height, **paint))
            self.bars[part] = parts.add_patch(Rectangle((0, bottom), 0, 2 * self.offset, **paint))
            on = look.colour == theme.THIRD or not first
            self.percents[part] = whole.text(0, self.y - 0.1, "", **text | {"color": theme.INK if on else theme.PAPER})
            if look.hatch:
                self.percents[part].set_bbox({"facecolor": look.colour, "edgecolor": "none", "pad": 2})
        look = {"transform": blended_transform_factory(whole.transAxes, whole.transData)}
        self.total = whole.text(
            0, self.y + 0.18, "", **text | {"ha": "left", "va": "bottom", "color": theme.INK}, **look
        )

    @property
    def artists(self) -> list[Artist]:
        """All that changes."""
        return [*self.segments.values(), *self.bars.values(), *self.percents.values(), self.total]

    def show(self, tally: Tally, unit: int) -> None:
        """Set the data of all artists; `unit` parameters have the length 1."""
        left, reach = 0.0, BudgetTallyView.reach
        for part, share in tally.shares.items():
            width = tally.parts[part] / unit
            self.segments[part].set(x=left, width=width, visible=width > 0)
            self.bars[part].set(width=width, visible=width > 0)
            legible = width > 0.11 * reach and left + width <= reach
            self.percents[part].set(x=left + width / 2, text=f"{100 * share:.1f} %", visible=legible)
            left += width
        self.total.set_text(f"{tally.total:,}")
