"""One peer in a process of its own: reads requests as lines of JSON, answers each with one.

    {"do": "prepare", "workload": "W1", "suite": "workloads", "small": false, "dtype": "f64", "data": "w1.npz"}
    {"do": "time", "what": "gradient", "seconds": 0.01}
    {"do": "save", "what": "gradient", "path": "out.npz"}

A peer that is not installed answers {"missing": …} once and ends; a request that fails answers {"error": …}.
"""

import importlib
import json
import os
import sys
import time

import numpy as np

import workloads
from peers import PEERS

WARM_UP_CALLS = 3
LONG_CALL = 0.05


def main(peer):
    # Answers go to the original standard output; whatever a peer prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields):
        print(json.dumps(fields), file=answers, flush=True)

    try:
        module = importlib.import_module(PEERS[peer][1])
    except (ImportError, OSError, ValueError) as error:
        return answer(missing=str(error))
    answer(ready=version(peer))
    session = Session(module)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer(**getattr(session, request.pop("do"))(**request))
        except Exception as error:  # one workload's failure must not end the others
            answer(error=f"{type(error).__name__}: {error}")


def version(peer):
    package = peer.split("-")[0]
    if package == "hand":
        from peers.with_hand import CC, CFLAGS

        return f"{CC} {CFLAGS}"
    return importlib.import_module(package).__version__


class Session:
    def __init__(self, module):
        self.module = module
        self.calls = {}
        self.last = {}

    def prepare(self, workload, suite, small, dtype, data):
        chosen = next(each for each in workloads.load(small, suite) if each.id == workload)
        real = {"f64": np.float64, "f32": np.float32}[dtype]
        with np.load(data) as stored:
            arrays = {name: stored[name].astype(real) for name in stored.files}
        self.workload = chosen
        self.calls = self.module.prepare(chosen, arrays)
        if self.calls is None:
            return {"offered": False}
        for what, call in self.calls.items():
            for _ in range(WARM_UP_CALLS):
                self.last[what] = timed(call)
        return {"offered": True}

    def time(self, what, seconds):
        """Samples that fill about `seconds`, at least one, after a call that brings caches and threads back."""
        call = self.calls[what]
        if self.last[what] < LONG_CALL:
            call()
        samples = [timed(call)]
        while sum(samples) < seconds:
            samples.append(timed(call))
        self.last[what] = min(samples)
        return {"samples": samples}

    def save(self, what, path):
        results = [np.asarray(result) for result in self.calls[what]()]
        np.savez(path, **dict(zip(self.workload.results[what], results)))
        return {"saved": path}


def timed(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    main(sys.argv[1])
