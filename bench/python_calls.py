"""What a call from Python costs besides the computation: writes docs/benchmarks-python.md.

Run by `make bench-python`, with the Python of crates/gradix-py/.venv and a release build of the command. The computation itself
is timed by `gradix bench`, which calls the same code on arrays of its own.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import gradix as gx

ROOT = Path(__file__).resolve().parents[1]
GRADIX = ROOT / "target" / "release" / "gradix"

# For each: the program, its sizes, and the shapes of its arguments, of 10 elements or so.
CASES = {
    "twice a vector": ("input x[N]; y[i] = 2 * x[i]", {"N": 10}, [(10,)]),
    "inner product": ("input a[N], b[N]; y = sum[i] a[i] * b[i]", {"N": 10}, [(10,), (10,)]),
    "moving sum": ("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]", {"N": 10, "K": 3}, [(10,), (3,)]),
    "matrix times vector": ("input A[N, M], x[M]; y[i] = sum[j] A[i, j] * x[j]", {"N": 5, "M": 2}, [(5, 2), (2,)]),
}


def shortest(call: Callable[[], object], seconds: float = 0.4) -> float:
    """The time of one call, from the fastest of many rounds."""
    rounds, best = 200, float("inf")
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        for _ in range(rounds):
            call()
        best = min(best, (time.perf_counter() - start) / rounds)
    return best


def bare(text: str, sizes: dict[str, int]) -> dict[str, float]:
    """The times of the computation alone, of the results and of the gradient with them."""
    command = [str(GRADIX), "bench", "-e", text, "--seconds", "0.4", "--json", "--backend", "native", "--quiet"]
    command += [f"--param={name}={size}" for name, size in sizes.items()]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {row["what"]: row["min_s"] for row in map(json.loads, lines)}


def import_time(module: str) -> float:
    """What an import adds to the start of Python, from the fastest of some."""
    def start(statement: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", statement], check=True)
        return time.perf_counter() - begin

    return min(start(f"import {module}") for _ in range(15)) - min(start("pass") for _ in range(15))


def rows() -> list[tuple[str, float, float]]:
    """For each case its name, the time of the computation, and that of the call."""
    found = []
    for name, (text, sizes, shapes) in CASES.items():
        program, random = gx.compile(text), np.random.default_rng(0)
        given = [random.random(shape) for shape in shapes]
        upstream = {f"d{result}": np.ones_like(program(*given)) for result in program.outputs}
        computed = bare(text, sizes)
        found.append((name, computed["value"], shortest(lambda: program(*given))))
        call = shortest(lambda: program.grad(*given, **upstream))
        found.append((f"{name}, gradient", computed["gradient"], call))
    return found


def main() -> None:
    """Measures, prints and writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks-python.md")
    out = parser.parse_args().out
    lines = ["# What a call from Python costs", "", "Made by `make bench-python`. Shortest times on arrays of 10 elements, in microseconds:", ""]
    lines += ["| | the computation | the call | difference |", "| --- | ---: | ---: | ---: |"]
    for name, computed, called in rows():
        lines.append(f"| {name} | {1e6 * computed:.2f} | {1e6 * called:.2f} | {1e6 * (called - computed):.2f} |")
    x = np.arange(10.0)
    plain = shortest(lambda: x * 2)
    lines += ["", f"For comparison, `x * 2` of NumPy takes {1e6 * plain:.2f} µs.", ""]
    imported, numpy_imported = import_time("gradix"), import_time("numpy")
    lines += [f"`import gradix` takes {1e3 * imported:.0f} ms; `import numpy`, which the first call does, {1e3 * numpy_imported:.0f} ms.", ""]
    lines += [f"Python {platform.python_version()}, NumPy {np.__version__}, {platform.system()} on {platform.machine()}.", ""]
    text = "\n".join(lines)
    print(text)
    out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
