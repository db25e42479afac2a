"""One self-contained HTML file from sections of text, tables and figures."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.resources import files

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from robust_sgld.report.formats import Table
from robust_sgld.report.style import on_dark


@dataclass(frozen=True)
class Picture:
    """A figure on the page."""

    name: str
    svg: str
    title: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A heading and what stands below it, in this order."""

    id: str
    heading: str
    text: Sequence[str] = field(default=())
    tables: Sequence[Table] = field(default=())
    pictures: Sequence[Picture] = field(default=())
    facts: Sequence[tuple[str, str]] = field(default=())


def render(title: str, warning: str, summary: Sequence[str], sections: Sequence[Section], origin: str) -> str:
    """The page; nothing on it is fetched from anywhere."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["data_uri"] = data_uri
    environment.filters["symbols"] = symbols
    template = environment.from_string(
        files("robust_sgld.report").joinpath("template.html").read_text(encoding="utf-8")
    )
    return template.render(title=title, warning=warning, summary=summary, sections=sections, origin=origin)


_SYMBOLS = {
    "η₂ = ": "η₂\u00a0=\u00a0",
    "n_es": "n<sub>es</sub>",
    "λ_max": "λ<sub>max</sub>",
    "F_j": "F<sub>j</sub>",
    "μ₀,ℓ,j": "μ<sub>0,ℓ,j</sub>",
    "2^j C": "2<sup>j</sup> C",
    "2^-j": "2<sup>−j</sup>",
    "2^(m(ℓ+j))": "2<sup>m(ℓ+j)</sup>",
}


def symbols(text: str) -> Markup:
    """Text, escaped, with the paper's symbols as they are typeset."""
    result = str(escape(text))
    for plain, typeset in _SYMBOLS.items():
        result = result.replace(plain, typeset)
    return Markup(result)


def data_uri(svg: str) -> str:
    """The SVG as an address that holds it, with its colours for a dark page."""
    return "data:image/svg+xml;base64," + base64.b64encode(for_both_pages(svg).encode()).decode()


def for_both_pages(svg: str) -> str:
    """The SVG with a rule for each of its colours that replaces it where the reader prefers a dark page."""
    rules = []
    for color in sorted(set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", svg))):
        dark = on_dark(color)
        if dark != color:
            rules.append(f'[style*="fill: {color}"]{{fill:{dark}!important}}')
            rules.append(f'[style*="stroke: {color}"]{{stroke:{dark}!important}}')
    # text of matplotlib has no fill of its own where it is black
    rules.append(f"svg{{fill:{on_dark('#000000')}}}")
    style = f"<style>@media screen and (prefers-color-scheme: dark){{{''.join(rules)}}}</style>"
    return re.sub(r"(<svg[^>]*>)", lambda match: match[1] + style, svg, count=1)
