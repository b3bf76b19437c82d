"""What two binaries are compared on: the ten workloads at their sizes, and every example at sizes found for it.

An example has no size of its own. From the small sizes that gradix chooses by itself, sizes are doubled, the smallest
first, until the value takes VALUE_SECONDS, the gradient GRADIENT_SECONDS, or the arrays fill ARRAY_BYTES.
"""

import itertools
import json
import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

import gradix_command

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parent / "examples"

# Long beside the time to wake threads up (some 10 µs), short enough for many runs.
VALUE_SECONDS = 2e-3
# The gradient of a product has a term for each factor left out: it may take far longer than the value.
GRADIENT_SECONDS = 20e-3
# Larger than the caches; more would measure the memory once again.
ARRAY_BYTES = 64 << 20
# What a probe is repeated for, after the warm-up.
PROBE_SECONDS = 0.01
# From the smallest sizes it takes about five.
MOST_PROBES = 16
# How much a doubling is taken to add to the operations before any was measured: a matrix product of equal sizes.
FIRST_GROWTH = 4.0


@dataclass(frozen=True)
class Program:
    name: str
    file: Path
    small: dict
    sizes: dict = field(default_factory=dict)

    def with_sizes(self, sizes):
        return replace(self, sizes=sizes)


@dataclass(frozen=True)
class Probe:
    """What was measured at some sizes."""

    sizes: dict
    # What the time and the bytes may still grow by.
    time_left: float
    bytes_left: float
    operations: float
    bytes: float
    # Of the whole process.
    wall_seconds: float

    @property
    def is_large(self):
        return min(self.time_left, self.bytes_left) <= 1


def load(binary, only):
    """All programs or those in `only`, the examples at small sizes yet."""
    entries = json.loads((HERE / "workloads.json").read_text())
    workloads = [Program(entry["id"], HERE / "workloads" / entry["file"], entry["small"], entry["sizes"])
                 for entry in entries]
    files = {file.stem: file for file in sorted(EXAMPLES.glob("*.gx"))}
    examples = [example(name, file, binary) for name, file in files.items() if wanted(name, only)]
    return [each for each in workloads if wanted(each.name, only)] + [each for each in examples if each]


def wanted(name, only):
    return not only or name.lower() in only


def example(name, file, binary):
    """Nothing, with a word why, if this binary can't evaluate it."""
    try:
        return Program(name, file, gradix_command.default_sizes(binary, file))
    except gradix_command.NotAvailable as error:
        print(f"{name}: left out, it fails before: {error}")
        return None


def sized(program, binary, backend, threads):
    """The program at the sizes that it is measured at, and the seconds that a process takes there."""
    def measure(sizes):
        found = probe(program, binary, backend, threads, sizes)
        # One slow moment of the machine must not decide; and the second time everything is compiled.
        return probe(program, binary, backend, threads, sizes) if found.is_large else found

    found = measure(program.sizes) if program.sizes else grow(program.small, measure)
    return program.with_sizes(found.sizes), found.wall_seconds


def grow(small, measure):
    """The first probe that is large, or the last one."""
    last = measure(small)
    growth = bytes_growth = FIRST_GROWTH
    for _ in range(MOST_PROBES):
        if last.is_large or not small:
            break
        doublings = min(steps(last.time_left, growth), steps(last.bytes_left, bytes_growth))
        found = first_accepted(last.sizes, doublings, measure)
        if not found:
            break
        growth = rate(found.operations / last.operations, doublings)
        bytes_growth = rate(found.bytes / last.bytes, doublings)
        last = found
    return last


def steps(factor, growth):
    return max(1, math.floor(math.log(factor) / math.log(growth)))


def rate(factor, doublings):
    """Growth for each doubling; at least what keeps the next step within reason."""
    return max(factor ** (1 / doublings), math.sqrt(2))


def first_accepted(sizes, doublings, measure):
    """The probe after so many doublings; where a condition on sizes forbids it, with few of them left as they are."""
    for count in range(len(sizes)):
        for fixed in itertools.combinations(sorted(sizes, key=sizes.get), count):
            try:
                return measure(doubled(sizes, doublings, fixed))
            except gradix_command.NotAvailable:
                pass
    return None


def doubled(sizes, doublings, fixed=()):
    """The smallest size doubled, again and again.

    >>> doubled({"N": 3, "M": 5}, 3)
    {'N': 12, 'M': 10}
    """
    sizes = dict(sizes)
    for _ in range(doublings):
        name = min((name for name in sizes if name not in fixed), key=sizes.get)
        sizes[name] *= 2
    return sizes


def probe(program, binary, backend, threads, sizes):
    start = time.perf_counter()
    found = gradix_command.bench(binary, program.file, sizes, "f64", backend, threads,
                                 extra=("--seconds", str(PROBE_SECONDS)), timeout=60)
    wall_seconds = time.perf_counter() - start
    value, gradient = found["value"], found["gradient"]
    time_left = min(VALUE_SECONDS / value["min_s"], GRADIENT_SECONDS / gradient["min_s"])
    most = max(each["bytes"] + (each.get("peak_bytes") or 0) for each in found.values())
    operations = max(value["operations"] + gradient["operations"], 1)
    return Probe(sizes, time_left, ARRAY_BYTES / max(most, 1), operations, max(most, 1), wall_seconds)
