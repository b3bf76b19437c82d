"""Every example and every program of the benchmarks: time beside the least that it could be, and beside JAX.

    survey.py                       measures what is not measured yet, and writes docs/survey.md
    survey.py --for 100             stops measuring after that many seconds; the next call goes on
    survey.py --check               holds JAX's results and derivatives to those of gradix, at small sizes
    survey.py --against COMMIT      that commit beside this tree, interleaved (bench/compare.py at the sizes of the survey)

Sizes are those of sizes.json: the value takes some milliseconds, or the arrays have 64 MB. NAME@WORD is the program NAME at
other sizes. Measurements are kept in target/survey.json; --fresh forgets them. The machine should have nothing else to do.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
BENCH, ROOT = HERE.parent, HERE.parent.parent
sys.path.insert(0, str(BENCH))

import bound
import gradix_command
import table

WHATS = ("value", "gradient")
# For value and gradient of a program, with compilation.
PATIENCE_SECONDS = 120
# Beside the largest element, in f64: sums in another order.
TOLERANCE = 1e-9
JAX_PYTHON = BENCH / ".venv/bin/python"


def main():
    options = parse_arguments()
    if options.against:
        return against(options)
    os.sched_setaffinity(0, set(options.cores))
    chosen = programs(options)
    kept = json.loads(options.results.read_text()) if options.results.exists() and not options.fresh else {}
    rows, peaks = kept.setdefault("rows", {}), kept.setdefault("peaks", {})
    kept["date"] = datetime.date.today().isoformat()
    kept["threads"] = len(options.cores)
    end = time.monotonic() + options.seconds_in_all
    with Jax(options.jax) as jax:
        if options.check:
            return check(chosen, jax, options)
        for dtype in options.dtypes:
            # Peaks are the most that was seen in any call.
            known = peaks.setdefault(dtype, {})
            found = bound.machine(dtype, len(options.cores))
            known.update({kind: max(most, known.get(kind, 0)) for kind, most in found.items()})
        for name, (file, sizes) in chosen.items():
            for dtype in options.dtypes:
                if f"{name} {dtype}" in rows or time.monotonic() > end:
                    continue
                row = measure(name, file, sizes, dtype, jax, options)
                kinds = {kind for what in WHATS if what in row for kind in row[what]["kinds"]}
                peaks[dtype] = bound.peaks(options.binary, dtype, kinds, len(options.cores), peaks[dtype])
                rows[f"{name} {dtype}"] = row
                options.results.parent.mkdir(parents=True, exist_ok=True)
                options.results.write_text(json.dumps(kept))
                print(table.line(name, dtype, row, peaks[dtype]), flush=True)
    missing = [f"{name} {dtype}" for name in chosen for dtype in options.dtypes if f"{name} {dtype}" not in rows]
    if missing:
        print(f"{len(missing)} are not measured yet")
    if rows:
        table.write(kept, missing, options.output)
        print(f"written to {options.output}")
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "target/release/gradix"))
    parser.add_argument("--sizes", type=Path, default=HERE / "sizes.json", help="programs and their sizes")
    parser.add_argument("--only", type=lambda text: text.split(","), help="programs, as in rbf,W2")
    parser.add_argument("--dtypes", type=lambda text: text.split(","), default=["f64", "f32"])
    parser.add_argument("--for", dest="seconds_in_all", type=float, default=float("inf"), help="when to stop, in seconds")
    parser.add_argument("--seconds", type=float, default=0.1, help="how long each is repeated")
    parser.add_argument("--threads", type=int, help="how many cores; all by default")
    parser.add_argument("--jax", default=str(JAX_PYTHON), help="a Python with JAX; without one, JAX is left out")
    parser.add_argument("--results", type=Path, default=ROOT / "target/survey.json")
    parser.add_argument("--fresh", action="store_true", help="measure everything again")
    parser.add_argument("--output", type=Path, default=ROOT / "docs/survey.md")
    parser.add_argument("--check", action="store_true", help="compare results instead")
    parser.add_argument("--against", metavar="COMMIT", help="compare with another state instead")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    options.cores = cores[: options.threads or len(cores)]
    return options


def programs(options):
    """File and sizes by name."""
    sizes = json.loads(options.sizes.read_text())
    workloads = {entry["id"]: BENCH / "workloads" / entry["file"]
                 for entry in json.loads((BENCH / "workloads.json").read_text())}
    loops = {file.stem: file for file in (BENCH / "loops").glob("*.gx")}
    examples = {file.stem: file for file in (ROOT / "examples").glob("*.gx")}
    files = {**examples, **loops, **workloads}
    unknown = sorted(files.keys() - {name.split("@")[0] for name in sizes})
    if unknown and options.sizes == HERE / "sizes.json":
        sys.exit(f"sizes.json has no sizes for {', '.join(unknown)}")
    return {name: (files[name.split("@")[0]], sizes[name]) for name in sizes if not options.only or name in options.only}


def measure(name, file, sizes, dtype, jax, options):
    """What gradix and JAX take, or why not."""
    row = {"sizes": sizes}
    bench = lambda: gradix_command.bench(options.binary, file, sizes, dtype, "native", len(options.cores),
                                         ("--seconds", str(options.seconds)), PATIENCE_SECONDS)
    with tempfile.TemporaryDirectory(prefix="gradix-survey-") as cache:
        os.environ["GRADIX_CACHE"] = cache
        try:
            cold, warm = bench(), bench()
        except gradix_command.NotAvailable as error:
            return {**row, "error": str(error)}
    for what in WHATS:
        row[what] = {**warm[what], "min_s": min(cold[what]["min_s"], warm[what]["min_s"])}
        row[what]["cold_s"], row[what]["warm_s"] = cold[what]["first_s"], warm[what]["first_s"]
    row["jax"] = jax.ask(program=name.split("@")[0], sizes=sizes, dtype=dtype, shapes=warm["value"]["inputs"], seconds=options.seconds)
    return row


def check(chosen, jax, options):
    """Tells of each program's results and derivatives in f64 which ones differ."""
    import numpy as np

    wrong = 0
    with tempfile.TemporaryDirectory(prefix="gradix-survey-") as folder:
        data, own, other = (f"{folder}/{name}.npz" for name in ("data", "own", "jax"))
        for name, (file, _) in chosen.items():
            sizes = gradix_command.default_sizes(options.binary, file)
            found = gradix_command.bench(options.binary, file, sizes, "f64", "vm", 1, ("--seconds", "0"))
            random = np.random.default_rng(1)
            arrays = {array: random.uniform(-1, 1, shape) for array, shape in found["value"]["inputs"].items()}
            seeds = {"d" + result: np.ones(shape) for result, shape in found["value"]["results"].items()}
            np.savez(data, **arrays)
            answer = jax.ask(program=name.split("@")[0], sizes=sizes, data=data, out=other)
            np.savez(data, **arrays, **seeds)
            gradix_command.evaluate(options.binary, file, sizes, "f64", "vm", 1, data, own)
            found = answer.get("error") or differences(dict(np.load(own)), dict(np.load(other)))
            wrong += bool(found)
            print(f"{name}: {found or 'the same'}", flush=True)
    print(f"{wrong} differ")
    return 1 if wrong else 0


