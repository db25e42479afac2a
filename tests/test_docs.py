"""The worked example of the docs, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipelines.config import CONFIG_DIR, Settings
from tests.test_config import composed

PAGE = Path(__file__).parents[1] / "docs" / "your-data.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("docs")


def test_the_python_of_the_page_runs_from_top_to_bottom(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    found = blocks("python")
    assert len(found) == 4
    names: dict[str, object] = {}
    for number, code in enumerate(found):
        exec(compile(code, f"{PAGE.name}, block {number + 1}", "exec"), names)
    assert "least squares" in capsys.readouterr().out
    assert names["best"] in (0.01, 0.1, 1.0)


def test_the_command_of_the_page_builds_its_sampler(folder, monkeypatch):
    """After the blocks above, whose file it is about."""
    monkeypatch.chdir(folder)
    exec(compile(blocks("python")[0], PAGE.name, "exec"), {})
    (command,) = blocks("bash")
    words = command.split()
    assert words[:3] == ["python", "-m", "pipelines.train"]
    settings = Settings.of(composed(*words[3:], f"root={folder}"))
    sampler = settings.make_sampler(settings.make_data())
    assert sampler.problem.link.name == "identity"


def test_what_the_page_names_exists():
    text = PAGE.read_text(encoding="utf-8")
    for experiment in re.findall(r"\+experiment=(\w+)", text):
        assert (CONFIG_DIR / "experiment" / f"{experiment}.yaml").exists()
    for stage in re.findall(r"pipelines\.(\w+)", text):
        assert (CONFIG_DIR.parent / "pipelines" / f"{stage}.py").exists()
