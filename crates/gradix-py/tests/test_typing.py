"""Type hints are complete and true, and the code is formatted."""

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parents[1]
PACKAGE = HERE / "python" / "gradix"


def run(*command: str) -> None:
    process = subprocess.run([sys.executable, "-m", *command], cwd=HERE, capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr


def test_the_stubs_are_those_of_the_built_module():
    run("mypy.stubtest", "gradix._gradix", "--mypy-config-file", "pyproject.toml")


def test_the_package_is_typed():
    run("mypy", "--config-file", "pyproject.toml", str(PACKAGE))
    assert (PACKAGE / "py.typed").exists()


def test_what_users_write_is_typed(tmp_path):
    script = tmp_path / "use.py"
    script.write_text(
        """
import numpy as np
import gradix as gx

program: gx.Program = gx.compile("input x[N]; y[i] = x[i]^2", backend="vm", threads=2)
y, g = program.value_and_grad(np.ones(3), dy=[1.0, 2.0, 3.0], wrt="x")
first: gx.Arrays = g
t = program.jvp((np.ones(3),), (None,))
text: str = program.derivative("x", mode="forward").text
sizes, shapes = program.shapes((3,))
size: int = sizes["N"]
program.draw().save("graph.svg")
try:
    program([1.0], out=np.empty(1))
except gx.GradixError as error:
    line: int | None = error.line
"""
    )
    run("mypy", "--strict", str(script))


@pytest.mark.parametrize("command", [("check",), ("format", "--check")])
def test_the_code_is_tidy(command):
    run("ruff", *command, "--no-cache", "python", "tests", "device_tests", "examples")