def differences(own, other):
    """What JAX has not or otherwise."""
    if len(other) == len(own):
        # The workloads' results have no names in JAX.
        other = {name if name in own else next(iter(own.keys() - other.keys())): array for name, array in other.items()}

    def is_other(name, array):
        found = other.get(name)
        return found is None or found.shape != array.shape or abs(array - found).max(initial=0) > TOLERANCE * abs(array).max(initial=1)

    return ", ".join(name for name, array in own.items() if is_other(name, array))


class Jax:
    """A process that runs JAX, if there is one."""

    def __init__(self, python):
        self.process = None
        if os.access(python, os.X_OK):
            self.process = subprocess.Popen([python, str(HERE / "with_jax.py")], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process:
            self.process.stdin.close()
            self.process.wait()

    def ask(self, **request):
        if not self.process:
            return {"error": "JAX is not installed"}
        print(json.dumps(request), file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline() or '{"error": "JAX has ended"}')


def against(options):
    """Builds a commit in a worktree below target/, and compares."""
    commit = subprocess.run(["git", "rev-parse", "--short", options.against], cwd=ROOT, check=True,
                            capture_output=True, text=True).stdout.strip()
    tree = ROOT / "target/against" / commit
    if not tree.exists():
        subprocess.run(["git", "worktree", "add", "--detach", str(tree), commit], cwd=ROOT, check=True)
    subprocess.run(["cargo", "build", "--release", "-p", "gradix-cli"], cwd=tree, check=True)
    command = [sys.executable, str(BENCH / "compare.py"), "--before", str(tree / "target/release/gradix"),
               "--after", options.binary, "--backends", "native", "--dtypes", ",".join(options.dtypes),
               "--sizes", str(HERE / "sizes.json"), "--output", str(ROOT / "target/survey-against.md")]
    if options.only:
        command += ["--only", ",".join(options.only)]
    return subprocess.run(command).returncode


if __name__ == "__main__":
    sys.exit(main())
