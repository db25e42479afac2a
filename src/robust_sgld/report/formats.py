"""One table type, and its CSV, LaTeX (booktabs) and Markdown."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

Record = dict[str, Any]
"""A row as data: every number in full; None is the paper's NA, NaN is not known or not run"""

THIN = "\u202f"
SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹"
NOTHING = "–"
WIDE = 8
"""more columns than this do not fit a line of text"""


@dataclass(frozen=True)
class Column:
    """How a table shows one thing of a record to a person."""

    label: str
    text: Callable[[Record], str]
    sort: Callable[[Record], float | str] | None = None
    """what a reader's click sorts by; the text if None"""
    group: str = ""
    """a heading over neighbouring columns"""
    numeric: bool = True
    tone: Callable[[Record], str] | None = None
    """a class for the cell on the page"""


@dataclass(frozen=True)
class Table:
    """Records, and the columns that people see; the CSV has the records in full."""

    name: str
    title: str
    columns: Sequence[Column]
    records: Sequence[Record]
    notes: Sequence[str] = field(default=())

    def rows(self) -> list[list[str]]:
        """The cells as text."""
        return [[column.text(record) for column in self.columns] for record in self.records]

    def groups(self) -> list[tuple[str, int]]:
        """Headings over columns and how many columns each spans."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and spans[-1][0] == column.group:
                spans[-1] = (column.group, spans[-1][1] + 1)
            else:
                spans.append((column.group, 1))
        return spans


def whole(value: float | None) -> str:
    """12 345, thousands set apart; infinity is NA, as in `agreement`."""
    return _or_nothing(value, lambda v: f"{v:,.0f}".replace(",", THIN))


def mse(value: float | None) -> str:
    """Six digits after the point, as the paper prints them."""
    return _or_nothing(value, lambda v: f"{v:.6f}")


def seconds(value: float | None) -> str:
    """Three significant digits."""
    return _or_nothing(value, lambda v: f"{v:.0f}" if v >= 100 else f"{v:#.3g}" if v >= 1e-3 else f"{v:.1e}")


def share(value: float | None) -> str:
    """Per cent."""
    return _or_nothing(value, lambda v: f"{100 * v:.2g}{THIN}%" if v < 0.1 else f"{100 * v:.0f}{THIN}%")


def scientific(value: float | None) -> str:
    """Two significant digits: 0.37, 8.1·10⁵."""
    return _or_nothing(value, lambda v: f"{v:.2g}" if 1e-3 <= abs(v) < 99.5 or v == 0 else _power_of_ten(f"{v:.1e}"))


def _power_of_ten(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    raised = "".join("⁻" if c == "-" else SUPERSCRIPTS[int(c)] for c in str(int(exponent)))
    return f"{mantissa}·10{raised}"


def sort_last(value: float | None) -> float:
    """A number to sort by: NA and what is not known come last."""
    return math.inf if value is None or math.isnan(value) else value


def _or_nothing(value: float | None, text: Callable[[float], str]) -> str:
    if value is None or math.isinf(value):
        return "NA"
    return NOTHING if math.isnan(value) else text(value)


def as_csv(table: Table) -> str:
    """Every field of the records, floats in full; NA for None, nothing for NaN."""
    out = io.StringIO()
    names = list(dict.fromkeys(name for record in table.records for name in record))
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for record in table.records:
        writer.writerow([_plain(record.get(name)) for name in names])
    return out.getvalue()


def as_markdown(table: Table) -> str:
    """A pipe table; the group of a column stands before its label."""
    heads = [f"{c.group}: {c.label}" if c.group else c.label for c in table.columns]
    lines = [f"**{table.title}**", ""]
    lines.append("| " + " | ".join(_pipe(head) for head in heads) + " |")
    lines.append("|" + "|".join("---:" if c.numeric else ":---" for c in table.columns) + "|")
    lines += ["| " + " | ".join(_pipe(cell) for cell in row) + " |" for row in table.rows()]
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def as_latex(table: Table) -> str:
    """For amssymb, booktabs and graphicx: many columns are scaled to the line, prose gets columns that wrap."""
    wide = len(table.columns) > WIDE
    lines = [
        "% needs \\usepackage{amssymb,booktabs,graphicx}",
        "\\begin{table}",
        "\\centering\\small",
        f"\\caption{{{latex(table.title)}}}",
        f"\\label{{tbl:{table.name}}}",
        ("\\resizebox{\\linewidth}{!}{" if wide else "") + "\\begin{tabular}{" + _alignment(table) + "}",
        "\\toprule",
    ]
    if any(column.group for column in table.columns):
        heads, rules, at = [], [], 1
        for group, span in table.groups():
            heads.append(f"\\multicolumn{{{span}}}{{c}}{{{latex(group)}}}")
            if group:
                rules.append(f"\\cmidrule(lr){{{at}-{at + span - 1}}}")
            at += span
        lines += [" & ".join(heads) + " \\\\", "".join(rules)]
    lines += [" & ".join(latex(column.label) for column in table.columns) + " \\\\", "\\midrule"]
    lines += [" & ".join(latex(cell) for cell in row) + " \\\\" for row in table.rows()]
    lines += ["\\bottomrule", "\\end{tabular}" + "}" * wide]
    lines += [f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize {latex(note)}}}" for note in table.notes]
    return "\n".join([*lines, "\\end{table}", ""])


_LATEX = {
    "\\": "\\textbackslash{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    THIN: "\\,",
    "–": "--",
    "—": "---",
    "…": "\\dots{}",
    "±": "$\\pm$",
    "·": "$\\cdot$",
    "×": "$\\times$",
    "≤": "$\\le$",
    "≥": "$\\ge$",
    "≈": "$\\approx$",
    "→": "$\\to$",
    "∩": "$\\cap$",
    "“": "``",
    "”": "''",
    **{sub: f"$_{n}$" for n, sub in enumerate("₀₁₂₃₄")},
    "⁻": "$^-$",
    **{sup: f"$^{n}$" for n, sup in enumerate(SUPERSCRIPTS)},
    "√m": "$\\sqrt{m}$",
    "√": "$\\surd$",
    "α": "$\\alpha$",
    "ι": "$\\iota$",
    "𝔞": "$\\mathfrak{a}$",
    "η₁": "$\\eta_1$",
    "η₂": "$\\eta_2$",
    "η": "$\\eta$",
    "θ*": "$\\theta^*$",
    "n_es": "$n_{\\mathrm{es}}$",
    "δ": "$\\delta$",
    "λ_max": "$\\lambda_{\\max}$",
    "λ": "$\\lambda$",
    "β": "$\\beta$",
    "θ": "$\\theta$",
    "μ₀,ℓ,j": "$\\mu_{0,\\ell,j}$",
    "μ": "$\\mu$",
    "ℓ": "$\\ell$",
    "Ξ": "$\\Xi$",
}
_LATEX_PATTERN = re.compile("|".join(re.escape(key) for key in sorted(_LATEX, key=len, reverse=True)))


def _alignment(table: Table) -> str:
    if any(column.numeric for column in table.columns):
        return "".join("r" if column.numeric else "l" for column in table.columns)
    width = 0.75 / (len(table.columns) - 1)
    return "p{0.17\\linewidth}" + f"p{{{width:.3f}\\linewidth}}" * (len(table.columns) - 1)


def latex(text: str) -> str:
    """Text with what LaTeX reads as commands escaped and the paper's symbols as mathematics."""
    return _LATEX_PATTERN.sub(lambda match: _LATEX[match[0]], text)


def _pipe(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _plain(value: Any) -> str:
    if value is None or value == math.inf:
        return "NA"
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return str(value)
