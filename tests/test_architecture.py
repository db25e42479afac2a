"""The house plan, held by walking the imports: dependencies point one way, and each heavy library has one door."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = [
    {"checks", "files", "kernels", "blas"},
    {"rng", "grid", "npz", "problems", "diagnostics", "scaling", "tables", "parallel"},
    {"data", "dro", "shards"},
    {"tabular", "result"},
    {"engines", "losses"},
    {"dual"},
    {"samplers"},
    {"trial", "selection"},
    {"theory", "estimators"},
    {"tracking", "report"},
]
"""Modules and packages of `robust_sgld` from the ground up: each imports from lower layers and from itself."""

DOORS = {
    "hydra": "pipelines.",
    "omegaconf": "pipelines.",
    "mlflow": "robust_sgld.tracking",
    "matplotlib": "robust_sgld.report",
}
"""The only place that may import a library."""


def modules() -> dict[str, Path]:
    """Dotted name → file, of the library and of the pipelines."""
    found = {}
    for top in (ROOT / "src", ROOT):
        for path in sorted((top / ("robust_sgld" if top.name == "src" else "pipelines")).rglob("*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(name: str) -> set[str]:
    """What a module imports, also inside functions; a module imported from a package counts as that module."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively, line {node.lineno}"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {module if module in MODULES else str(node.module) for module in whole}
    return found


IMPORTS = {name: imports(name) for name in MODULES}


def layer(module: str) -> int:
    unit = module.split(".")[1]
    for height, units in enumerate(LAYERS):
        if unit in units:
            return height
    pytest.fail(f"robust_sgld.{unit} has no layer: give it one in LAYERS, above all that it imports.")


def test_the_walk_sees_the_imports():
    assert "robust_sgld.losses" in IMPORTS["robust_sgld.trial"]
    assert "robust_sgld.kernels.sigmoid_chain" in IMPORTS["robust_sgld.engines.pruned"]
    assert "torch" in IMPORTS["robust_sgld.losses"]  # imported inside a function
    assert "hydra" in IMPORTS["pipelines.stage"]


def test_dependencies_point_one_way():
    wrong = []
    for name in MODULES:
        if not name.startswith("robust_sgld."):
            continue
        for target in IMPORTS[name]:
            inside = target.startswith("robust_sgld.") and target.split(".")[1] != name.split(".")[1]
            if inside and layer(target) >= layer(name):
                wrong.append(f"{name} imports {target}")
    assert wrong == []


def test_the_library_imports_neither_its_own_front_nor_the_pipelines():
    for name in MODULES:
        if name.startswith("robust_sgld"):
            assert not {t for t in IMPORTS[name] if t == "robust_sgld" or t.startswith("pipelines")}, name


def test_there_are_no_cycles():
    graph = {name: {t for t in IMPORTS[name] if t in MODULES and t != name} for name in MODULES}
    graphlib.TopologicalSorter(graph).prepare()  # raises CycleError, which names the cycle


@pytest.mark.parametrize(("library", "door"), DOORS.items())
def test_a_heavy_library_has_one_door(library, door):
    users = {n for n in MODULES if any(t == library or t.startswith(f"{library}.") for t in IMPORTS[n])}
    assert {name for name in users if not name.startswith(door)} == set()


def test_what_only_tests_need_stays_in_tests():
    for name in MODULES:
        assert not {t.split(".")[0] for t in IMPORTS[name]} & {"arviz", "hypothesis", "mpmath", "pytest", "tests"}, name


def test_there_is_no_drawer_for_leftovers():
    for name in MODULES:
        assert not set(name.split(".")) & {"utils", "util", "helpers", "helper", "common", "misc", "tools"}, name


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("", ["torch", "mlflow", "hydra", "omegaconf", "matplotlib", "sklearn", "joblib", "scipy.optimize"]),
        (
            "rs.run_trial(rs.RobustSGLD(rs.SigmoidRegression(4), rs.DRO()), rs.paper_dataset(), runs=1, n_iter=2)",
            ["torch"],
        ),
    ],
    ids=["import", "a trial of the published problem"],
)
def test_nothing_heavy_is_loaded_before_it_is_needed(code, heavy):
    """torch alone takes a second: longer than the rest of the start and a short trial together."""
    code = f"import sys, robust_sgld as rs\n{code}\nprint(sorted(set({heavy!r}) & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
