"""JAX on the CPU: the function as one would write it, and its reverse-mode derivative, both under `jit`."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
from jax import lax

from . import loops_with_jax


def prepare(workload, arrays):
    return calls(lambda *given: FUNCTIONS[workload.id](*given, **workload.constants), workload, arrays)


def calls(function, workload, arrays):
    arguments = [jnp.asarray(arrays[name]) for name in workload.arguments]
    upstream = jnp.asarray(arrays[workload.upstream])
    value = jax.jit(function)
    gradient = jax.jit(lambda df, *given: jax.vjp(function, *given)[1](df))
    return {
        "value": lambda: [value(*arguments).block_until_ready()],
        "gradient": lambda: jax.block_until_ready(gradient(upstream, *arguments)),
    }


def paper(a, b, c, d):
    rows, length = a.shape
    squares = ((a[:, None, :] + b[None, :, :]) ** 2).sum(-1)
    cubes = (d[jnp.arange(rows)[:, None] + jnp.arange(length)] ** 3).sum(-1)
    return jnp.exp(-(squares * jnp.diag(c)[:, None] + cubes[:, None]))


def kernel_sum(x, z, w):
    return jnp.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(-1)) @ w


def strided_conv(w, x):
    return lax.conv_general_dilated(x, w, window_strides=(2,), padding="VALID", rhs_dilation=(3,))


def conv2d(w, x):
    return lax.conv_general_dilated(x, w, window_strides=(1, 1), padding="SAME")


def dense(W, x, b):
    return jnp.tanh(x @ W.T + b)


def stencil(u, dt, c):
    inner = u[1:-1, 1:-1]
    laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * inner
    return u.at[1:-1, 1:-1].add(dt * laplacian * jnp.exp(-c * inner**2))


def attention(q, k, v, scale):
    return jax.nn.softmax(scale * (q @ k.T), axis=1) @ v


def causal(t, x):
    return jnp.tril(jnp.exp(t[None, :] - t[:, None])) @ x


def correlation(x, y, length):
    lags = y.shape[0] - x.shape[0] + 1
    products = x[:, None] * y[jnp.arange(x.shape[0])[:, None] + jnp.arange(lags)]
    return lax.reduce_window(products, x.dtype.type(0), lax.add, (length, 1), (1, 1), "VALID")


def mttkrp(T, B, C):
    return jnp.einsum("ijk,jr,kr->ir", T, B, C)


FUNCTIONS = {
    "W1": paper, "W2": kernel_sum, "W3": strided_conv, "W4": conv2d, "W5": dense,
    "W6": stencil, "W7": attention, "W8": causal, "W9": correlation, "W10": mttkrp,
    **loops_with_jax.SCANS,
}
