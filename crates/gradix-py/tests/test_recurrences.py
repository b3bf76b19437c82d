"""Recurrences: loops over time in one program."""

import numpy as np
import pytest

import gradix as gx

RNN = """
input x[T, N], w[N, N], h0[N]
h[t in 0..T, i in 0..N] = tanh(x[t, i] + sum[j in 0..N] w[i, j] * pad(h[t - 1, j], h0[j]))
"""


def arrays(steps=5, width=3):
    random = np.random.default_rng(7)
    return random.normal(size=(steps, width)), random.normal(size=(width, width)), random.normal(size=width)


def by_hand(x, w, h):
    states = []
    for step in x:
        h = np.tanh(step + w @ h)
        states.append(h)
    return np.array(states)


@pytest.mark.parametrize("backend", ["interp", "vm", "native"])
@pytest.mark.parametrize("steps", [0, 1, 40])
def test_a_loop_is_one_program(backend, steps):
    x, w, h0 = arrays(steps)
    program = gx.compile(RNN)
    expected = by_hand(x, w, h0).reshape(steps, 3)
    np.testing.assert_allclose(program(x, w, h0, backend=backend), expected, rtol=1e-12)


@pytest.mark.parametrize("backend", ["interp", "vm", "native"])
def test_gradients_go_back_through_time(backend):
    x, w, h0 = arrays()
    upstream = np.random.default_rng(8).normal(size=x.shape)
    gradients = gx.compile(RNN).grad(x, w, h0, dh=upstream, backend=backend)
    loss = lambda w: (by_hand(x, w, h0) * upstream).sum()  # noqa: E731
    for place in np.ndindex(*w.shape):
        step = np.zeros_like(w)
        step[place] = 1e-6
        assert gradients["w"][place] == pytest.approx((loss(w + step) - loss(w - step)) / 2e-6, rel=1e-6)


def test_results_are_the_same_bits_for_any_number_of_threads():
    step = "sin(u[t - 1, wrap(i - 1)]) + u[t - 1, i]"
    program = gx.compile(f"input u0[N]; u[t in 0..9, i in 0..N] = if t == 0 then u0[i] else {step}")
    u0 = np.random.default_rng(1).normal(size=60_000)
    one = program(u0, threads=1)
    assert all((program(u0, threads=threads) == one).all() for threads in (2, 3))


def test_what_depends_on_itself_is_refused():
    with pytest.raises(gx.SourceError, match="h\\[0\\] depends on itself") as caught:
        gx.compile("input a[N]; h[t in 0..N] = a[t] + h[t]")
    assert caught.value.code == "no-order"


def test_jax_differentiates_and_batches_it():
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    x, w, h0 = arrays()
    function = gx.jax.function(gx.compile(RNN))

    def reference(x, w, h):
        return jax.lax.scan(lambda h, step: (jax.numpy.tanh(step + w @ h),) * 2, h, x)[1]

    batch = np.stack([x, 2 * x])
    for f, g in [
        (lambda w: (function(x, w, h0) ** 2).sum(), lambda w: (reference(x, w, h0) ** 2).sum()),
        (
            lambda w: (jax.vmap(lambda x: function(x, w, h0))(batch) ** 2).sum(),
            lambda w: (jax.vmap(lambda x: reference(x, w, h0))(batch) ** 2).sum(),
        ),
    ]:
        np.testing.assert_allclose(jax.grad(f)(w), jax.grad(g)(w), rtol=1e-9)
        np.testing.assert_allclose(jax.hessian(f)(w), jax.hessian(g)(w), rtol=1e-7, atol=1e-9)


def test_pytorch_differentiates_it():
    torch = pytest.importorskip("torch")
    x, w, h0 = (torch.tensor(array, requires_grad=True) for array in arrays())
    function = gx.torch.function(gx.compile(RNN))
    assert torch.autograd.gradcheck(function, (x, w, h0)) and torch.autograd.gradgradcheck(function, (x, w, h0))
