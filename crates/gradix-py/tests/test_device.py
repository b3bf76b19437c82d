"""Arrays on a GPU. None is needed: a driver of the tests' own runs kernels on the processor, whose memory is the device's."""

import ctypes
import os
import pathlib
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
from programs import RBF

import gradix as gx

CUDA = pathlib.Path(__file__).parents[2] / "gradix-run" / "tests" / "cuda"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("c++") is None, reason="the emulated GPU takes Linux and a compiler for C++"
)


@pytest.fixture(scope="module", autouse=True)
def emulated(tmp_path_factory):
    """The emulated driver and compiler, for all of this process: what is loaded stays."""
    library = tmp_path_factory.mktemp("cuda") / "emulated.so"
    defined = {"EMULATOR_H": f'"{CUDA / "emulator.h"}"', "EMULATOR_FLAGS": '""', "EMULATOR_VERSION": "1"}
    options = [f"-D{name}={value}" for name, value in defined.items()]
    command = ["c++", "-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", *options]
    subprocess.run([*command, "-o", library, CUDA / "driver.cpp", "-ldl"], check=True)
    os.environ["GRADIX_CUDA_DRIVER"] = os.environ["GRADIX_NVRTC"] = str(library)
    return library


class OnDevice:
    """An array of a framework's that nobody has heard of."""

    def __init__(self, array, stream=None, **more):
        self.array = np.asarray(array)
        shared = self.array.__array_interface__
        names = ("shape", "typestr", "data", "strides")
        self.__cuda_array_interface__ = {name: shared[name] for name in names} | {"version": 3, "stream": stream} | more


def values(array):
    """What stands in an array on the emulated device."""
    interface = array.__cuda_array_interface__
    kind = {"<f8": ctypes.c_double, "<f4": ctypes.c_float}[interface["typestr"]]
    count = int(np.prod(interface["shape"], dtype=int))
    held = (kind * count).from_address(interface["data"][0])
    return np.array(held, interface["typestr"]).reshape(interface["shape"])


RANDOM = np.random.default_rng(0)
X, Z, W = RANDOM.normal(size=(40, 3)), RANDOM.normal(size=(30, 3)), RANDOM.normal(size=30)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_arrays_on_a_gpu_are_computed_with_there(dtype):
    program = gx.compile(RBF)
    host = [array.astype(dtype) for array in (X, Z, W)]
    result = program(*map(OnDevice, host))
    assert type(result) is gx.DeviceArray and result.shape == (40,)
    assert repr(result) == f"<gradix.DeviceArray: [40] {dtype}>"
    # Terms of both signs: what rounding takes is a part of the largest.
    np.testing.assert_allclose(values(result), program(*host), rtol=0, atol=1e-5 if dtype == "float32" else 1e-12)


def test_derivatives_of_arrays_on_a_gpu():
    program, upstream = gx.compile(RBF), RANDOM.normal(size=40)
    given = program.grad(*map(OnDevice, (X, Z)), w=OnDevice(W), dy=OnDevice(upstream))
    for own, expected in zip(given, program.grad(X, Z, W, dy=upstream), strict=True):
        np.testing.assert_allclose(values(own), expected, rtol=1e-12)
    norm = gx.compile("input x[N], t; f = t * sum[i] x[i]^2")
    value, slopes = norm.value_and_grad(OnDevice(W), 3.0)
    np.testing.assert_allclose(values(value), 3 * (W @ W))
    np.testing.assert_allclose(values(slopes.x), 6 * W)
    tangent = norm.jvp((OnDevice(W), 3.0), (None, 1.0))
    np.testing.assert_allclose(values(tangent), W @ W)


def test_results_go_where_the_caller_wants_them():
    double = gx.compile("input x[N]; y[i] = 2 * x[i]")
    target = OnDevice(np.zeros(30))
    assert double(OnDevice(W), out=target) is target
    np.testing.assert_array_equal(target.array, 2 * W)
    with pytest.raises(gx.ShapeError, match="shape"):
        double(OnDevice(W), out=OnDevice(np.zeros(29)))
    with pytest.raises(gx.ArgumentError, match="not on a GPU"):
        double(OnDevice(W), out=[np.zeros(30)])


def test_recurrences_on_a_gpu():
    program = gx.compile("input a[T], h0; h[t in 0..T] = a[t] * pad(h[t - 1], h0)")
    np.testing.assert_allclose(values(program(OnDevice(W), 2.0)), 2 * np.cumprod(W), rtol=1e-12)


