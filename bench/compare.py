"""Two gradix binaries side by side, before and after a change, interleaved in one run.

Without an option: the ten workloads at their sizes and every example at sizes at which its value takes milliseconds
(see programs.py), value and gradient; the shortest of several runs of `gradix bench`, before and after by turns, so
that a slow moment of the machine falls on both. What came out slower gets further rounds.

With --first: what a process takes from its start to the first results and derivatives at small sizes; cold, with
nothing compiled before, and warm, with everything compiled.

With --lines: how long the code of the compiler's back half is in two source trees, and its functions.

Ratios are before / after: above 1, after is faster, or shorter. The machine should have nothing else to do.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import compare_report
import gradix_command
import programs
import rust_lines
from compare_report import SIDES, WHATS

ROOT = Path(__file__).resolve().parent.parent

# How long each is repeated in a process; `gradix bench` warms up for 100 ms besides.
SAMPLE_SECONDS = 0.02
# What came out slower than this ratio gets further rounds; most of it was chance.
SECOND_LOOK_RATIO = 0.95
SECOND_LOOK_ROUNDS = 3
SECOND_LOOKS_MOST = 40
# Only native code is compiled into the cache.
STATES = {"native": ("cold", "warm"), "vm": ("warm",)}
# Compiling a value and a gradient in C, roughly; for the estimate alone.
COMPILE_SECONDS = 1.0


@dataclass
class Case:
    """One program on one backend in one type, and the times of both sides."""

    program: programs.Program
    backend: str
    dtype: str
    # By side and what: the shortest of each process.
    seconds: dict = field(default_factory=lambda: {(side, what): [] for side in SIDES for what in WHATS})
    # By side: from the program to the first results of value and gradient, for each process.
    first: dict = field(default_factory=lambda: {side: [] for side in SIDES})
    failures: dict = field(default_factory=dict)

    def ratio(self, what):
        """Before / after, if both could be measured."""
        before, after = (self.seconds[side, what] for side in SIDES)
        return min(before) / min(after) if before and after else None

    @property
    def worst(self):
        return min((ratio for ratio in map(self.ratio, WHATS) if ratio), default=1.0)


def main():
    options = parse_arguments()
    if options.lines:
        text = compare_report.lines(*(rust_lines.count(tree) for tree in options.lines))
        deliver(text, text, options)
        return 0
    os.sched_setaffinity(0, set(options.cores))
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory(prefix="gradix-compare-") as folder:
        os.environ["GRADIX_CACHE"] = folder + "/sizes"
        read_binaries(options)
        chosen = programs.load(options.binaries["before"], options.only)
        if not chosen:
            sys.exit("no such program")
        compare = compare_first if options.first else compare_times
        return compare(chosen, Path(folder), load, options)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", help="a binary")
    parser.add_argument("--after", default=str(ROOT / "target/release/gradix"), help="a binary; this tree's by default")
    parser.add_argument("--first", action="store_true", help="time to the first result instead")
    parser.add_argument("--lines", nargs=2, type=Path, metavar=("BEFORE", "AFTER"), help="lines of two source trees")
    parser.add_argument("--only", type=words, help="programs, as in w2,matmul")
    parser.add_argument("--backends", type=words, default=["native", "vm"], help="some of native,vm")
    parser.add_argument("--dtypes", type=words, help="some of f64,f32; both by default, with --first f64")
    parser.add_argument("--rounds", type=int, help="interleaved rounds: 2 by default, with --first 4")
    parser.add_argument("--quick", action="store_true", help="one round, and no second look at what was slower")
    parser.add_argument("--threads", type=int, help="number of cores to use; all by default")
    parser.add_argument("--sizes", type=Path, help="where sizes of examples are kept: read if it exists, else written")
    parser.add_argument("--output", type=Path, help="a file for the whole table, in Markdown")
    options = parser.parse_args()
    if not options.lines and not options.before:
        parser.error("--before names the binary to compare with")
    options.binaries = {"before": options.before, "after": options.after}
    for binary in [] if options.lines else options.binaries.values():
        if not os.access(binary, os.X_OK):
            parser.error(f"there is no binary '{binary}'")
    if not set(options.backends) <= STATES.keys():
        parser.error(f"--backends takes some of {','.join(STATES)}")
    cores = sorted(os.sched_getaffinity(0))
    options.cores = cores[: options.threads or len(cores)]
    options.threads = len(options.cores)
    options.dtypes = options.dtypes or (["f64"] if options.first else ["f64", "f32"])
    options.rounds = 1 if options.quick else options.rounds or (4 if options.first else 2)
    return options


def words(text):
    return text.lower().split(",")


def read_binaries(options):
    """Reads both from the disk, so that the first one measured doesn't have to."""
    for binary in options.binaries.values():
        try:
            gradix_command.run([binary, "--version"], timeout=60)
        except gradix_command.NotAvailable as error:
            sys.exit(f"'{binary}' does not run: {error}")


