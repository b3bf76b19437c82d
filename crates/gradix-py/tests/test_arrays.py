"""Arrays of all kinds: types, strides, where results go."""

import subprocess
import sys
from types import MappingProxyType

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided, sliding_window_view
from numpy.testing import assert_allclose, assert_array_equal
from programs import arrays

import gradix as gx

SUM = "input x[N, M]; y[i] = sum[j] x[i, j] * (j + 1)"

# Views of a dense array with at least 3 dimensions, all of two dimensions.
VIEWS = {
    "dense": lambda a: a[0],
    "transposed": lambda a: a[0].T,
    "fortran": lambda a: np.asfortranarray(a[0]),
    "rows": lambda a: a[0, 1:-1],
    "columns": lambda a: a[0, :, 2:-3],
    "stepped": lambda a: a[0, ::2, ::3],
    "reversed": lambda a: a[0, ::-1, ::-1],
    "half reversed": lambda a: a[0, ::-2, 1:],
    "middle": lambda a: a[:, 3, :],
    "outer": lambda a: a[:, :, 5],
    "turned": lambda a: a.transpose(2, 1, 0)[3, ::2],
    "broadcast rows": lambda a: np.broadcast_to(a[0, 0], (50, a.shape[2])),
    "broadcast columns": lambda a: np.broadcast_to(a[0, :, :1], (a.shape[1], 50)),
    "broadcast number": lambda a: np.broadcast_to(a[0, 0, 0], (60, 70)),
    "windows": lambda a: sliding_window_view(a[0, 0], 7),
    "hops": lambda a: sliding_window_view(a[0, 0], 8)[::3],
    "overlapping": lambda a: as_strided(a, (30, 40), (3 * a.itemsize, 2 * a.itemsize)),
    "one row": lambda a: a[0, :1],
    "one column": lambda a: a[0, :, :1],
    "nothing": lambda a: a[0, :0, ::2],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("shape", [(2, 9, 11), (3, 80, 120)], ids=["small", "large"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("backend", ["native", "vm", "interp"])
def test_arrays_of_any_strides_are_read(view, shape, dtype, backend):
    if backend == "interp" and shape[1] > 9:
        shape = (2, 12, 25)
    base = np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)
    base.flags.writeable = False
    x = VIEWS[view](base)
    program = gx.compile(SUM)
    expected = program(np.array(x, order="C"), backend=backend)
    result = program(x, backend=backend)
    assert result.dtype == dtype
    assert_allclose(
        result, expected, rtol=1e-5 if dtype == np.float32 else 1e-12, atol=1e-4 if dtype == np.float32 else 1e-12
    )
    dy = np.arange(x.shape[0], dtype=dtype)[::-1]
    dx = program.grad(x, dy=dy, backend=backend).x
    assert_allclose(dx, dy[:, None] * np.arange(1, x.shape[1] + 1), rtol=1e-5)


def test_large_arrays_are_not_copied():
    # 128 MB, read as columns: a copy would show in the peak of the process's memory.
    script = """
import resource, numpy as np, gradix as gx
program = gx.compile("input x[N, M]; y[i] = sum[j] x[i, j]")
base = np.ones((2000, 8000))
program(base[:200].T), program(base[::2, ::2][:100])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
results = program(base.T), program(base[::2, ::2]), program(base[:, 5:-5][::-1])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert (results[0] == 2000).all() and (results[1] == 4000).all() and (results[2] == 7990).all()
print((after - before) / 1024)
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 16, "megabytes more than the arrays themselves"


def test_float32_stays_float32_and_both_give_float64():
    program = gx.compile("input x[N], w[N], t; y[i] = x[i] * w[i] * t")
    single, double = np.ones(3, np.float32), np.ones(3)
    assert program(single, single, 2).dtype == np.float32
    assert program(single, single, 2.5).dtype == np.float32
    assert program(single, double, 2).dtype == np.float64
    assert program(single, np.arange(3), 2).dtype == np.float32
    assert program(single, np.ones(3, np.float16), True).dtype == np.float32
    assert program(single, single, np.array(2.0)).dtype == np.float64
    assert program(single, single, 2, dtype=np.float64).dtype == np.float64
    assert program(double, double, 2, dtype="float32").dtype == np.float32
    assert program.grad(single, single, 2, dy=single).t.dtype == np.float32


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2, 3], np.float64),
        ((1.0, 2.0, 3.0), np.float64),
        (np.array([1, 2, 3]), np.float64),
        (np.array([1, 2, 3], np.int16), np.float64),
        (np.array([1, 2, 3], np.uint8), np.float64),
        (np.array([True, False, True]), np.float64),
        (np.array([1, 2, 3], np.float16), np.float32),
        (np.array([1, 2, 3], ">f8"), np.float64),
        (np.array([1, 2, 3], ">f4"), np.float32),
        (np.frombuffer(b"\0" + np.arange(3.0).tobytes(), np.float64, offset=1), np.float64),
        (np.zeros(3, [("a", "u1"), ("b", "f8")])["b"], np.float64),
        (np.arange(6.0).reshape(3, 2)[:, 0], np.float64),
    ],
)
def test_other_arrays_are_converted(given, expected):
    result = gx.compile("input x[N]; y[i] = 2 * x[i]")(given)
    assert result.dtype == expected
    assert_array_equal(result, 2 * np.asarray(given, np.float64))


def test_scalars_are_numbers_or_arrays_without_dimensions():
    program = gx.compile("input t; y = t^2")
    for given in [3, 3.0, True + 2, np.float64(3), np.float32(3), np.array(3), np.int8(3)]:
        assert program(given) == 9.0


def test_results_go_where_they_are_wanted():
    program = gx.compile("input x[N]; y[i] = 2 * x[i]; z = sum[i] x[i]")
    y, z = np.empty(3), np.empty(())
    mapping = MappingProxyType({"y": y})
    for out in [(y, z), [y, z], {"y": y, "z": z}, {"y": y}, (y, None), {"y": y, "z": None}, mapping]:
        y.fill(np.nan)
        results = program([1.0, 2.0, 3.0], out=out)
        assert results.y is y and results.z == 6.0
        assert_array_equal(y, [2.0, 4.0, 6.0])
    single = gx.compile("input x[N]; y[i] = 2 * x[i]")
    assert single([1.0, 2.0, 3.0], out=y) is y
    value, g = single.value_and_grad(np.ones(3), dy=np.ones(3), out={"dx": y})
    assert g.x is y and value is not y


@pytest.mark.parametrize("size", [5, 100_000])
def test_results_may_have_any_strides(size):
    program = gx.compile("input x[N]; y[i] = 2 * x[i]")
    out = np.zeros((size, 2))
    program(np.arange(float(size)), out=out[:, 1])
    program(np.arange(float(size)), out=out[::-1, 0])
    assert_array_equal(out[:, 1], 2.0 * np.arange(size))
    assert_array_equal(out[:, 0], 2.0 * np.arange(size)[::-1])


@pytest.mark.parametrize("size", [8, 100_000])
def test_results_may_overlap_arguments(size):
    program = gx.compile("input x[N]; y[i] = x[N - 1 - i] + x[i]")
    data = np.arange(float(size)) ** 2
    expected = data + data[::-1]
    assert_array_equal(program(data, out=data), expected)
    data = np.arange(size + 1.0) ** 2
    expected = data[:-1] + data[:-1][::-1]
    assert_array_equal(program(data[:-1], out=data[1:]), expected)
    two = gx.compile("input x[N]; y[i] = x[i]; z[i] = 2 * x[i]")
    same = np.zeros(size)
    two(np.ones(size), out=(same, same))
    assert_array_equal(same, np.full(size, 2.0))


def test_subclasses_and_other_holders_of_arrays_are_read():
    class Holder:
        def __array__(self, dtype=None, copy=None):
            return np.arange(3.0)

    program = gx.compile("input x[N]; y[i] = 2 * x[i]")
    assert_array_equal(program(Holder()), [0.0, 2.0, 4.0])
    assert_array_equal(program(np.arange(3.0).view(np.recarray)), [0.0, 2.0, 4.0])
    assert_array_equal(program(memoryview(np.arange(3.0))), [0.0, 2.0, 4.0])


def test_upstream_derivatives_and_tangents_may_have_any_strides():
    program = gx.compile("input x[N, M]; y[i, j] = x[i, j]^2")
    x, t = arrays([(70, 80), (80, 70)])
    dy = np.broadcast_to(np.float64(2.0), (70, 80))
    assert_allclose(program.grad(x, dy=dy).x, 4 * x)
    assert_allclose(program.jvp((x,), (t.T,)), 2 * x * t.T)
