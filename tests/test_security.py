"""Nothing that is loaded runs code; nothing is written, served or shown beyond what was asked for."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

import robust_sgld as rs
from pipelines.config import PROJECT_ROOT, Settings
from pipelines.paths import check_paths
from pipelines.train import train
from robust_sgld.tracking import without_password
from tests.chaos import environment
from tests.test_config import composed
from tests.test_pipeline import small, store_of

SOURCES = sorted([*(PROJECT_ROOT / "src").rglob("*.py"), *(PROJECT_ROOT / "pipelines").rglob("*.py")])


@pytest.mark.parametrize(
    "word", ["pickle.load", "allow_pickle=True", "torch.load", "yaml.load(", "yaml.unsafe", "eval(", "shell=True"]
)
def test_the_code_has_no_door_for_foreign_code(word):
    """`literal_eval(`, `model.eval()` and the like are other words."""
    pattern = re.compile(rf"(?<![\w.]){re.escape(word)}")
    assert [path for path in SOURCES if pattern.search(path.read_text())] == []


def test_a_package_of_ones_own_is_allowed_on_purpose(tmp_path, monkeypatch):
    (tmp_path / "my_models.py").write_text(
        "import robust_sgld as rs\n"
        "class Mine(rs.SigmoidRegression):\n    pass\n"
        "def load() -> rs.Dataset:\n    return rs.paper_dataset(n_train=20, n_test=10)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    words = [f"root={tmp_path}", "problem._target_=my_models.Mine", "data._target_=my_models.load", "~data.q"]
    words += ["~data.n_train", "~data.n_test", "~data.seed"]
    with pytest.raises(rs.InvalidInput, match="must name something below robust_sgld, got 'my_models"):
        Settings.of(composed(*words))
    settings = Settings.of(composed(*words, "allow=[my_models]"))
    assert type(settings.make_sampler(settings.make_data()).problem).__name__ == "Mine"


def test_a_recorded_config_allows_nothing_by_itself():
    from pipelines.rerun import REPEATED

    assert "allow" not in REPEATED


def test_config_files_cannot_point_elsewhere_unless_the_command_line_asks(tmp_path):
    inside = PROJECT_ROOT / "outputs" / "runs" / "x"
    check_paths(composed(), inside, [])
    for key in ("tracking.uri=sqlite:////etc/x.db", "tracking.artifacts=/etc/x", f"root={tmp_path}"):
        cfg, name = composed(key), key.split("=")[0]
        folder = tmp_path / "outputs" / "x" if name == "root" else inside
        with pytest.raises(rs.InvalidInput, match=rf"{name} is set to .* by a config file"):
            check_paths(cfg, folder, [])
        check_paths(cfg, folder, [key])
    with pytest.raises(rs.InvalidInput, match=r"hydra\.run\.dir is set to"):
        check_paths(composed(), Path("/etc"), [])
    check_paths(composed(), Path("/etc"), ["hydra.run.dir=/etc"])


def test_no_password_is_shown_or_recorded(tmp_path):
    assert without_password("http://me:secret@host:5000/x") == "http://me:***@host:5000/x"
    settings = Settings.of(composed("tracking=server", "tracking.uri=postgresql://me:se-cret@h/db", f"root={tmp_path}"))
    assert "se-cret" not in settings.text
    assert "se-cret" not in str(settings.params)
    assert "se-cret" not in str(settings.trial_folder(rs.paper_dataset(n_train=5, n_test=5)))


def test_models_are_stored_without_pickle(tmp_path):
    """As source and JSON: no file of the model is a pickle, and none of the trial."""
    train(small(tmp_path, "sampler=sgld"))
    store_of(tmp_path)
    files = [path for path in (tmp_path / "mlruns" / "artifacts").rglob("*") if path.is_file()]
    assert {"estimate.json", "fitted_model.py", "trial.npz"} <= {path.name for path in files}
    assert not [path for path in files if path.suffix in (".pkl", ".pickle", ".joblib", ".pt", ".pth")]
    assert not [path for path in files if path.read_bytes()[:2] in (b"\x80\x04", b"\x80\x05")]


@pytest.mark.slow
def test_the_ui_listens_on_loopback_and_checks_the_host(tmp_path):
    train(small(tmp_path, "sampler=sgld", "tracking.children=none"))
    call = [sys.executable, "-m", "pipelines.ui", f"root={tmp_path}", "port=0"]
    process = subprocess.Popen(call, cwd=PROJECT_ROOT, env=environment(), stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = ""
        while not address:
            line = process.stdout.readline()
            assert line, "the UI ended"
            address = "".join(re.findall(r"http://127\.0\.0\.1:\d+", line))
        with urllib.request.urlopen(f"{address}/version", timeout=20) as answer:
            assert answer.status == 200
        foreign = urllib.request.Request(
            f"{address}/api/2.0/mlflow/experiments/search?max_results=1", headers={"Host": "evil.example"}
        )
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(foreign, timeout=20)
        assert caught.value.code == 403
        caught.value.close()
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
