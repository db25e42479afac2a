"""One table, three formats: complete in CSV, escaped in LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
import math
import re

import pytest

from robust_sgld.report.fidelity import conventions
from robust_sgld.report.formats import (
    Column,
    Table,
    as_csv,
    as_latex,
    as_markdown,
    latex,
    mse,
    scientific,
    seconds,
    share,
    whole,
)
from robust_sgld.report.table2 import comparison, hidden
from tests.report_samples import made_up


@pytest.fixture
def table() -> Table:
    columns = [
        Column("method", lambda r: r["method"], numeric=False),
        Column("n_es", lambda r: whole(r["n_es"]), lambda r: r["n_es"], "ours"),
        Column("loss", lambda r: mse(r["loss"]), group="ours"),
    ]
    records = [
        {"method": "a|b, η₂ = 0.5", "n_es": 20353, "loss": 0.1 + 0.2, "hidden": True},
        {"method": "50 % & more", "n_es": None, "loss": math.nan, "hidden": False},
    ]
    return Table("name", "A title_1", columns, records, ["A note: 5 % < 6 %."])


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (whole(20353), "20\u202f353"),
        (whole(None), "NA"),
        (whole(math.inf), "NA"),
        (whole(math.nan), "–"),
        (mse(0.0050144), "0.005014"),
        (seconds(114.28), "114"),
        (seconds(0.0249), "0.0249"),
        (seconds(0.5), "0.500"),
        (seconds(0.00012), "1.2e-04"),
        (share(0.5), "50\u202f%"),
        (share(0.0123), "1.2\u202f%"),
        (share(0.0), "0\u202f%"),
        (share(math.nan), "–"),
    ],
)
def test_numbers_as_text(text: str, wanted: str) -> None:
    assert text == wanted


def test_csv_holds_every_field_in_full(table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert rows[0] == {"method": "a|b, η₂ = 0.5", "n_es": "20353", "loss": "0.30000000000000004", "hidden": "True"}
    assert rows[1]["n_es"] == "NA"
    assert rows[1]["loss"] == ""


def test_markdown_has_as_many_cells_in_every_row(table: Table) -> None:
    lines = as_markdown(table).splitlines()
    assert lines[0] == "**A title_1**"
    grid = [line for line in lines if line.startswith("|")]
    assert len(grid) == 4
    assert {len(re.split(r"(?<!\\)\|", line)) for line in grid} == {5}
    assert grid[0] == "| method | ours: n_es | ours: loss |"
    assert lines[-1] == "A note: 5 % < 6 %."


def test_latex_escapes_and_groups(table: Table) -> None:
    text = as_latex(table)
    assert r"a|b, $\eta_2$ = 0.5 & 20\,353 & 0.300000 \\" in text
    assert r"50 \% \& more & NA & -- \\" in text
    assert r"\multicolumn{1}{c}{} & \multicolumn{2}{c}{ours} \\" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r"\caption{A title\_1}" in text
    assert r"\begin{tabular}{lrr}" in text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("n_es", r"$n_{\mathrm{es}}$"),
        ("a_b^c~d", r"a\_b\textasciicircum{}c\textasciitilde{}d"),
        ("θ*, μ₀,ℓ,j, λ_max", r"$\theta^*$, $\mu_{0,\ell,j}$, $\lambda_{\max}$"),
        ("2 100–2 600 ± 1", r"2 100--2 600 $\pm$ 1"),
        ("\\{}", r"\textbackslash{}\{\}"),
        ("8.1·10⁵, 10⁻⁴", r"8.1$\cdot$10$^5$, 10$^-$$^4$"),
        ("√m, R², ι(α) = 𝔞", r"$\sqrt{m}$, R$^2$, $\iota$($\alpha$) = $\mathfrak{a}$"),
    ],
)
def test_latex_of_symbols(text: str, wanted: str) -> None:
    assert latex(text) == wanted


def test_latex_of_the_reports_own_tables_is_plain_and_balanced() -> None:
    trials = [made_up(range(1, 101), eta2=2.0), made_up((0, 1), eta2=None)]
    for one in (comparison(trials), hidden(trials), conventions()):
        text = as_latex(one)
        assert text.isascii()
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
        body = text.split("\\midrule\n")[1].split("\\bottomrule")[0]
        assert {len(re.split(r"(?<!\\)&", line)) for line in body.splitlines()} == {len(one.columns)}
    assert "\\resizebox{\\linewidth}{!}{\\begin{tabular}" in as_latex(comparison(trials))
    assert "p{0.375\\linewidth}" in as_latex(conventions())


@pytest.mark.parametrize(
    ("value", "wanted"),
    [(0.374, "0.37"), (123.0, "1.2·10²"), (8.14e5, "8.1·10⁵"), (-2e-12, "-2.0·10⁻¹²"), (0.0, "0"), (math.nan, "–")],
)
def test_scientific(value: float, wanted: str) -> None:
    assert scientific(value) == wanted
