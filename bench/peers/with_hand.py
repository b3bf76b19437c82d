"""Hand-written C: hand/*.c, compiled for the type and the sizes of a workload, called by ctypes.

CC and CFLAGS choose the compiler and its options.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

CC = os.environ.get("CC", "gcc")
CFLAGS = os.environ.get("CFLAGS", "-O3 -march=native -mprefer-vector-width=512 -fno-math-errno -fno-trapping-math")


def prepare(workload, arrays):
    first = next(iter(arrays.values()))
    library = compile_library(workload, first.dtype)
    inputs = [aligned(arrays[name]) for name in (*workload.arguments, workload.upstream)]
    outputs = {
        "value": [aligned(np.zeros_like(arrays[workload.upstream]))],
        "gradient": [aligned(np.zeros_like(arrays[name])) for name in workload.arguments],
    }
    return {what: call(getattr(library, what), inputs, results) for what, results in outputs.items()}


def compile_library(workload, dtype):
    folder = tempfile.mkdtemp(prefix="gradix-bench-")
    library = Path(folder) / (workload.hand.stem + ".so")
    sizes = [f"-DSIZE_{name}={size}" for name, size in workload.sizes.items()]
    real = ["-DREAL_F32"] if dtype == np.float32 else []
    command = [CC, *CFLAGS.split(), *sizes, *real, "-fopenmp", "-shared", "-fPIC", str(workload.hand)]
    done = subprocess.run([*command, "-o", str(library)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{CC} failed: {done.stderr}")
    return ctypes.CDLL(str(library))


def call(function, inputs, outputs):
    def pointers(arrays):
        return (ctypes.c_void_p * len(arrays))(*[array.ctypes.data for array in arrays])

    arguments = pointers(inputs), pointers(outputs)

    def run():
        function(*arguments)
        return outputs

    run.inputs = inputs  # kept alive: the call has only their addresses
    return run


def aligned(array):
    """A copy that starts at a cache line."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start:start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
