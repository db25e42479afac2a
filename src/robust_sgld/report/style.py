"""How figures look, and which colour a trial has: in figures and in the tracking UI."""

from __future__ import annotations

import colorsys
import functools
import hashlib
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, cast

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, MUTED, HAIRLINE, PAPER = "#1b1f24", "#5f6873", "#d9dde2", "#ffffff"
VANILLA = "#d1420b"
OTHER = "#8a5a2b"
"""estimators that are not samplers"""
CLEAN, OUTLIER = "#2a7fb0", "#d1420b"

ETA2_COLORS = {
    0.01: "#b3a41c",
    0.1: "#6aa339",
    0.5: "#1e9a80",
    1.0: "#1f78b4",
    1.5: "#3d4fa8",
    2.0: "#3b1f66",
}
"""ordered by lightness, which every kind of colour vision keeps; vanilla is off this scale in hue and dashed besides"""

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.labelsize": 9,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": HAIRLINE,
    "grid.linewidth": 0.6,
    "lines.linewidth": 1.5,
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.hashsalt": "robust_sgld",
    "pdf.fonttype": 3,  # TrueType would have to be cut down to the glyphs used, which takes longer than all drawing
}

Arguments = ParamSpec("Arguments")


def styled(draw: Callable[Arguments, Figure]) -> Callable[Arguments, Figure]:
    """A figure function that draws in the house style, whatever the caller's rcParams are, and lays out what it drew.

    A figure that keeps its layout engine solves the layout again, and draws twice, for every format it is written in.
    """

    @functools.wraps(draw)
    def inside(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Figure:
        with house_style():
            figure = draw(*args, **kwargs)
            ConstrainedLayoutEngine().execute(figure)
            return figure

    return inside


@contextmanager
def house_style() -> Iterator[None]:
    """matplotlib's defaults and `STYLE`, and afterwards the caller's settings again."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(cast(Any, STYLE))
        yield


def new_figure(
    width: float, height: float, rows: int = 1, columns: int = 1, **kwargs: Any
) -> tuple[Figure, list[Axes]]:
    """A figure in inches and its axes, row by row; `styled` places them."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **kwargs)
    return figure, list(np.ravel(axes))


def trial_color(sampler: str, eta2: float | None, variant: str = "") -> str:
    """ "#rrggbb" of a trial: one for each sampler and η₂.

    The paper's η₂ have colours of their own; any other lies between its neighbours on the same scale, with a small
    offset that depends on it, so that no two values share a colour. `variant` names what else sets a trial apart (for
    example "q=0.1"): it turns the hue, so that trials of a sweep over something else can be told apart too.
    """
    base = VANILLA if eta2 is None else _eta2_color(float(eta2))
    other = "" if sampler in ("sgld", "robust_sgld") else sampler
    if not variant and not other:
        return base
    turn = _hash(f"{other}|{variant}")
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(base))
    hue = (hue + 0.08 + 0.84 * turn) % 1
    lightness = 0.3 + 0.3 * _hash(f"{variant}|{other}|{eta2}")
    return _hex(colorsys.hls_to_rgb(hue, lightness, max(saturation, 0.55)))


def on_dark(color: str) -> str:
    """The colour that stands for this one on a dark page: neutrals swap ends, dark hues get lighter."""
    neutral = {INK: "#e6e9ed", MUTED: "#9aa4b0", HAIRLINE: "#333a43", PAPER: "#15181c", "#000000": "#e6e9ed"}
    if color in neutral:
        return neutral[color]
    hue, lightness, saturation = colorsys.rgb_to_hls(*_rgb(color))
    while contrast(color, neutral[PAPER]) < 4.5 and lightness < 0.95:
        lightness += 0.02
        color = _hex(colorsys.hls_to_rgb(hue, lightness, saturation))
    return color


def contrast(first: str, second: str) -> float:
    """The contrast ratio of two colours, 1 … 21 (WCAG 2)."""
    high, low = sorted((luminance(first), luminance(second)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def luminance(color: str) -> float:
    """Relative luminance of "#rrggbb", 0 … 1."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _rgb(color)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _eta2_color(eta2: float) -> str:
    if eta2 in ETA2_COLORS:
        return ETA2_COLORS[eta2]
    # ends of the scale beyond the paper's values: pale yellow below, near black above
    anchors = [1e-4, *ETA2_COLORS, 50.0]
    colors = np.array([_rgb(c) for c in ("#e3dc8f", *ETA2_COLORS.values(), "#1a0b26")])
    position = math.log(min(max(eta2, anchors[0]), anchors[-1]))
    mixed = [float(np.interp(position, np.log(anchors), channel)) for channel in colors.T]
    offset = [(_hash(f"{eta2!r}{channel}") - 0.5) * 0.1 for channel in "rgb"]
    return _hex(tuple(m + o for m, o in zip(mixed, offset, strict=True)))


def _hash(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / 2**48


def _rgb(color: str) -> tuple[float, float, float]:
    return int(color[1:3], 16) / 255, int(color[3:5], 16) / 255, int(color[5:7], 16) / 255


def _hex(rgb: tuple[float, ...]) -> str:
    return "#" + "".join(f"{round(255 * min(max(c, 0.0), 1.0)):02x}" for c in rgb)
