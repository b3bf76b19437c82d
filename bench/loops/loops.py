"""Loops over time beside C by hand, in one run: the shortest times of interleaved rounds; writes docs/benchmarks-loops.md.

C runs the value on one thread; gradix runs value and gradient on all cores. JAX is not part of it.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import gradix_command  # noqa: E402

FLAGS = ["-O3", "-march=native", "-fopenmp", "-ffp-contract=fast", "-fno-math-errno", "-fno-trapping-math"]
# Name, program, sizes, and whether hand.c has it.
LOOPS = [
    ("prefix_sum", "bench/loops/prefix_sum.gx", {"N": 1_000_000}, True),
    ("causal_kernel", "bench/loops/causal_kernel.gx", {"N": 1_000_000}, True),
    ("selective_scan", "examples/selective_scan.gx", {"N": 4, "T": 512, "C": 64, "S": 16}, True),
    ("reaction_diffusion", "examples/gray_scott_steps.gx", {"H": 256, "W": 256, "T": 100}, True),
    ("lstm", "examples/lstm.gx", {"T": 64, "B": 32, "H": 128, "D": 128}, False),
    ("crf", "examples/crf.gx", {"T": 256, "S": 64}, True),
    ("soft_dtw", "examples/soft_dtw.gx", {"N": 512, "M": 512}, True),
    ("cholesky", "examples/cholesky.gx", {"N": 256}, True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gradix", default=str(ROOT / "target/release/gradix"), help="the binary")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=ROOT / "docs/benchmarks-loops.md")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="gradix-loops-") as folder:
        for dtype in ("f64", "f32"):
            hand = Path(folder) / f"hand-{dtype}"
            real = ["-DREAL_F32"] if dtype == "f32" else []
            subprocess.run(["cc", *FLAGS, *real, "-o", hand, HERE / "hand.c", "-lm"], check=True)
            for name, program, sizes, has_hand in LOOPS:
                rows.append(measure(options, dtype, hand if has_hand else None, name, program, sizes))
                print(rows[-1], flush=True)
    options.out.write_text(text(rows, options))


def measure(options, dtype, hand, name, program, sizes):
    value, gradient, by_hand = [], [], []
    for _ in range(options.rounds):
        found = gradix_command.bench(options.gradix, ROOT / program, sizes, dtype, "native", options.threads)
        value.append(found["value"]["min_s"])
        gradient.append(found["gradient"]["min_s"])
        if hand:
            by_hand.append(float(subprocess.run([hand, name], check=True, capture_output=True, text=True).stdout))
    milliseconds = [f"{min(times) * 1e3:.2f}" if times else "–" for times in (value, gradient, by_hand)]
    ratio = f"{min(by_hand) / min(value):.2f}" if by_hand else "–"
    return [name.replace("_", " "), ", ".join(f"{k} = {n}" for k, n in sizes.items()), dtype, *milliseconds, ratio]


def text(rows, options):
    table = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"""# Loops over time, measured

Milliseconds, the shortest of {options.rounds} interleaved rounds, on {options.threads} threads for gradix and one for C
(`bench/loops/hand.c`, `cc {" ".join(FLAGS)}`; its exponential is that of `bench/hand`, vectorised). The last column is
C's time over that of gradix. The programs are in `bench/loops` and `examples`. Made by `make bench-loops`.

| loop | sizes | type | value | gradient | C, value | C / gradix |
| --- | --- | --- | --- | --- | --- | --- |
{table}
"""


if __name__ == "__main__":
    main()
