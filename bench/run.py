"""The ten workloads side by side: gradix, hand-written C, JAX, PyTorch, Numba and NumPy in one run; with --suite loops the
loops over time.

Every peer has a process of its own, bound to the same cores. For each workload and type all peers are prepared and
warmed up; then the repeats are interleaved, so that a slow moment of the machine falls on all of them; times are
medians. The results of all are compared with those of the reference (NumPy, and for loops JAX) in f64. A full run writes
docs/benchmarks.md, or docs/benchmarks-loops.md, and the plots; with --add it can be made in parts, each with some of the
workloads (--only L1,L2 --add, then --only L3 --add).
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import gradix_command
import report
import steps
import workloads
from peers import PEERS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent

WHATS = ("value", "gradient")
# What is compared, with which reference, and the largest error of an array relative to the largest element of the reference:
# loops add up what their steps round, and some (in their "f32" in loops.json) lose more of it: about three times what C by hand and
# gradix were measured to lose.
SUITES = {
    "workloads": {"peers": ("hand", "jax", "torch", "torch-compile", "numba", "numpy"), "reference": "numpy",
                  "tolerance": {"f64": 1e-11, "f32": 1e-4}},
    "loops": {"peers": ("hand", "jax", "jax-best"), "reference": "jax", "tolerance": {"f64": 2e-12, "f32": 1e-5}},
}
# Long enough for the threads of a runtime to stop waiting actively for more work.
PAUSE = 0.2
# Equally long for all.
SAMPLE_SECONDS = 0.03


def main():
    options = parse_arguments()
    os.sched_setaffinity(0, set(options.cores))
    chosen = [each for each in workloads.load(options.small, options.suite) if not options.only or each.id in options.only]
    run = {
        "machine": describe_machine(options), "threads": options.threads, "repeats": options.repeats,
        "tolerance": SUITES[options.suite]["tolerance"], "suite": options.suite, "reference": options.reference, "small": options.small, "backend": options.backend, "peers": {}, "times": [],
    }
    if report.busy(run["machine"]):
        print(report.busy(run["machine"]))
    peers = start_peers(options, run)
    with tempfile.TemporaryDirectory(prefix="gradix-bench-") as folder:
        for workload in chosen:
            for dtype in (dtype for dtype in options.dtypes if dtype in workload.dtypes):
                measure(workload, dtype, peers, options, Path(folder), run)
    for peer in peers.values():
        peer.close()
    print(report.text(run))
    if options.out:
        run["steps"] = steps.measure(chosen, "f64", options) if options.suite == "loops" else []
        whole = report.merged(report.written(options.suite, options.out), run) if options.add else run
        report.write(whole, options.out, steps.markdown(whole["steps"]) if whole["steps"] else "")
        if whole["steps"]:
            steps.plot(whole["steps"], options.out)
    return 0 if all(entry.get("agrees", True) for entry in run["times"]) else 1


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=lambda text: text.upper().split(","), help="workloads, as in W2,W5")
    parser.add_argument("--suite", choices=SUITES, default="workloads")
    parser.add_argument("--dtype", choices=("f64", "f32"), help="one type instead of both")
    parser.add_argument("--peers", type=lambda text: text.split(","), help=f"some of {','.join(PEERS)}")
    parser.add_argument("--threads", type=int, help="number of cores to use; all by default")
    parser.add_argument("--repeats", type=int, default=11, help="interleaved rounds")
    parser.add_argument("--quick", action="store_true", help="3 rounds")
    parser.add_argument("--small", action="store_true", help="tiny sizes: a test of the harness and of agreement")
    parser.add_argument("--gradix", default=str(ROOT / "target/release/gradix"), help="the binary")
    parser.add_argument("--backend", default="native", help="gradix's backend")
    parser.add_argument("--add", action="store_true",
                        help="add to what an earlier run has written, in place of what it has of the same workloads")
    parser.add_argument("--out", type=Path, help="folder for the table and plots; docs/ for a full run, else none")
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    options.cores = cores[: options.threads or len(cores)]
    options.threads = len(options.cores)
    options.reference = SUITES[options.suite]["reference"]
    options.dtypes = [options.dtype] if options.dtype else ["f64", "f32"]
    options.repeats = 3 if options.quick else options.repeats
    partial = options.only or options.dtype or options.peers or options.quick or options.small
    if not options.out and (options.add or not partial):
        options.out = ROOT / "docs"
    return options


class Worker:
    """A peer's process. `ask` returns its answer, or {"error": …} once it has ended."""

    def __init__(self, peer, options):
        cores = ",".join(map(str, options.cores))
        command = ["taskset", "-c", cores, sys.executable, str(HERE / "worker.py"), peer]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment(peer, options), cwd=HERE, stderr=subprocess.DEVNULL)
        self.greeting = self.answer()

    def ask(self, **request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except OSError:
            return {"error": "the process has ended"}
        return self.answer()

    def answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the process has ended"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def environment(peer, options):
    count = str(options.threads)
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
    found = {**os.environ, **dict.fromkeys(names, count)}
    if peer == "hand":
        found.update(OMP_PROC_BIND="close", OMP_PLACES="cores")
    return found


def start_peers(options, run):
    peers = {}
    for name in SUITES[options.suite]["peers"]:
        title = PEERS[name][0]
        if options.peers and name not in options.peers and name != options.reference:
            continue
        worker = Worker(name, options)
        version = worker.greeting.get("ready")
        run["peers"][name] = {"title": title, "version": version or "not installed"}
        if version:
            peers[name] = worker
        else:
            print(f"{title}: not installed ({worker.greeting.get('missing') or worker.greeting.get('error')})")
            worker.close()
    if options.reference not in peers:
        sys.exit(f"{PEERS[options.reference][0]} is the reference and must be installed: see bench/setup.sh")
    return peers


def measure(workload, dtype, peers, options, folder, run):
    data = folder / "data.npz"
    reference = find_reference(workload, peers[options.reference], options, folder)
    real = np.float64 if dtype == "f64" else np.float32
    np.savez(data, **{name: array.astype(real) for name, array in workloads.data(workload).items()})

    offered = {}
    for name, peer in peers.items():
        answer = peer.ask(do="prepare", workload=workload.id, suite=options.suite, small=options.small, dtype=dtype,
                          data=str(data))
        if answer.get("offered"):
            offered[name] = peer
        elif "error" in answer:
            print(f"{workload.id} {dtype}: {PEERS[name][0]} failed: {answer['error'][:300]}")
    for what in WHATS:
        samples = {name: [] for name in offered}
        own = []
        for _ in range(options.repeats):
            for name, peer in offered.items():
                time.sleep(PAUSE)
                samples[name] += peer.ask(do="time", what=what, seconds=SAMPLE_SECONDS).get("samples", [])
            if what == WHATS[0]:
                time.sleep(PAUSE)
                own += run_gradix(workload, dtype, options)
        for name, peer in offered.items():
            entry = {"workload": workload.id, "dtype": dtype, "what": what, "peer": name}
            if samples[name]:
                entry.update(summary(samples[name]))
            target = folder / f"{name}.npz"
            if "saved" in peer.ask(do="save", what=what, path=str(target)):
                entry.update(agreement(target, reference, workload, workload.results[what], options, dtype))
            run["times"].append(entry)
        if what == WHATS[0]:
            run["times"] += gradix_entries(workload, dtype, own, data, reference, options, folder)
    print(report.progress(run, workload, dtype), flush=True)


def find_reference(workload, peer, options, folder):
    """The results of the reference in f64, by name."""
    data = folder / "data.npz"
    np.savez(data, **workloads.data(workload))
    peer.ask(do="prepare", workload=workload.id, suite=options.suite, small=options.small, dtype="f64", data=str(data))
    found = {}
    for what in WHATS:
        answer = peer.ask(do="save", what=what, path=str(folder / "reference.npz"))
        if "saved" not in answer:
            sys.exit(f"{workload.id}: no reference: {answer}")
        with np.load(folder / "reference.npz") as stored:
            found.update({name: stored[name] for name in stored.files})
    return found


def summary(samples):
    return {"median": statistics.median(samples), "best": min(samples), "samples": len(samples)}


def agreement(target, reference, workload, names, options, dtype):
    with np.load(target) as stored:
        worst = max(relative_error(stored[name], reference[name]) for name in names)
    limit = workload.tolerance.get(dtype, SUITES[options.suite]["tolerance"][dtype])
    return {"error": worst, "agrees": bool(worst <= limit)}


def relative_error(found, expected):
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    return float(np.abs(found - expected).max() / max(np.abs(expected).max(), np.finfo(np.float64).tiny))


def run_gradix(workload, dtype, options):
    try:
        return [gradix_command.bench(options.gradix, workload.file, workload.sizes, dtype, options.backend,
                                     options.threads, extra=("--seconds", str(SAMPLE_SECONDS)))]
    except gradix_command.NotAvailable as error:
        return [{"error": str(error)}]


def gradix_entries(workload, dtype, own, data, reference, options, folder):
    """Entries for the value and the gradient; `own` holds the answers of several runs of `gradix bench`."""
    run_times = [answer for answer in own if "error" not in answer]
    checked = check_gradix(workload, dtype, data, reference, options, folder)
    entries = []
    for what in WHATS:
        entry = {"workload": workload.id, "dtype": dtype, "what": what, "peer": "gradix", **checked}
        if run_times:
            entry["median"] = statistics.median(answer[what]["median_s"] for answer in run_times)
            entry["best"] = min(answer[what]["min_s"] for answer in run_times)
            entry["peak_bytes"] = max(answer[what].get("peak_bytes", 0) for answer in run_times)
        elif own:
            entry["missing"] = own[0]["error"]
        entries.append(entry)
    return entries


def check_gradix(workload, dtype, data, reference, options, folder):
    target = folder / "gradix.npz"
    try:
        gradix_command.evaluate(options.gradix, workload.file, workload.sizes, dtype, options.backend,
                                options.threads, data, target)
    except gradix_command.NotAvailable as error:
        return {"missing": str(error)}
    names = [*workload.results["value"], *workload.results["gradient"]]
    return agreement(target, reference, workload, names, options, dtype)


def describe_machine(options):
    found = {"cpu": platform.processor() or platform.machine(), "cores": options.threads, "system": platform.system(),
             "load": os.getloadavg()[0]}
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            found["cpu"] = line.split(":", 1)[1].strip()
        if line.startswith("flags"):
            found["vectors"] = next((name for name in ("avx512f", "avx2", "sse2") if name in line.split()), "unknown")
    for dtype in ("f64", "f32"):
        found[dtype] = measure_peaks(dtype, options)
    return found


def measure_peaks(dtype, options):
    from peers.with_hand import CC, CFLAGS

    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "machine"
        real = ["-DREAL_F32"] if dtype == "f32" else []
        command = [CC, *CFLAGS.split(), *real, "-fopenmp", str(HERE / "machine.c"), "-o", str(binary), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True)
            done = subprocess.run([binary], check=True, capture_output=True, text=True,
                                  env=environment("hand", options))
        except (OSError, subprocess.CalledProcessError):
            return None
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