def compare_times(chosen, folder, load, options):
    chosen = find_sizes(chosen, options)
    cases = [Case(program, backend, dtype) for program, _ in chosen for backend in options.backends
             for dtype in options.dtypes]
    print(f"{len(cases)} cases, about {estimate(chosen, options) / 60:.0f} min", flush=True)
    start = time.perf_counter()
    try:
        for number, case in enumerate(cases, 1):
            measure(case, folder, options.rounds, options)
            print(compare_report.progress(case, number, len(cases), time.perf_counter() - start), flush=True)
        slower = sorted((case for case in cases if case.worst < SECOND_LOOK_RATIO), key=lambda case: case.worst)
        for case in [] if options.quick else slower[:SECOND_LOOKS_MOST]:
            measure(case, folder, SECOND_LOOK_ROUNDS, options)
    except KeyboardInterrupt:
        print("stopped: this is what was measured until now")
    deliver(compare_report.times_summary(cases, load), compare_report.times(cases, load, options), options)
    return 1 if any("after" in case.failures and "before" not in case.failures for case in cases) else 0


def find_sizes(chosen, options):
    """Every program at its sizes, and the seconds that a process takes there; without what fails before."""
    kept = json.loads(options.sizes.read_text()) if options.sizes and options.sizes.exists() else {}
    found = []
    for program in chosen:
        program = program.with_sizes(program.sizes or kept.get(program.name, {}))
        try:
            found.append(programs.sized(program, options.binaries["before"], options.backends[0], options.threads))
            print(f"{program.name}: {compare_report.sizes(found[-1][0])}", flush=True)
        except gradix_command.NotAvailable as error:
            print(f"{program.name}: left out, it fails before: {error}")
    if options.sizes and not options.sizes.exists():
        options.sizes.write_text(json.dumps({program.name: program.sizes for program, _ in found}, indent=1) + "\n")
    if not found:
        sys.exit("nothing can be measured before")
    return found


def estimate(chosen, options):
    """Seconds of the whole run, from what a process took when sizes were looked for."""
    pairs = len(options.dtypes) * len(SIDES)
    processes = pairs * len(options.backends) * options.rounds * sum(seconds for _, seconds in chosen)
    compilations = pairs * len(chosen) * ("native" in options.backends)
    looks = 0 if options.quick else min(SECOND_LOOKS_MOST, len(chosen)) * SECOND_LOOK_ROUNDS * len(SIDES)
    average = statistics.mean(seconds for _, seconds in chosen)
    return processes + compilations * COMPILE_SECONDS + looks * average


def measure(case, folder, rounds, options):
    """Runs both binaries by turns."""
    for number in range(rounds):
        for side in turns(number):
            os.environ["GRADIX_CACHE"] = str(folder / side)
            try:
                found = gradix_command.bench(
                    options.binaries[side], case.program.file, case.program.sizes, case.dtype, case.backend,
                    options.threads, extra=("--seconds", str(SAMPLE_SECONDS)))
            except gradix_command.NotAvailable as error:
                case.failures[side] = str(error)
                continue
            case.first[side].append(sum(found[what]["first_s"] for what in WHATS))
            for what in WHATS:
                case.seconds[side, what].append(found[what]["min_s"])


def turns(number):
    """Who goes first changes from round to round: the first one finds other caches and clocks than the second."""
    return SIDES if number % 2 == 0 else SIDES[::-1]


def compare_first(chosen, folder, load, options):
    """The seconds of whole processes: {"program", "backend", "dtype", "cold" and "warm": by side}."""
    rows = []
    for number, program in enumerate(chosen, 1):
        for backend in options.backends:
            for dtype in options.dtypes:
                rows.append(measure_first(program, backend, dtype, folder, options))
        print(f"{number} of {len(chosen)}: {program.name}", flush=True)
    deliver(compare_report.first_summary(rows, load), compare_report.first(rows, load, options), options)
    return 1 if any("after" in row["failures"] and "before" not in row["failures"] for row in rows) else 0


def measure_first(program, backend, dtype, folder, options):
    row = {"program": program.name, "backend": backend, "dtype": dtype, "failures": {},
           "cold": {side: [] for side in SIDES}, "warm": {side: [] for side in SIDES}}
    for number in range(options.rounds):
        for side in turns(number):
            command = [options.binaries[side], "eval", str(program.file), *gradix_command.params(program.small),
                       "--grad", "--random", "1", "--backend", backend, "--dtype", dtype,
                       "--threads", str(options.threads), "-o", str(folder / "results.npz"), "--quiet"]
            with tempfile.TemporaryDirectory(dir=folder) as cache:
                os.environ["GRADIX_CACHE"] = cache
                try:
                    for state in STATES[backend]:
                        row[state][side].append(wall_seconds(command))
                    # Without a compiler the vm steps in.
                    if backend == "native" and not os.listdir(cache):
                        row["failures"][side] = "nothing was compiled"
                except gradix_command.NotAvailable as error:
                    row["failures"][side] = str(error)
    return row


def wall_seconds(command):
    start = time.perf_counter()
    gradix_command.run(command, timeout=300)
    return time.perf_counter() - start


def deliver(summary, whole, options):
    print(summary)
    if options.output:
        options.output.parent.mkdir(parents=True, exist_ok=True)
        options.output.write_text(whole)
        print(f"\nwritten to {options.output}")


if __name__ == "__main__":
    sys.exit(main())
