"""From a matplotlib figure to an SVG that can live inside a page.

Such an SVG has to be tidier than a file of its own: its text stays text (selectable, in the page's font), its
ids must not meet those of the next chart, the same data must give the same bytes, and its colours must follow
the page into dark mode. matplotlib knows no CSS, so charts are drawn in the light colours of `THEME`, and
each of these becomes `var(--chart-NAME, #light)` in the text of the SVG. The page defines the dark values.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from markupsafe import escape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COBALT = "#0047ab"

THEME = {
    "ink": "#1b2430",
    "muted": "#5d6977",
    "grid": "#dfe4ea",
    "main": COBALT,
    # After Okabe and Ito, so that pairs stay apart under the common colour deficiencies.
    "second": "#d55e00",
    "third": "#009e73",
    "fourth": "#b5568f",
    "fifth": "#8a6d00",
}
"""Chart colours by name, in light mode. Dark mode is in `templates/style.css`."""

SERIES = ("main", "second", "third", "fourth", "fifth")
MARKERS = ("o", "s", "^", "D", "v")  # colour is never the only difference

_STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "smalt",
    "text.parse_math": False,  # names come from files; a dollar sign in one is no formula
    "font.family": "DejaVu Sans",  # ships with matplotlib, so that layouts are equal everywhere
    "font.size": 10,
    "text.color": THEME["ink"],
    "axes.labelcolor": THEME["muted"],
    "axes.edgecolor": THEME["grid"],
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": THEME["grid"],
    "grid.linewidth": 0.8,
    "xtick.color": THEME["grid"],
    "xtick.labelcolor": THEME["muted"],
    "ytick.color": THEME["grid"],
    "ytick.labelcolor": THEME["muted"],
    "ytick.major.size": 0,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}


@contextmanager
def figure(width: float, height: float) -> Iterator[Figure]:
    """An empty figure of this size in inches, in the house style; the style ends with the block.

    Not pyplot: no display is looked for and nothing stays registered.
    """
    import matplotlib
    from matplotlib.figure import Figure

    # The defaults first: a user's own matplotlibrc must not change a report. Not the backend, which
    # rc_context would leave changed; saving as SVG picks its own.
    defaults = {key: value for key, value in matplotlib.rcParamsDefault.items() if key != "backend"}
    with matplotlib.rc_context({**defaults, **_STYLE}):
        yield Figure(figsize=(width, height), layout="constrained")


def to_svg(drawn: Figure, name: str, title: str) -> str:
    """The figure as an `<svg>` element. `name` prefixes its ids and must differ between charts of a page.

    `title` is read out to people who do not see the chart. Must be called inside the `figure` block.
    """
    buffer = io.StringIO()
    drawn.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # The comments only repeat each text.
    svg = re.sub(r"\s*(<metadata>.*?</metadata>|<!--.*?-->)", "", svg, flags=re.DOTALL)
    # The style element would reach over the whole page; its one rule goes on the root instead.
    svg = re.sub(r"\s*<defs>\s*<style[^>]*>[^<]*</style>\s*</defs>", "", svg, count=1)
    # Tags only: text between them may look like a reference or a colour and is shown as it is.
    svg = re.sub(r"<[^<>]*>", lambda tag: _themed(_named(tag[0], name)), svg)
    return _rooted(svg, title).strip()


def _rooted(svg: str, title: str) -> str:
    """Let the page set the size, and describe the picture."""
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None, "matplotlib writes a viewBox"
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {box[0]} '
        f'role="img" aria-label="{escape(title)}" style="stroke-linejoin: round; stroke-linecap: butt">'
    )
    return root + rest


def _named(tag: str, name: str) -> str:
    """Prefix the id in a tag, and every reference to one, with the chart's name."""
    return re.sub(r'(\sid="|xlink:href="#|url\(#)', rf"\1{name}-", tag)


def _themed(tag: str) -> str:
    """Replace the theme's colours in a tag by variables of the page."""
    names = {colour: name for name, colour in THEME.items()}
    return re.sub("|".join(names), lambda hit: f"var(--chart-{names[hit[0]]}, {hit[0]})", tag)
