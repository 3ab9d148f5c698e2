"""Colours, computed: contrast with the paper (WCAG 2.2, 1.4.11), lightness, and what colour-blind readers see."""

import itertools
import re
from importlib.resources import files

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from transformer_parts.draw import theme

COLOURS = (theme.FIRST, theme.SECOND, theme.THIRD)

# G. M. Machado, M. M. Oliveira, L. A. F. Fernandes, "A physiologically-based model for simulation of color vision
# deficiency" (2009), severity 1.0; on linear RGB.
READERS = {
    "ordinary": np.eye(3),
    "protanopia": np.array([
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ]),
    "deuteranopia": np.array([
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ]),
    "tritanopia": np.array([
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ]),
}  # fmt: skip


def linear(rgb):
    rgb = np.asarray(rgb, dtype=float)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def luminance(rgb):
    return float(linear(rgb) @ [0.2126, 0.7152, 0.0722])


def contrast(one, other):
    """Return the contrast ratio of WCAG 2.2."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def lab(rgb, reader="ordinary"):
    """Return CIE L*a*b* of an sRGB colour (white D65) as a reader sees it."""
    xyz = np.array([
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ])  # fmt: skip
    t = xyz @ np.clip(READERS[reader] @ linear(rgb), 0, 1) / (0.95047, 1, 1.08883)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def lightness(rgb):
    return lab(rgb)[0]


def on_a_dark_page(rgb):
    """Return a colour after the filter of style.css: invert(a), then hue-rotate(180deg) (W3C Filter Effects)."""
    css = files("transformer_parts.explore").joinpath("style.css").read_text("utf-8")
    (amount,) = set(re.findall(r"filter: invert\(([.\d]+)\) hue-rotate\(180deg\)", css))
    inverted = float(amount) * (1 - np.asarray(rgb)) + (1 - float(amount)) * np.asarray(rgb)
    grey = np.array([0.213, 0.715, 0.072])
    return np.clip(2 * (grey @ inverted) - inverted, 0, 1)


PAGES = {"light": to_rgb, "dark": lambda colour: on_a_dark_page(to_rgb(colour))}


def test_our_measures_agree_with_published_values():
    assert contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    assert contrast(to_rgb("#767676"), (1, 1, 1)) == pytest.approx(4.54, abs=0.005)  # the WCAG's lightest text grey
    assert lightness((1, 1, 1)) == pytest.approx(100, abs=1e-3)
    assert lab(to_rgb("#ff0000")) == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    assert lab(to_rgb("#0000ff")) == pytest.approx([32.30, 79.19, -107.86], abs=0.02)


def test_roles_are_told_apart_by_name():
    assert (theme.QUERY, theme.KEY, theme.VALUE) == COLOURS
    assert set(theme.MARKERS) == set(COLOURS)
    assert len(set(theme.MARKERS.values())) == len(COLOURS)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("colour", [*COLOURS, theme.INK, theme.FAINT])
def test_colours_stand_out_from_the_paper(colour, page):
    see = PAGES[page]
    assert contrast(see(colour), see(theme.PAPER)) >= 3


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("colour", [theme.INK, theme.QUERY, theme.KEY])
def test_colours_of_text_stand_out_more(colour, page):
    see = PAGES[page]
    assert contrast(see(colour), see(theme.PAPER)) >= 4.5


@pytest.mark.parametrize("page", PAGES)
def test_colours_differ_in_lightness(page):
    found = {colour: lightness(PAGES[page](colour)) for colour in COLOURS}
    assert min(abs(found[one] - found[other]) for one, other in itertools.combinations(COLOURS, 2)) >= 10


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("page", PAGES)
def test_colours_are_told_apart_by_every_reader(reader, page):
    seen = [lab(PAGES[page](colour), reader) for colour in COLOURS]
    assert min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2)) >= 20


def test_docstring_states_the_lightness_of_the_colours():
    stated = [int(number) for number in re.findall(r"\b\d\d\b(?= of 100|, |\n?\s?and \d\d of)", theme.__doc__)]
    assert stated == [round(lightness(to_rgb(colour))) for colour in COLOURS]


@pytest.mark.parametrize("name", [theme.DIVERGING, theme.SEQUENTIAL])
def test_colour_maps_are_even_in_lightness(name):
    light = np.array([lightness(rgb) for rgb in matplotlib.colormaps[name](np.linspace(0, 1, 101))[:, :3]])
    if name == theme.DIVERGING:
        assert light.argmax() == pytest.approx(50, abs=1)
        light[50:] = 2 * light[50] - light[50:]  # unfold the second half
    assert (np.diff(light) > 0).all()


def test_style_draws_symbols_without_a_warning_and_changes_nothing_global():
    names = set(matplotlib.rcParams) - {"backend"}  # reading which would import pyplot
    before = {name: matplotlib.rcParams[name] for name in names}
    canvas = FigureCanvasAgg(Figure())
    axes = canvas.figure.add_subplot()
    assert theme.style(axes, x=r"$n-m$", y=r"$\theta$", grid=False) is axes
    canvas.draw()
    assert {name: matplotlib.rcParams[name] for name in names} == before
    assert axes.get_xlabel() == "$n-m$"
    assert [side for side, spine in axes.spines.items() if spine.get_visible()] == ["left", "bottom"]


def test_missing_glyph_is_an_error():
    """The tests of stills rely on it: a glyph that the font lacks warns, and warnings are errors."""
    canvas = FigureCanvasAgg(Figure())
    canvas.figure.text(0.5, 0.5, "\u4e2d")
    with pytest.raises(UserWarning, match="Glyph"):
        canvas.draw()
