"""The tutorial and the worked examples run, and show their plots."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SCRIPTS = sorted(path.name for path in EXAMPLES.glob("*.py"))


def test_there_are_three_worked_examples():
    assert SCRIPTS == ["conv_layer_torch.py", "gaussian_process.py", "wave_adjoint.py"]


@pytest.mark.parametrize("script", SCRIPTS)
def test_worked_examples(script, tmp_path):
    if "torch" in script and find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    command = [sys.executable, EXAMPLES / script, tmp_path]
    process = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "MPLBACKEND": "Agg"})
    assert process.returncode == 0, process.stdout + process.stderr
    (plot,) = tmp_path.glob("*.png")
    assert plot.read_bytes().startswith(b"\x89PNG") and plot.stat().st_size > 10_000


def test_the_tutorial():
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(EXAMPLES / "tutorial.ipynb", as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    kinds = {kind for output in shown for kind in output.get("data", {})}
    assert {"image/png", "text/latex", "image/svg+xml"} <= kinds
