"""A whole report: its structure is held, its pixels are not."""

from __future__ import annotations

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import robust_sgld as rs
from robust_sgld.report import ReportFiles, ReportTrial, build_report, published
from robust_sgld.report.html import for_both_pages, symbols
from robust_sgld.report.sections import FIGURES, REAL_DATA, TABLES, contents, warning
from tests.report_samples import made_up


class Outline(HTMLParser):
    """What a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.headings: list[str] = []
        self.links: list[str] = []
        self.sources: list[str] = []
        self.alternatives: list[str] = []
        self.depth: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        known = dict(attrs)
        self.ids += [value] if (value := known.get("id")) else []
        self.links += [value] if (value := known.get("href")) else []
        self.sources += [value] if (value := known.get("src")) else []
        self.alternatives += [known.get("alt") or ""] if tag == "img" else []
        if tag not in ("meta", "img"):
            self.depth.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.depth.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        if self.depth and self.depth[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)


def smoke_trials(data: rs.Dataset) -> list[ReportTrial]:
    """Three runs of 200 updates of two methods: what `trial=smoke` leaves behind."""
    problem = rs.SigmoidRegression(4)
    found = []
    for eta2, sampler in ((2.0, rs.RobustSGLD(problem, rs.DRO(eta2=2.0))), (None, rs.SGLD(problem))):
        result = rs.run_trial(sampler, data, runs=3, n_iter=200, workers=1)
        params = {"problem.name": "SigmoidRegression", "data.q": 0.3, "dro.delta": 0.1, "dro.j": 1}
        params |= {"eta2": 2.0} if eta2 else {}
        found.append(ReportTrial(result, params, f"id-{eta2}", f"<{sampler.name}> q=0.3", "", data.digest))
    return found


@pytest.fixture(scope="module")
def smoke(paper: rs.Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[ReportFiles, str]:
    files = build_report(smoke_trials(paper), paper, tmp_path_factory.mktemp("report"))
    return files, files.html.read_text(encoding="utf-8")


def test_the_smoke_report_has_the_golden_structure(smoke: tuple[ReportFiles, str]) -> None:
    outline = Outline(smoke[1])
    assert outline.depth == []
    assert outline.ids == [
        "warning", "summary",
        "table2", "table-table2", "table-spread", "figure-hitting_times",
        "figures", "figure-figure1", "figure-figure2",
        "beyond", "figure-theta",
        "adversary", "figure-adversary",
        "theory", "table-excess_risk", "table-worst_case", "figure-worst_case",
        "alternatives", "table-baselines", "figure-comparison",
        "fidelity", "table-conventions",
        "trials", "table-trials",
    ]  # fmt: skip
    assert outline.headings == [
        "Robust SGLD: the paper's experiment, repeated",
        "Table 2", "Table 2, ours beside the paper's", "What the printed statistic hides",
        "Figures 1 and 2",
        "Beyond the paper",
        "The adversary",
        "Theory", "Excess risk, measured and bounded", "The worst case",
        "What else a user could have picked", "Alternatives and samplers on the same data",
        "Fidelity", "Conventions, and where the paper's text says something else",
        "Trials", "The trials behind this report",
    ]  # fmt: skip
    assert outline.links == [f"#{name}" for name in outline.ids if f"#{name}" in outline.links]
    assert all(len(text) > 40 for text in outline.alternatives)


def test_the_page_needs_nothing_from_outside(smoke: tuple[ReportFiles, str]) -> None:
    outline = Outline(smoke[1])
    assert len(outline.sources) == 7
    assert all(source.startswith("data:image/svg+xml;base64,") for source in outline.sources)
    assert not re.search(r"""(?:src|href)=["'](?!data:|#)|@import|url\((?!["']?data:)""", smoke[1])
    for source in outline.sources:
        svg = base64.b64decode(source.split(",", 1)[1]).decode()
        assert "prefers-color-scheme: dark" in svg
        assert svg.rstrip().endswith("</svg>")


def test_a_smoke_report_is_marked_and_judges_nothing(smoke: tuple[ReportFiles, str]) -> None:
    text = smoke[1]
    assert "Not the paper&#39;s protocol: 3 runs instead of 100; 200 updates instead of 25000." in text
    assert text.count(">not judged<") == 2
    assert text.count(">not run<") == 5
    assert ">agrees<" not in text
    assert "No row of Table 2 can be judged" in text


def test_names_of_runs_are_escaped(smoke: tuple[ReportFiles, str]) -> None:
    assert "&lt;robust_sgld&gt; q=0.3" in smoke[1]
    assert "<robust_sgld>" not in smoke[1]


def test_every_file_is_written_and_named(smoke: tuple[ReportFiles, str]) -> None:
    files = smoke[0]
    out = files.html.parent
    figures = ("hitting_times", "figure1", "figure2", "theta", "adversary", "worst_case", "comparison")
    assert set(files.figures) == {out / "figures" / f"{n}{s}" for n in figures for s in (".png", ".svg", ".pdf")}
    tables = ("table2", "spread", "excess_risk", "worst_case", "baselines", "conventions", "trials")
    assert set(files.tables) == {out / "tables" / f"{n}{s}" for n in tables for s in (".csv", ".tex", ".md")}
    begins = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    assert all(path.read_bytes().startswith(begins[path.suffix]) for path in files.figures)
    assert all(path.stat().st_size > 100 for path in files.tables)
    assert set(figures) <= set(FIGURES)
    assert set(tables) <= set(TABLES)


def test_a_report_on_other_trials_leaves_nothing_of_the_old_one(
    smoke: tuple[ReportFiles, str], paper: rs.Dataset, tmp_path: Path
) -> None:
    for name in ("figures/grid.png", "figures/mine.png", "tables/figure1_levels.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("old")
    again = build_report(smoke_trials(paper), paper, tmp_path)
    assert not (tmp_path / "figures/grid.png").exists()
    assert not (tmp_path / "tables/figure1_levels.md").exists()
    assert (tmp_path / "figures/mine.png").exists()  # not ours to remove
    # the same trials give the same bytes, but for what holds seconds
    timed = ("comparison", "baselines", "table2", "trials")
    for old, new in zip(smoke[0].figures + smoke[0].tables, again.figures + again.tables, strict=True):
        assert old.name == new.name
        if old.stem not in timed:
            assert old.read_bytes() == new.read_bytes(), old.name


def test_sweeps_appear_when_their_trials_exist(paper: rs.Dataset) -> None:
    def at(key: str, value: float, digest: str = paper.digest) -> ReportTrial:
        return made_up(eta2=2.0, digest=digest, run_id=f"{key}={value}", params={key: value})

    trials = [
        made_up(range(1, 101), eta2=2.0),
        at("data.q", 0.1, "a"),
        at("data.q", 0.5, "b"),
        at("dro.delta", 0.1),
        at("dro.delta", 0.01),
        at("dro.j", 0),
        at("dro.j", 1),
        at("dro.j", 2),
    ]
    found = contents(trials, paper)
    assert [part.id for part in found.parts] == [
        "table2", "figures", "beyond", "adversary", "theory", "alternatives", "corruption", "smoothing", "grid",
        "fidelity", "trials",
    ]  # fmt: skip
    assert found.warning == ""
    grid = next(part for part in found.parts if part.id == "grid")
    assert grid.drawings[0].caption.endswith("3 runs a point.")
    assert "figure1_levels" in [table.name for part in found.parts for table in part.tables]
    assert {drawing.name for part in found.parts for drawing in part.drawings} == set(FIGURES) - {"eta2", *REAL_DATA}


def test_a_problem_of_the_users_own_has_no_part_that_needs_the_sigmoid(paper: rs.Dataset) -> None:
    found = contents([made_up(eta2=2.0, params={"problem.name": "Mine"})], paper)
    assert [part.id for part in found.parts] == ["table2", "figures", "beyond", "fidelity", "trials"]


def test_no_trial_on_the_data_is_said(paper: rs.Dataset) -> None:
    with pytest.raises(rs.InvalidInput, match="no trial on the data set 'paper'"):
        contents([made_up(digest="other")], paper)


def test_the_warning_names_the_rows_that_depart() -> None:
    full, small = made_up(range(1, 101), eta2=2.0), made_up((1, 2), eta2=None)
    assert warning([full]) == ""
    assert warning([full, small]) == (
        "Not the paper's protocol in these rows, which are not judged: vanilla SGLD (2 runs instead of 100)."
    )


def test_fidelity_facts(paper: rs.Dataset) -> None:
    found = contents([made_up(range(1, 101), eta2=2.0, params={"sampler.step_size": "0.01"})], paper)
    facts = dict(next(part.facts for part in found.parts if part.id == "fidelity"))
    assert facts["data set"].startswith(f"SHA-256 {published.DATA_DIGEST}, the published data set; 10000 training")
    assert facts["reference value"] == "0.005014; the paper prints 0.005014: equal"
    assert facts["settings of tbl:params"] == "as printed, in every trial of the table"
    # log10(0.01 / 1.4768e-20) = 17.83
    assert "λ_max = 1.48e-20" in facts["step size"]
    assert "more than 17 orders of magnitude" in facts["step size"]


def test_symbols_are_typeset_and_everything_else_escaped() -> None:
    assert symbols("n_es < λ_max & <b>") == "n<sub>es</sub> &lt; λ<sub>max</sub> &amp; &lt;b&gt;"


def test_a_dark_page_gets_lighter_ink() -> None:
    svg = '<?xml version="1.0"?><svg width="1"><path style="fill: #1b1f24; stroke: #3b1f66"/></svg>'
    found = for_both_pages(svg)
    assert '[style*="fill: #1b1f24"]{fill:#e6e9ed!important}' in found
    assert re.search(r'\[style\*="stroke: #3b1f66"\]\{stroke:#[89a-f]', found)
    assert found.count("<style>") == 1
