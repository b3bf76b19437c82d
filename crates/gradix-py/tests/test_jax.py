"""Programs among JAX's transformations."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from programs import NASTY, RBF, arrays, nasty

import gradix as gx

jax = pytest.importorskip("jax")
jax.config.update("jax_enable_x64", True)
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402


def reference(x, z, w):
    return jnp.exp(-((x[:, None] - z) ** 2).sum(-1)) @ w


@pytest.fixture
def rbf():
    return gx.jax.function(gx.compile(RBF)), *(jnp.asarray(array) for array in arrays([(5, 3), (4, 3), (4,)]))


def test_values(rbf):
    function, x, z, w = rbf
    for result in (function(x, z, w), jax.jit(function)(x, z, w), function(w=w, z=z, x=x)):
        assert isinstance(result, jax.Array)
        assert_allclose(result, reference(x, z, w), rtol=1e-13)


@pytest.mark.parametrize("name", NASTY)
def test_derivatives_to_second_order(name):
    program, given = nasty(name)
    check_grads(gx.jax.function(program), given, order=2, modes=["fwd", "rev"])


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["plain", "jit"])
def test_all_transformations(rbf, wrap):
    function, x, z, w = rbf
    places = (0, 1, 2)
    loss, expected = (lambda *a: jnp.sin(function(*a)).sum()), (lambda *a: jnp.sin(reference(*a)).sum())
    for got, wanted in zip(wrap(jax.grad(loss, places))(x, z, w), jax.grad(expected, places)(x, z, w), strict=True):
        assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
    value, gradient = wrap(jax.value_and_grad(loss))(x, z, w)
    assert_allclose(value, expected(x, z, w), rtol=1e-12)
    tangents = wrap(lambda *a: jax.jvp(function, a, a))(x, z, w)
    assert_allclose(tangents[1], jax.jvp(reference, (x, z, w), (x, z, w))[1], rtol=1e-11)
    y, pull = jax.vjp(function, x, z, w)
    for got, wanted in zip(wrap(pull)(y), jax.vjp(reference, x, z, w)[1](y), strict=True):
        assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
    for got, wanted in zip(
        jax.tree.leaves(wrap(jax.hessian(loss, places))(x, z, w)),
        jax.tree.leaves(jax.hessian(expected, places)(x, z, w)),
        strict=True,
    ):
        assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
    assert_allclose(wrap(jax.jacfwd(function))(x, z, w), jax.jacfwd(reference)(x, z, w), rtol=1e-11, atol=1e-13)
    assert_allclose(wrap(jax.jacrev(function))(x, z, w), jax.jacrev(reference)(x, z, w), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("axes", [(0, None, None), (None, 1, None), (2, 0, 1), (None, None, 0)])
def test_vmap(rbf, axes):
    function, x, z, w = rbf
    batched = [
        array if axis is None else jnp.stack([array, 2 * array, array - 1], axis)
        for array, axis in zip((x, z, w), axes, strict=True)
    ]
    expected = jax.vmap(reference, axes)(*batched)
    assert_allclose(jax.vmap(function, axes)(*batched), expected, rtol=1e-12)
    assert_allclose(jax.jit(jax.vmap(function, axes))(*batched), expected, rtol=1e-12)
    got = jax.vmap(jax.grad(lambda *a: function(*a).sum()), axes)(*batched)
    assert_allclose(got, jax.vmap(jax.grad(lambda *a: reference(*a).sum()), axes)(*batched), rtol=1e-11, atol=1e-13)
    through = jax.grad(lambda *a: (jax.vmap(function, axes)(*a) ** 2).sum())(*batched)
    assert_allclose(
        through, jax.grad(lambda *a: (jax.vmap(reference, axes)(*a) ** 2).sum())(*batched), rtol=1e-11, atol=1e-13
    )


def test_vmap_in_vmap(rbf):
    function, x, z, w = rbf
    xs, ws = jnp.stack([x, 2 * x]), jnp.stack([w, w + 1, w - 1])
    got = jax.vmap(lambda x: jax.vmap(lambda w: function(x, z, w))(ws))(xs)
    assert_allclose(got, jax.vmap(lambda x: jax.vmap(lambda w: reference(x, z, w))(ws))(xs), rtol=1e-12)


def test_a_result_that_does_not_depend_on_the_batch_is_not_batched():
    function = gx.jax.function(gx.compile("input x[N], w[N]; y = sum[i] x[i]; z = sum[i] w[i]"))
    results = jax.vmap(lambda x, w: tuple(function(x, w)), (0, None), (0, None))(jnp.ones((3, 2)), jnp.ones(2))
    assert results[0].shape == (3,) and results[1].shape == ()


def test_several_results_and_unused_ones():
    function = gx.jax.function(gx.compile("input x[N]; a = sum[i] x[i]^2; b[i] = 3 * x[i]"))
    results = function(jnp.arange(3.0))
    assert results.a == 5.0 and results.names == ("a", "b")
    assert_allclose(jax.grad(lambda x: function(x).a)(jnp.arange(3.0)), [0.0, 2.0, 4.0])
    assert_allclose(jax.grad(lambda x: function(x).b.sum())(jnp.arange(3.0)), [3.0, 3.0, 3.0])
    assert jax.jit(function)(jnp.arange(3.0)).a == 5.0
    assert jax.vmap(function)(jnp.ones((2, 3))).b.shape == (2, 3)
    assert jax.eval_shape(function, jnp.ones(3)).b.shape == (3,)
    assert_allclose(jax.jacrev(function)(jnp.arange(3.0)).a, [0.0, 2.0, 4.0])
    assert_allclose(jax.jvp(function, (jnp.ones(3),), (jnp.ones(3),))[1].b, [3.0, 3.0, 3.0])


def test_types():
    function = gx.jax.function(gx.compile("input x[N], t; y[i] = x[i] * t"))
    single, double = jnp.ones(2, jnp.float32), jnp.ones(2)
    assert function(single, 2.0).dtype == jnp.float32 and function(double, 2).dtype == jnp.float64
    assert function(single, jnp.float64(2)).dtype == jnp.float64
    assert function(jnp.arange(3, dtype=jnp.int32), 2.0).dtype == jnp.float64
    assert function(jnp.ones(3, jnp.bfloat16), 2.0).dtype == jnp.float32
    assert gx.jax.function(gx.compile("input x; y = x * x"))(1.1) == 1.1 * 1.1
    assert jax.grad(lambda x: function(x, 2.0).sum())(single).dtype == jnp.float32
    with pytest.raises(gx.DtypeError, match="complex"):
        function(double + 1j, 2.0)


def test_sizes_by_name_and_programs_without_arguments():
    count = gx.jax.function(gx.compile("param N; input t; y[i in 0..N] = t * i"))
    assert_allclose(jax.jit(lambda t: count(t, N=3))(2.0), [0.0, 2.0, 4.0])
    assert_allclose(jax.grad(lambda t: count(t, N=3).sum())(2.0), 3.0)
    constant = gx.jax.function(gx.compile("y[i in 0..3] = i^2"))
    assert_allclose(jax.jit(constant)(), [0.0, 1.0, 4.0])


def test_a_derivative_without_inputs():
    function = gx.jax.function(gx.compile("input x[N]; y[i] = floor(x[i])"))
    assert_allclose(jax.grad(lambda x: function(x).sum())(jnp.ones(3)), np.zeros(3))


def test_empty_arrays(rbf):
    function, x, z, w = rbf
    assert function(x[:0], z, w).shape == (0,)
    assert_allclose(jax.grad(lambda z: function(x, z, w[:0]).sum())(z[:0]), np.zeros((0, 3)))


def test_mistakes(rbf):
    function, x, z, w = rbf
    with pytest.raises(gx.ShapeError, match="'z'"):
        function(x, z[:, :2], w)
    with pytest.raises(gx.ArgumentError, match="'w'"):
        jax.jit(function)(x, z)
    with pytest.raises(gx.ArgumentError, match="'q'"):
        function(x, z, w, q=1)
    for wrong in (None, "text", [[1.0], [1.0, 2.0]]):
        with pytest.raises(gx.ArgumentError, match="'w'"):
            function(x, z, wrong)
    with pytest.raises(gx.ArgumentError, match="'N'"):
        gx.jax.function(gx.compile("param N; y[i in 0..N] = i"))(N=2.7)


def test_without_jit(rbf):
    function, x, z, w = rbf
    with jax.disable_jit():
        assert_allclose(function(x, z, w), reference(x, z, w), rtol=1e-12)


def test_functions_can_be_pickled(rbf):
    function, x, z, w = rbf
    assert_allclose(pickle.loads(pickle.dumps(function))(x, z, w), function(x, z, w))


def test_arrays_are_handed_over_without_copies(rbf):
    function, x, z, w = rbf
    text = jax.jit(function).lower(x, z, w).as_text()
    assert "gradix_call" in text and "callback" not in text


def test_where_there_is_no_foreign_function_the_host_computes(rbf):
    from gradix._transform import Call
    from gradix.jax import _on_host

    _, x, z, w = rbf
    call = Call(gx.compile(RBF).text, (), "auto", 0).at([x.shape, z.shape, w.shape])
    run = jax.jit(lambda *a: _on_host(*a, call=call, dtype=np.dtype("float64")))
    assert_allclose(run(x, z, w)[0], reference(x, z, w), rtol=1e-12)


def test_the_programs_that_xla_has_called_are_forgotten(rbf):
    from gradix._gradix import xla_clear

    function, x, z, w = rbf
    expected = function(x, z, w)
    assert xla_clear() > 0
    assert_allclose(function(x, z, w), expected, rtol=0)
    gx.clear_cache()
    assert xla_clear() == 0
    assert_allclose(function(x, z, w), expected, rtol=0)


def test_threads_and_backends(rbf):
    _, x, z, w = rbf
    for backend in ["native", "vm", "interp"]:
        function = gx.jax.function(gx.compile(RBF), backend=backend, threads=1)
        assert_allclose(jax.jit(function)(x, z, w), reference(x, z, w), rtol=1e-12)


def test_scan_calls_it_again_and_again():
    step = gx.jax.function(gx.compile("input u[N], c; v[i] = u[i] + c * (u[wrap(i + 1)] - 2*u[i] + u[wrap(i - 1)])"))
    start = jnp.sin(jnp.arange(16.0))

    def plain(u, c):
        return u + c * (jnp.roll(u, -1) - 2 * u + jnp.roll(u, 1))

    def simulate(step, c):
        return jax.lax.scan(lambda u, _: (step(u, c), None), start, None, 20)[0].sum() ** 2

    got, wanted = jax.grad(lambda c: simulate(step, c))(0.1), jax.grad(lambda c: simulate(plain, c))(0.1)
    assert_allclose(got, wanted, atol=1e-12)
