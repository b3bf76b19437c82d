"""NumPy, value and gradient written by hand with whole-array operations. In f64 it is also the reference that the
results of all others are compared with.
"""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view as windows


def prepare(workload, arrays):
    arguments = [arrays[name] for name in workload.arguments]
    upstream = arrays[workload.upstream]
    value, gradient = FUNCTIONS[workload.id]
    constants = workload.constants
    return {
        "value": lambda: [value(*arguments, **constants)],
        "gradient": lambda: gradient(*arguments, upstream, **constants),
    }


def paper(a, b, c, d):
    squares = ((a[:, None, :] + b[None, :, :]) ** 2).sum(-1)
    return np.exp(-(squares * np.diag(c)[:, None] + windows(d**3, a.shape[1]).sum(-1)[:, None]))


def paper_gradient(a, b, c, d, df):
    both = a[:, None, :] + b[None, :, :]
    squares = (both**2).sum(-1)
    diagonal = np.diag(c)[:, None]
    g = -df * np.exp(-(squares * diagonal + windows(d**3, a.shape[1]).sum(-1)[:, None]))
    rows = g.sum(1)
    da = 2 * diagonal * (a * rows[:, None] + g @ b)
    scaled = g * diagonal
    db = 2 * (scaled.T @ a + b * scaled.sum(0)[:, None])
    dc = np.diag((g * squares).sum(1))
    dd = 3 * d**2 * np.convolve(rows, np.ones(a.shape[1], a.dtype))
    return [da, db, dc, dd]


def kernel_sum(x, z, w):
    return np.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(-1)) @ w


def kernel_sum_gradient(x, z, w, dy):
    e = np.exp(-((x[:, None, :] - z[None, :, :]) ** 2).sum(-1))
    g = e * dy[:, None] * w
    dx = -2 * (x * g.sum(1)[:, None] - g @ z)
    dz = 2 * (g.T @ x - z * g.sum(0)[:, None])
    return [dx, dz, e.T @ dy]


def strided_conv(w, x):
    steps = (x.shape[2] - 3 * (w.shape[2] - 1) + 1) // 2
    return sum(w[:, :, k] @ x[:, :, 3 * k:3 * k + 2 * steps - 1:2] for k in range(w.shape[2]))


def strided_conv_gradient(w, x, dy):
    steps = dy.shape[2]
    dw, dx = np.empty_like(w), np.zeros_like(x)
    for k in range(w.shape[2]):
        reach = slice(3 * k, 3 * k + 2 * steps - 1, 2)
        dw[:, :, k] = np.tensordot(dy, x[:, :, reach], ((0, 2), (0, 2)))
        dx[:, :, reach] += w[:, :, k].T @ dy
    return [dw, dx]


def shifted(image, p, q):
    """image[..., h + p - 1, v + q - 1] with zeros outside, flat over the last two axes."""
    height, width = image.shape[2:]
    padded = np.pad(image, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return padded[:, :, p:p + height, q:q + width].reshape(*image.shape[:2], -1)


def conv2d(w, x):
    taps = sum(w[:, :, p, q] @ shifted(x, p, q) for p in range(3) for q in range(3))
    return taps.reshape(x.shape[0], w.shape[0], *x.shape[2:])


def conv2d_gradient(w, x, dy):
    flat = dy.reshape(*dy.shape[:2], -1)
    dw = np.empty_like(w)
    for p in range(3):
        for q in range(3):
            dw[:, :, p, q] = np.tensordot(flat, shifted(x, p, q), ((0, 2), (0, 2)))
    return [dw, conv2d(w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3), dy)]


def dense(W, x, b):
    return np.tanh(x @ W.T + b)


def dense_gradient(W, x, b, dy):
    g = dy * (1 - dense(W, x, b) ** 2)
    return [g.T @ x, g @ W, g.sum(0)]


def laplacian(u):
    return u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]


def stencil(u, dt, c):
    v = u.copy()
    v[1:-1, 1:-1] += dt * laplacian(u) * np.exp(-c * u[1:-1, 1:-1] ** 2)
    return v


def stencil_gradient(u, dt, c, dv):
    inner = u[1:-1, 1:-1]
    flow = np.pad(dv[1:-1, 1:-1] * np.exp(-c * inner**2), 2)
    moved = flow[2:-2, 2:-2] * laplacian(u)
    du = dv + dt * laplacian(flow)
    du[1:-1, 1:-1] -= 2 * c * dt * inner * moved
    return [du, moved.sum(), -dt * (moved * inner**2).sum()]


def softmax(s):
    e = np.exp(s - s.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def attention(q, k, v, scale):
    return softmax(scale * (q @ k.T)) @ v


def attention_gradient(q, k, v, scale, do):
    p = softmax(scale * (q @ k.T))
    e = do @ v.T
    g = p * (e - (p * e).sum(1, keepdims=True))
    r = g @ k
    return [scale * r, scale * (g.T @ q), p.T @ do, (q * r).sum()]


def causal(t, x):
    return np.tril(np.exp(t[None, :] - t[:, None])) @ x


def causal_gradient(t, x, dy):
    e = np.tril(np.exp(t[None, :] - t[:, None]))
    dx = dy @ e
    return [x * dx - dy * (e @ x), dx]


def correlation(x, y, length):
    lags, rows = y.shape[0] - x.shape[0] + 1, x.shape[0] - length + 1
    products = x[:, None] * windows(y, lags)
    return sum(products[k:k + rows] for k in range(length))


def correlation_gradient(x, y, dr, length):
    rows, lags = dr.shape
    s = np.zeros((x.shape[0], lags), x.dtype)
    for k in range(length):
        s[k:k + rows] += dr
    dx = (s * windows(y, lags)).sum(1)
    dy = np.zeros_like(y)
    for lag in range(lags):
        dy[lag:lag + x.shape[0]] += x * s[:, lag]
    return [dx, dy]


def mttkrp(T, B, C):
    return ((T @ C) * B).sum(1)


def mttkrp_gradient(T, B, C, dM):
    p = dM[:, None, :] * B
    dT = p @ C.T
    dB = np.einsum("ijr,ir->jr", T @ C, dM)
    dC = T.reshape(-1, T.shape[2]).T @ p.reshape(-1, p.shape[2])
    return [dT, dB, dC]


FUNCTIONS = {
    "W1": (paper, paper_gradient),
    "W2": (kernel_sum, kernel_sum_gradient),
    "W3": (strided_conv, strided_conv_gradient),
    "W4": (conv2d, conv2d_gradient),
    "W5": (dense, dense_gradient),
    "W6": (stencil, stencil_gradient),
    "W7": (attention, attention_gradient),
    "W8": (causal, causal_gradient),
    "W9": (correlation, correlation_gradient),
    "W10": (mttkrp, mttkrp_gradient),
}
