"""Tensors of PyTorch, arrays of JAX and of CuPy on the machine's own GPU, held to the same calls on the processor.

`make test-cuda-python` runs it where there is a GPU. A framework that is not installed, or has no GPU, is left out; at
least one is needed.
"""

import importlib

import numpy as np
import pytest

import gradix as gx

RBF = "input x[N, D], z[M, D], w[M]; y[i] = sum[j] exp(-sum[d] (x[i, d] - z[j, d])^2) * w[j]"
SCAN = "input a[B, T], h0[B]; h[b, t in 0..T] = a[b, t] * pad(h[b, t - 1], h0[b])"
RANDOM = np.random.default_rng(0)
X, Z, W, DY = (RANDOM.normal(size=shape) for shape in ((300, 5), (200, 5), 200, 300))


def framework(name):
    """A framework that sees a GPU, or None."""
    try:
        module = importlib.import_module(name)
        seen = {
            "torch": lambda: module.cuda.is_available(),
            "jax": lambda: module.devices("gpu"),
            "cupy": lambda: module.cuda.runtime.getDeviceCount(),
        }[name]()
    except Exception:
        return None
    return module if seen else None


torch, jax, cupy = map(framework, ("torch", "jax", "cupy"))
needs_torch, needs_jax, needs_cupy = (
    pytest.mark.skipif(module is None, reason=f"no {name} with a GPU")
    for module, name in ((torch, "PyTorch"), (jax, "JAX"), (cupy, "CuPy"))
)


def test_there_is_a_framework_with_a_gpu():
    assert torch or jax or cupy


def expected(dtype):
    """The values and slopes of RBF on the processor."""
    value, slopes = gx.compile(RBF).value_and_grad(X, Z, W, dy=DY)
    return [np.asarray(array, dtype) for array in (value, *slopes)]


def near(own, other, dtype):
    """Held to the largest element: terms have both signs."""
    limit = 1e-10 if np.dtype(dtype) == np.float64 else 1e-3
    np.testing.assert_allclose(own, other, rtol=0, atol=limit * np.abs(other).max())


@needs_torch
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("compiled", [False, True])
def test_torch_differentiates_on_the_device(dtype, compiled):
    function = gx.torch.function(gx.compile(RBF))
    run = torch.compile(function) if compiled else function
    kind = getattr(torch, dtype)
    given = [torch.tensor(a, dtype=kind, device="cuda", requires_grad=True) for a in (X, Z, W)]
    value = run(*given)
    assert value.device.type == "cuda" and value.dtype == kind
    slopes = torch.autograd.grad(value, given, torch.tensor(DY, dtype=kind, device="cuda"))
    for own, other in zip((value, *slopes), expected(dtype), strict=True):
        near(own.detach().cpu().numpy(), other, dtype)


@needs_torch
def test_torch_second_order_vmap_and_streams():
    function = gx.torch.function(gx.compile("input x[N]; f = sum[i] x[i]^3 * x[N - 1 - i]"))
    x = torch.tensor(W, device="cuda")
    hessian = torch.func.hessian(function)
    near(hessian(x).cpu().numpy(), hessian(x.cpu()).numpy(), "float64")
    batch = torch.tensor(RANDOM.normal(size=(7, 50)), device="cuda")
    near(torch.vmap(function)(batch).cpu().numpy(), torch.vmap(function)(batch.cpu()).numpy(), "float64")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        value = function(x * 2)
    side.synchronize()
    near(value.cpu().numpy(), function(x.cpu() * 2).numpy(), "float64")


@needs_torch
def test_torch_recurrences_and_views():
    function = gx.torch.function(gx.compile(SCAN))
    a = torch.tensor(RANDOM.normal(size=(40, 33)), device="cuda").T.requires_grad_()
    h0 = torch.tensor(RANDOM.normal(size=33), device="cuda", requires_grad=True)
    own = torch.autograd.grad(function(a, h0).sum(), (a, h0))
    host = [t.detach().cpu().requires_grad_() for t in (a, h0)]
    for one, other in zip(own, torch.autograd.grad(function(*host).sum(), host), strict=True):
        near(one.cpu().numpy(), other.numpy(), "float64")


@needs_jax
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_jax_differentiates_on_the_device(dtype):
    with jax.enable_x64(dtype == "float64"):
        function = gx.jax.function(gx.compile(RBF))
        device = jax.devices("gpu")[0]
        given = [jax.device_put(np.asarray(a, dtype), device) for a in (X, Z, W)]
        value, pull = jax.vjp(jax.jit(function), *given)
        assert device in value.devices()
        slopes = pull(jax.device_put(np.asarray(DY, dtype), device))
        for own, other in zip((value, *slopes), expected(dtype), strict=True):
            near(np.asarray(own), other, dtype)


@needs_jax
def test_jax_second_order_and_vmap():
    with jax.enable_x64(True):
        function = gx.jax.function(gx.compile("input x[N]; f = sum[i] x[i]^3 * x[N - 1 - i]"))
        gpu, host = (jax.devices(kind)[0] for kind in ("gpu", "cpu"))
        for transform, given in ((jax.hessian, W), (jax.vmap, RANDOM.normal(size=(7, 50)))):
            own, other = (jax.jit(transform(function))(jax.device_put(given, place)) for place in (gpu, host))
            near(np.asarray(own), np.asarray(other), "float64")


@needs_cupy
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_cupy_arrays_stay_on_the_device(dtype):
    program = gx.compile(RBF)
    given = [cupy.asarray(a, dtype) for a in (X, Z, W)]
    value, slopes = program.value_and_grad(*given, dy=cupy.asarray(DY, dtype))
    for own, other in zip((value, *slopes), expected(dtype), strict=True):
        assert isinstance(own, cupy.ndarray)
        near(cupy.asnumpy(own), other, dtype)
    target = cupy.empty(len(X), dtype)
    assert program(*given, out=target) is target
    near(cupy.asnumpy(target), expected(dtype)[0], dtype)
