"""Writes a report: one HTML file, figures and tables."""

from __future__ import annotations

import io
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from robust_sgld.data import Dataset
from robust_sgld.report.formats import Table, as_csv, as_latex, as_markdown
from robust_sgld.report.html import Picture, Section, render
from robust_sgld.report.sections import FIGURES, TABLES, Contents, Part, contents
from robust_sgld.report.style import house_style
from robust_sgld.report.trials import ReportTrial

TITLE = "Robust SGLD: the paper's experiment, repeated"
PNG_DPI = 200

logging.getLogger("fontTools").setLevel(logging.WARNING)  # at INFO it tells every table of every font in every PDF

_FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
_TABLE_WRITERS = {".csv": as_csv, ".tex": as_latex, ".md": as_markdown}


@dataclass(frozen=True)
class ReportFiles:
    """What `build_report` wrote."""

    html: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]


def build_report(
    trials: Sequence[ReportTrial], data: Dataset, out: Path, *, title: str = TITLE, further: Sequence[Part] = ()
) -> ReportFiles:
    """A report on finished trials, newest first, and the data set that its main tables are about.

    `further` parts stand before the last two, which are about the report itself; with them there need be no trials.

    Writes out/index.html, out/figures/*.{png,svg,pdf} and out/tables/*.{csv,tex,md}. Figures and tables that an earlier
    report left there and this one does not have are removed. Samples nothing.
    """
    content = contents(trials, data) if trials or not further else Contents("", [], [])
    parts = [*content.parts[:-2], *further, *content.parts[-2:]]
    summary = [*content.summary, *(text for part in further for text in part.text[:1])]
    figures_folder, tables_folder = out / "figures", out / "tables"
    for folder, names, suffixes in (
        (figures_folder, FIGURES, _FIGURE_SUFFIXES),
        (tables_folder, TABLES, tuple(_TABLE_WRITERS)),
    ):
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            for suffix in suffixes:
                (folder / f"{name}{suffix}").unlink(missing_ok=True)
    sections, figures, tables = [], [], []
    for part in parts:
        pictures = []
        for drawing in part.drawings:
            figure = drawing.draw()
            figures += write_figure(figure, figures_folder / drawing.name)
            svg = (figures_folder / f"{drawing.name}.svg").read_text(encoding="utf-8")
            pictures.append(Picture(drawing.name, svg, drawing.title, drawing.caption))
        for table in part.tables:
            tables += write_table(table, tables_folder)
        sections.append(Section(part.id, part.heading, part.text, part.tables, pictures, part.facts))
    runs = sum(trial.runs for trial in trials)
    origin = (
        f"{len(trials)} trial{'s' * (len(trials) != 1)}, {runs} runs, data set {data.name}, digest {data.digest[:12]}"
    )
    html = out / "index.html"
    html.write_text(render(title, content.warning, summary, sections, origin), encoding="utf-8")
    return ReportFiles(html, tuple(figures), tuple(tables))


def write_figure(figure: Figure, stem: Path) -> list[Path]:
    """As PNG, SVG and PDF, byte for byte the same for the same figure."""
    written = []
    with house_style():
        for suffix in _FIGURE_SUFFIXES:
            buffer = io.BytesIO()
            no_date = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix)
            figure.savefig(buffer, format=suffix[1:], dpi=PNG_DPI, metadata=no_date)
            path = stem.with_name(stem.name + suffix)
            path.write_bytes(buffer.getvalue())
            written.append(path)
    return written


def write_table(table: Table, folder: Path) -> list[Path]:
    """As CSV, LaTeX and Markdown."""
    written = []
    for suffix, text in _TABLE_WRITERS.items():
        path = folder / f"{table.name}{suffix}"
        path.write_text(text(table), encoding="utf-8")
        written.append(path)
    return written
