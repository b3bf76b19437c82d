"""What a program takes at the least: operations by the throughput of their kinds, or bytes by the bandwidth of memory.

Operations are those of the program after it was rewritten to take fewer (`gradix bench --json`, "kinds"); bytes are those of
arguments and results, once. The throughput of what takes no longer than an addition is that of fused multiply-adds in
registers, two operations each (bench/machine.c); that of any other kind is what gradix's own vector functions reach where
there is nothing else to do.
"""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import gradix_command

BENCH = Path(__file__).resolve().parent.parent
CC = os.environ.get("CC", "gcc")
CFLAGS = "-O3 -march=native -mprefer-vector-width=512 -fno-math-errno -fno-trapping-math -fopenmp"

# Arguments at which a function is timed: near 0 unless it wants others.
WHERE = {"log": "2 + t", "log2": "2 + t", "log10": "2 + t", "sqrt": "2 + t", "acosh": "2 + t", "lgamma": "2 + t",
         "digamma": "2 + t", "trigamma": "2 + t", "/": "2 + t", "^": "2 + t"}
OPERATORS = {"/": "1.5 / ({})", "^": "({})^0.7"}
# So many in a measurement: a millisecond or so.
PEAK_SIZES = {"N": 8192, "K": 128}
SIMPLE = "simple"
MACHINE_RUNS = 3


def peaks(binary, dtype, kinds, threads, known):
    """Operations of each kind and bytes in a second, those that are not known measured."""
    found = dict(known)
    for kind in sorted(kinds - found.keys()):
        found[kind] = function(binary, dtype, kind, threads)
    return found


def machine(dtype, threads):
    """The most that several processes reach: two threads may share a core for a while."""
    with tempfile.TemporaryDirectory(prefix="gradix-survey-") as folder:
        program = Path(folder) / "machine"
        real = ["-DREAL_F32"] if dtype == "f32" else []
        subprocess.run([CC, *CFLAGS.split(), *real, str(BENCH / "machine.c"), "-o", str(program), "-lm"], check=True)
        runs = [json.loads(output(program, threads)) for _ in range(MACHINE_RUNS)]
    return {SIMPLE: max(run["gflops"] for run in runs) * 1e9, "bytes": max(run["gbytes"] for run in runs) * 1e9}


def output(program, threads):
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "OMP_PROC_BIND": "true"}
    return subprocess.run([str(program)], check=True, capture_output=True, text=True, env=environment).stdout


def function(binary, dtype, kind, threads):
    argument = WHERE.get(kind, "t").replace("t", "(x[i] + k / 1000) / 2")
    term = OPERATORS.get(kind, kind + "({})").format(argument)
    with tempfile.NamedTemporaryFile("w", suffix=".gx") as file:
        file.write(f"param N, K\ninput x[N]\ny[i] = sum[k in 0..K] {term}\n")
        file.flush()
        row = gradix_command.bench(binary, file.name, PEAK_SIZES, dtype, "native", threads, ("--seconds", "0.05"))["value"]
    return PEAK_SIZES["N"] * PEAK_SIZES["K"] / row["min_s"]


def bound(row, peaks):
    """The seconds that a measured row takes at the least, and what for."""
    parts = {kind: count / peaks[kind] for kind, count in row["kinds"].items()}
    parts["bytes"] = row["bytes"] / peaks["bytes"]
    computing = sum(seconds for kind, seconds in parts.items() if kind != "bytes")
    longest = max((kind for kind in parts if kind != "bytes"), key=parts.get, default="bytes")
    return (computing, longest) if computing > parts["bytes"] else (parts["bytes"], "bytes")


def weight(row, peaks):
    """Its operations, in seconds at their peaks: what ratios of operations are of."""
    return sum(count / peaks[kind] for kind, count in row["kinds"].items())