def test_a_framework_makes_its_own_results_and_dense_copies(monkeypatch):
    class Array(OnDevice):
        pass

    streams = []
    Array.__module__ = "cupy"
    cupy = types.ModuleType("cupy")
    cupy.empty = lambda shape, dtype: Array(np.empty(shape, dtype))
    cupy.ascontiguousarray = lambda array: Array(np.ascontiguousarray(array.array))
    stream = types.SimpleNamespace(ptr=5)
    cupy.cuda = types.SimpleNamespace(get_current_stream=lambda: streams.append(5) or stream)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    program = gx.compile("input x[N, M]; y[i] = sum[j] x[j, i]")
    result = program(Array(X.T))
    assert type(result) is Array and streams
    np.testing.assert_allclose(result.array, X.T.sum(0), rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda p: p(OnDevice(X), Z, OnDevice(W)), gx.ArgumentError, ["'z'", "host"]),
        (lambda p: p(OnDevice(X), OnDevice(Z.astype("float32")), OnDevice(W)), gx.DtypeError, ["'z'", "float32"]),
        (lambda p: p(OnDevice(X), OnDevice(Z.astype(int)), OnDevice(W)), gx.DtypeError, ["'z'", "int64"]),
        (lambda p: p(OnDevice(X), OnDevice(Z), OnDevice(W), backend="native"), gx.ArgumentError, ["'native'"]),
        (lambda p: p(OnDevice(X), OnDevice(Z)), gx.ArgumentError, ["'w'", "not given"]),
        (lambda p: p(OnDevice(X), OnDevice(Z), OnDevice(W), W, W), gx.ArgumentError, ["5 arguments", "3"]),
        (lambda p: p(OnDevice(X), OnDevice(Z), OnDevice(W[:-1])), gx.ShapeError, ["29"]),
        (lambda p: p(OnDevice(X), OnDevice(Z), OnDevice(W[::-1])), gx.ArgumentError, ["'w'", "C order"]),
        (lambda p: p(OnDevice(X), OnDevice(Z), OnDevice(W, mask=1)), gx.ArgumentError, ["'w'", "masked"]),
        (lambda p: p.grad(OnDevice(X), OnDevice(Z), OnDevice(W), dy=OnDevice(W)), gx.ShapeError, ["'dy'", "(40,)"]),
    ],
)
def test_mistakes_with_arrays_on_a_gpu(call, kind, words):
    with pytest.raises(kind) as found:
        call(gx.compile(RBF))
    assert all(word in str(found.value) for word in words), found.value


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ({"GRADIX_CUDA_DRIVER": "/nowhere"}, ["no CUDA driver", "GRADIX_CUDA_DRIVER"]),
        ({"GRADIX_NVRTC": "/nowhere"}, ["no run-time compiler", "GRADIX_NVRTC"]),
        ({"EMULATOR_DRIVER": "10020"}, ["too old", "10.2", "11.0"]),
        ({"EMULATOR_DEVICES": "0"}, ["no device", "CUDA_VISIBLE_DEVICES"]),
        ({"EMULATOR_BYTES": "100"}, ["out of memory", "MiB"]),
    ],
)
def test_what_is_missing_is_said(emulated, names, words):
    text = """
import gradix as gx
from test_device import OnDevice
try:
    gx.compile("input x[N]; y[i] = 2 * x[i]")(OnDevice([1.0] * 100))
except gx.RunError as error:
    print(error)
"""
    known = {"GRADIX_CUDA_DRIVER": str(emulated), "GRADIX_NVRTC": str(emulated)}
    environment = os.environ | known | names | {"PYTHONPATH": str(pathlib.Path(__file__).parent)}
    told = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert all(word in told.stdout for word in words), told.stdout + told.stderr


def test_the_host_computes_where_there_is_no_gpu():
    text = """
import warnings
import gradix as gx
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    print(gx.compile("input x[N]; y[i] = 2 * x[i]", backend="cuda")([1.0, 2.0]).tolist())
print(*told)
"""
    environment = os.environ | {"GRADIX_CUDA_DRIVER": "/nowhere"}
    told = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.startswith("[2.0, 4.0]") and "no CUDA driver" in told.stdout


def test_tensors_on_a_gpu_take_the_way_of_the_device(monkeypatch):
    """PyTorch without CUDA has no such tensors: what it would call is tried by itself."""
    from gradix._transform import Call

    call, result = Call(RBF, (), "auto", 0), np.zeros(40)
    arrays = [(list(array.shape), array.ctypes.data) for array in (X, Z, W)]
    call.run_on_device(arrays, [([40], result.ctypes.data)], "float64", 0)
    np.testing.assert_allclose(result, gx.compile(RBF)(X, Z, W), rtol=1e-12)


@pytest.mark.parametrize("place", ["cuda_nvrtc/lib/libnvrtc.so.12", "cu13/lib/libnvrtc.so.13"])
def test_the_compiler_in_a_package_is_found(tmp_path, place):
    file = tmp_path / "nvidia" / place
    file.parent.mkdir(parents=True)
    file.touch()
    text = "import os; from gradix._device import find_compiler; find_compiler(); print(os.environ['GRADIX_NVRTC'])"
    environment = {name: value for name, value in os.environ.items() if name != "GRADIX_NVRTC"}
    environment["PYTHONPATH"] = str(tmp_path)
    told = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == str(file)
