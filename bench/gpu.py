"""The ten workloads on a GPU, at sizes for a large one: gradix beside PyTorch, eager and compiled, in single precision.

Times are medians by the device's events; PyTorch multiplies in full precision, as gradix does. Nothing is installed: it takes the
PyTorch that is there, and leaves it out where there is none.

    python3 bench/gpu.py [--binary target/release/gradix] [--dtype f32] [--only W1,W6] [--no-torch]
"""

import argparse
import statistics
from pathlib import Path

import gradix_command
import workloads

ROOT = Path(__file__).resolve().parent.parent
WHATS = ("value", "gradient")
CALLS = 10


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default=ROOT / "target/release/gradix", type=Path)
    parser.add_argument("--dtype", default="f32", choices=["f32", "f64"])
    parser.add_argument("--only", default="", help="workloads, by commas")
    parser.add_argument("--no-torch", action="store_true")
    options = parser.parse_args()
    only = set(filter(None, options.only.split(",")))
    print("| | gradix value | gradient | memory, MiB | PyTorch value | gradient | compiled value | gradient |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for workload in workloads.load(sizes="gpu"):
        if only and workload.id not in only:
            continue
        row = with_gradix(options, workload)
        row += ["–"] * 4 if options.no_torch else with_torch(options.dtype, workload)
        print(f"| {workload.id} {workload.name} | {' | '.join(row)} |", flush=True)


def with_gradix(options, workload):
    try:
        found = gradix_command.bench(options.binary, workload.file, workload.sizes, options.dtype, "cuda", 1,
                                     ("--seconds", "0.2"))
    except gradix_command.NotAvailable as error:
        return [str(error), "", ""]
    memory = max(found[what].get("peak_bytes") or 0 for what in WHATS)
    return [milliseconds(found[what]["median_s"]) for what in WHATS] + [f"{memory / 2**20:.0f}"]


def with_torch(dtype, workload):
    """Eager and compiled, value and gradient; a failure is told by its name."""
    try:
        import torch
        from peers import with_torch as peer
    except ImportError as error:
        return [str(error)] + [""] * 3
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    number = {"f32": torch.float32, "f64": torch.float64}[dtype]
    arrays = {name: torch.tensor(array, dtype=number, device="cuda") for name, array in workloads.data(workload).items()}
    row = []
    for transform in (lambda function: function, lambda function: torch.compile(function, dynamic=False)):
        torch._dynamo.reset()
        for call in peer.calls(workload, arrays, transform).values():
            try:
                row.append(milliseconds(timed(torch, call)))
            except Exception as error:  # one failure, out of memory mostly, must not end the others
                row.append(type(error).__name__)
            torch.cuda.empty_cache()
    return row


def timed(torch, call):
    """The median seconds of some calls, after two that don't count."""
    seconds = []
    for number in range(CALLS + 2):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        end.record()
        torch.cuda.synchronize()
        if number >= 2:
            seconds.append(start.elapsed_time(end) / 1000)
    return statistics.median(seconds)


def milliseconds(seconds):
    return f"{seconds * 1000:.3g}"


if __name__ == "__main__":
    main()
