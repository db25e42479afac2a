"""The page of promises names tests that exist, and makes no promise without one."""

import ast
import re

from pipelines.config import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "docs" / "promises.md").read_text()
TABLE = PAGE.partition("## Exit codes")[0]
ROWS = [line for line in TABLE.splitlines() if line.startswith("| ") and not line.startswith("| promise")]


def test_every_promise_names_a_test():
    assert len(ROWS) > 10
    assert all("::test_" in row for row in ROWS)


def test_the_named_tests_exist():
    named = re.findall(r"`(tests/\w+\.py)::(test_\w+)`", PAGE)
    assert len(named) >= len(ROWS)
    for file, test in named:
        tree = ast.parse((PROJECT_ROOT / file).read_text())
        assert test in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, f"{file}::{test}"
