"""How time grows: value and gradient against the size of the problem, compile time against the number of definitions.

For W1, W2, W4 and W8 the number of terms is varied over two decades, `gradix bench` measures, and a line through the
logarithms gives the exponent: 1 is time in proportion to the terms. Then chains of up to 500 definitions are
derived and compiled. Writes docs/growth.svg and docs/growth.md.
"""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import drawing
import gradix_command
import workloads

ROOT = Path(__file__).resolve().parent.parent
STEPS = 9
CHAINS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
REPEATS = 3

# For a scale s from 0.1 to 10: the sizes, and how many terms the innermost sum has in all.
FAMILIES = {
    "W1": (lambda s: {"I": int(256 * s**0.5), "J": int(256 * s**0.5), "K": 64}, lambda I, J, K: I * J * K),
    "W2": (lambda s: {"N": int(1024 * s**0.5), "M": int(1024 * s**0.5), "D": 8}, lambda N, M, D: N * M * D),
    "W4": (lambda s: {"N": 4, "O": 32, "C": 32, "H": int(32 * s**0.5), "V": int(32 * s**0.5)},
           lambda N, O, C, H, V: 9 * N * O * C * H * V),
    "W8": (lambda s: {"N": int(2048 * s**0.5)}, lambda N: N * (N + 1) // 2),
}


def main():
    options = parse_arguments()
    grown = [family for name in FAMILIES for family in measure_family(name, options)]
    chains = {mode: measure_chains(command, options) for mode, command in chain_commands(options).items()}
    if not grown and not any(chains.values()):
        sys.exit("nothing could be measured")
    print(markdown(grown, chains, options))
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "growth.md").write_text(markdown(grown, chains, options))
    plot(grown, chains, options.out)


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradix", default=str(ROOT / "target/release/gradix"), help="the binary")
    parser.add_argument("--backend", default="native")
    parser.add_argument("--dtype", default="f64", choices=("f64", "f32"))
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--out", type=Path, default=ROOT / "docs")
    return parser.parse_args()


def measure_family(name, options):
    """For the value and the gradient: {"workload", "what", "terms", "seconds", "exponent"}."""
    workload = next(each for each in workloads.load() if each.id == name)
    sizes_of, terms_of = FAMILIES[name]
    terms, seconds = [], {"value": [], "gradient": []}
    for scale in np.logspace(-1, 1, STEPS):
        sizes = sizes_of(scale)
        try:
            found = gradix_command.bench(options.gradix, workload.file, sizes, options.dtype, options.backend,
                                         options.threads)
        except gradix_command.NotAvailable as error:
            print(f"{name}: not available: {error}")
            return []
        terms.append(terms_of(**sizes))
        for what in seconds:
            seconds[what].append(found[what]["median_s"])
    return [{"workload": f"{name} {workload.name}", "what": what, "terms": terms, "seconds": times,
             "exponent": exponent(terms, times)} for what, times in seconds.items()]


