"""Values and derivatives from arrays of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from programs import NASTY, RBF, arrays, nasty, numeric_jacobian

import gradix as gx


@pytest.fixture
def rbf():
    x, z, w, dy = arrays([(5, 3), (4, 3), (4,), (5,)])
    kernel = np.exp(-((x[:, None] - z) ** 2).sum(-1))
    return gx.compile(RBF), x, z, w, dy, kernel


def test_arguments_go_by_place_or_by_name(rbf):
    program, x, z, w, _, kernel = rbf
    for result in (program(x, z, w), program(w=w, z=z, x=x), program(x, w=w, z=z)):
        assert_allclose(result, kernel @ w, rtol=1e-14)


def test_gradients_go_by_place_or_by_name(rbf):
    program, x, z, w, dy, kernel = rbf
    y, g = program.value_and_grad(x=x, z=z, w=w, dy=dy)
    assert_allclose(y, kernel @ w, rtol=1e-14)
    assert_allclose(g.w, kernel.T @ dy, rtol=1e-14)
    assert g["z"] is g.z is g[1] and g.names == ("x", "z", "w")
    (dx,) = program.grad(x, z, w, dy=dy, wrt="x")
    assert_array_equal(dx, g.x)
    assert program.grad(x, z, w, dy=dy, wrt=(name for name in ["w", "x"])).names == ("w", "x")


@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("backend", ["native", "vm", "interp"])
def test_derivatives_are_those_of_numeric_differentiation(name, backend):
    program, given = nasty(name)
    jacobian = program.jacobian(*given, backend=backend)
    result = program(*given, backend=backend)
    upstream = np.cos(np.arange(np.size(result))).reshape(np.shape(result))
    (output,) = program.outputs
    derivative = program._plan("grad", None, None).extra[0]
    gradient = program.grad(*given, backend=backend, **{derivative: upstream})
    tangents = arrays([np.shape(array) for array in given], seed=1)
    change = np.zeros(np.shape(result))
    for place, (slope, tangent) in enumerate(zip(jacobian, tangents, strict=True)):
        assert_allclose(slope, numeric_jacobian(program, given, place), atol=2e-8, rtol=1e-6)
        axes = np.ndim(result)
        assert_allclose(gradient[place], np.tensordot(upstream, slope, axes), atol=1e-13)
        change = change + np.tensordot(slope, tangent, np.ndim(tangent))
    assert_allclose(program.jvp(given, tangents, backend=backend), change, atol=1e-13)


@pytest.mark.parametrize("name", NASTY)
def test_derivatives_are_checked_to_second_order(name):
    rows = nasty(name)[0].check(order=2)
    assert rows and all(row.passed for row in rows)


def test_hessians_have_both_arguments():
    program = gx.compile("input a[N], b[N]; f = sum[i] a[i]^2 * b[i]")
    a, b = arrays([(3,), (3,)])
    hessian = program.hessian(a, b)
    assert_allclose(hessian.a.a, np.diag(2 * b))
    assert_allclose(hessian.a.b, np.diag(2 * a))
    assert_allclose(hessian["b"]["b"], np.zeros((3, 3)))


def test_several_results_have_names():
    program = gx.compile("input x[N]; total = sum[i] x[i]; double[i] = 2 * x[i]")
    results = program([1.0, 2.0])
    assert results.names == ("total", "double") and results.total == 3.0
    assert_array_equal(results["double"], [2.0, 4.0])
    y, g = program.value_and_grad([1.0, 2.0], ddouble=[1.0, 10.0])
    assert y.total == 3.0 and g.names == ("x",)
    assert_array_equal(g.x, [3.0, 21.0])
    jacobian = program.jacobian([1.0, 2.0])
    assert_array_equal(jacobian.total.x, [1.0, 1.0])
    assert_array_equal(jacobian.double.x, 2 * np.eye(2))
    only, g = program.value_and_grad([1.0, 2.0], of="total")
    assert only == 3.0
    assert_array_equal(g.x, [1.0, 1.0])
    tangents = program.jvp({"x": [1.0, 2.0]}, {"x": [1.0, 0.0]})
    assert tangents.total == 1.0


def test_a_scalar_result_is_a_number_and_needs_no_upstream_derivative():
    program = gx.compile("input x[N]; y = sum[i] x[i]^2")
    assert isinstance(program([1.0, 2.0]), np.float64)
    assert_array_equal(program.grad([1.0, 2.0]).x, [2.0, 4.0])
    assert_array_equal(program.grad([1.0, 2.0], dy=3).x, [6.0, 12.0])


def test_an_argument_that_does_not_change_has_no_tangent():
    program = gx.compile("input x[N], w[N]; y[i] = x[i] * w[i]")
    x, w, change = arrays([(3,)] * 3)
    assert_allclose(program.jvp((x, w), (change, None)), change * w)
    assert_allclose(program.jvp((x, w), (None, change)), change * x)
    assert_allclose(program.jvp((x, w), {"w": change}), change * x)
    assert_allclose(program.jvp((x, w), (None, None)), np.zeros(3))


def test_sizes_that_no_array_tells_are_given_by_name():
    program = gx.compile("param N; input t; y[i in 0..N] = t * i")
    assert_array_equal(program(2.0, N=3), [0.0, 2.0, 4.0])
    assert_array_equal(program.grad(2.0, dy=[1.0, 1.0, 1.0], N=3).t, 3.0)
    assert_array_equal(gx.compile("param N; input t; y[i in 0..N] = t * i", sizes={"N": 2})(1.0), [0.0, 1.0])


def test_derivatives_know_sizes_that_only_the_function_sees():
    program = gx.compile("input x[N]; y = sum[i] x[i]")
    assert_array_equal(program.grad(np.ones(4)).x, np.ones(4))
    assert_array_equal(program.grad(np.ones(4), dy=2.0).x, np.full(4, 2.0))


def test_empty_arrays_and_single_elements():
    program = gx.compile(RBF)
    for n, m, d in [(0, 4, 3), (5, 0, 3), (5, 4, 0), (1, 1, 1), (0, 0, 0)]:
        x, z, w = arrays([(n, d), (m, d), (m,)])
        y, g = program.value_and_grad(x, z, w, dy=np.ones(n))
        kernel = np.exp(-((x[:, None] - z) ** 2).sum(-1))
        assert_allclose(y, kernel @ w, rtol=1e-13)
        assert_allclose(g.w, kernel.T @ np.ones(n), rtol=1e-13)
        assert g.x.shape == x.shape and g.z.shape == z.shape


def test_the_same_call_runs_at_many_sizes():
    program = gx.compile("input x[N]; y[i] = 2 * x[i]")
    for size in [1, 5, 1000, 0, 3, 100_000, 5]:
        assert_array_equal(program(np.arange(size, dtype=float)), 2.0 * np.arange(size))


def test_an_argument_named_like_an_option_goes_by_place():
    program = gx.compile("input out[N], threads; y[i] = out[i] * threads")
    assert_array_equal(program([1.0, 2.0], 3.0, threads=1), [3.0, 6.0])


def test_names_may_be_any_letters():
    program = gx.compile("input σ, θ_1[N]; y[i] = σ * θ_1[i]")
    assert_array_equal(program(σ=2.0, θ_1=[1.0]), [2.0])
    assert_array_equal(program.grad(2.0, [1.0], dy=[1.0]).σ, 1.0)


def test_backends_and_threads_agree():
    program = gx.compile(RBF)
    x, z, w, dy = arrays([(50, 3), (40, 3), (40,), (50,)])
    expected = program.grad(x, z, w, dy=dy, backend="interp")
    for backend in ["native", "vm", "auto"]:
        for threads in [1, 2, 3]:
            for got, wanted in zip(
                program.grad(x, z, w, dy=dy, backend=backend, threads=threads), expected, strict=True
            ):
                assert_allclose(got, wanted, rtol=1e-11, atol=1e-14)
    fixed = gx.compile(RBF, backend="vm", threads=2)
    assert_allclose(fixed(x, z, w), program(x, z, w), rtol=1e-13)


def test_results_have_the_same_bits_for_any_number_of_threads():
    program = gx.compile(RBF)
    x, z, w, dy = arrays([(300, 3), (200, 3), (200,), (300,)])
    first = program.grad(x, z, w, dy=dy, threads=1)
    for threads in [2, 4, None]:
        for a, b in zip(first, program.grad(x, z, w, dy=dy, threads=threads), strict=True):
            assert a.tobytes() == b.tobytes()


def test_a_derivative_is_a_program():
    program = gx.compile("input x[N, N]; f[i] = x[i, i]^3")
    derivative = program.derivative("x")
    assert str(derivative) == "input x[N, N], df[N]\ndx[i, j in 0..N] = if i == j then 3 * df[i] * x[i, i]^2 else 0"
    x, df = arrays([(3, 3), (3,)])
    assert_allclose(derivative(x, df), program.grad(x, df=df).x)
    second = derivative.derivative("df")
    assert "ddf" in second.outputs
    forward = gx.compile("input x; y = x^2").derivative(mode="forward")
    assert forward(x=3.0, x_dot=1.0) == 6.0
    inline = gx.compile(RBF).derivative("x", inline=True)
    assert list(inline.outputs) == ["dx"] and "dy_sum" not in inline.text


def test_shapes_are_told_without_computing():
    program = gx.compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]")
    assert program.shapes((10,), (3,)) == ({"N": 10, "K": 3}, {"y": (8,)})
    assert program.shapes([10**9], w=[3])[1] == {"y": (10**9 - 2,)}


def test_a_program_tells_what_it_is():
    program = gx.compile("input x[N, 2*M], t; y[i] = t * sum[j] x[i, j]")
    assert program.inputs == {"x": ("N", "2 * M"), "t": ()} and program.outputs == {"y": ("N",)}
    assert program.sizes == ("N", "M") and program.source.startswith("input x")
    assert repr(program) == "<gradix.Program: y[N] of x[N, 2 * M], t>"
    assert str(gx.compile(str(program))) == str(program)


def test_batched_programs_do_the_work_of_many():
    program = gx.compile(RBF)
    x, z, w = arrays([(6, 5, 3), (4, 3), (6, 4)])
    batched = program.batched(["x", "w"])
    expected = np.stack([program(x[b], z, w[b]) for b in range(6)])
    assert_allclose(batched(x, z, w), expected, rtol=1e-13)


def test_files_are_read(tmp_path):
    path = tmp_path / "double.gx"
    path.write_text("input x[N]; y[i] = 2 * x[i]", encoding="utf-8")
    assert_array_equal(gx.compile(path)([1.0]), [2.0])
    assert gx.compile(str(path)) is gx.compile(path)


def test_a_program_is_printed_as_it_was_written():
    program = gx.compile("input u[N];  y[i] = u[clamp(i - 1)]+u[i]  # a comment")
    assert str(program) == "input u[N]\ny[i] = u[clamp(i - 1)] + u[i] # a comment"
    assert str(gx.compile(RBF, sizes={"D": 2})).startswith("param D = 2\n") or "x[N, 2]" in str(
        gx.compile(RBF, sizes={"D": 2})
    )
