"""Tables, figures and one HTML file from finished trials; the only place that draws."""

from robust_sgld.report.build import ReportFiles, build_report
from robust_sgld.report.style import trial_color
from robust_sgld.report.trials import ReportTrial

__all__ = ["ReportFiles", "ReportTrial", "build_report", "trial_color"]