def exponent(sizes, seconds):
    """The slope of the least-squares line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def chain_commands(options):
    """What is timed for a chain: the derivation alone, and an evaluation of the gradient at two sizes: of few elements,
    where everything becomes plain loops, and of many, where every step of the compiler has its part.
    """
    def evaluate(size, backend):
        return ["eval", "--grad", "--random", "1", "--param", f"N={size}", "--backend", backend, "--quiet"]

    return {"derive": ["derive"],
            f"compile and run, N = 8, {options.backend}": evaluate(8, options.backend),
            "compile and run, N = 4096, vm": evaluate(4096, "vm")}


def measure_chains(command, options):
    """Seconds for each length of CHAINS, as far as it works."""
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "chain.gx"
        for length in CHAINS:
            file.write_text(chain(length))
            try:
                seconds.append(min(wall_time([options.gradix, command[0], str(file), *command[1:]])
                                   for _ in range(REPEATS)))
            except gradix_command.NotAvailable as error:
                print(f"chain of {length}: {' '.join(command)}: not available: {error}")
                break
    return seconds


def chain(length):
    """Definitions that each use the one before and one of the arguments, in turns by element, shifted and summed."""
    bodies = (
        "tanh({last}[i] * a[i])",
        "{last}[clamp(i - 1)] + exp(-{last}[i]^2) * b[i]",
        "{last}[i] - (sum[j] {last}[j] * a[j]) / N",
    )
    lines = ["param N >= 1", "input x0[N], a[N], b[N]"]
    for step in range(1, length + 1):
        lines.append(f"x{step}[i in 0..N] = " + bodies[step % len(bodies)].format(last=f"x{step - 1}"))
    return "\n".join([*lines, f"loss = sum[i] x{length}[i]", "output loss", ""])


def wall_time(command):
    """Seconds with nothing compiled before."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GRADIX_CACHE"] = cache
        start = time.perf_counter()
        gradix_command.run(command, timeout=300)
        seconds = time.perf_counter() - start
    del os.environ["GRADIX_CACHE"]
    return seconds


def markdown(grown, chains, options):
    lines = ["# Growth", "", f"Measured in {options.dtype} on {options.threads} threads by `bench/growth.py`.", "",
             "![Time against size](growth.svg)", ""]
    if grown:
        lines += ["Time is in proportion to a power of the number of terms; the number of terms varies by 100:", "",
                  "| | | exponent | time per 10^6 terms, largest size |", "| --- | --- | ---: | ---: |"]
        lines += [f"| {each['workload']} | {each['what']} | {each['exponent']:.2f} | "
                  f"{1e12 * each['seconds'][-1] / each['terms'][-1]:.1f} µs |" for each in grown]
    else:
        lines.append("Time against size: not available.")
    lines += ["", "Seconds for a chain of definitions:", "",
              "| definitions | " + " | ".join(map(str, CHAINS)) + " | exponent from 50 on |",
              "| --- |" + " ---: |" * (len(CHAINS) + 1)]
    for mode, seconds in chains.items():
        cells = [f"{value:.3f}" for value in seconds] + ["–"] * (len(CHAINS) - len(seconds))
        large = [(size, value) for size, value in zip(CHAINS, seconds) if size >= 50]
        slope = f"{exponent(*zip(*large)):.2f}" if len(large) > 1 else "–"
        lines.append(f"| {mode} | " + " | ".join(cells) + f" | {slope} |")
    return "\n".join(lines) + "\n"


def plot(grown, chains, folder):
    figure, (left, right) = drawing.pyplot().subplots(1, 2, figsize=(12, 4.6))
    colours = dict(zip(dict.fromkeys(each["workload"] for each in grown), ("#d1495b", "#2e6f95", "#e8a33d", "#5b8e7d")))
    for each in grown:
        style = dict(marker="o", linestyle="-") if each["what"] == "gradient" else dict(marker="s", linestyle=":")
        left.plot(each["terms"], [1e3 * value for value in each["seconds"]], **style, markersize=4,
                  color=colours[each["workload"]], label=f"{each['workload']}, {each['what']}: {each['exponent']:.2f}")
    left.set(xlabel="terms", ylabel="milliseconds", title="time against size, with exponents")
    if not grown:
        left.text(0.5, 0.5, "not available", ha="center", va="center", transform=left.transAxes)
    for (mode, seconds), colour in zip(chains.items(), ("#222222", "#d1495b", "#2e6f95")):
        if seconds:
            right.plot(CHAINS[: len(seconds)], seconds, marker="o", markersize=4, color=colour, label=mode)
    right.set(xlabel="definitions", ylabel="seconds", title="derivation and compilation")
    for axis in (left, right):
        drawing.logarithmic(axis)
    drawing.save(figure, folder / "growth.svg")


if __name__ == "__main__":
    main()
