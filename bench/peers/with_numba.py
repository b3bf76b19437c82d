"""Numba: loops over elements as one would write them, value and gradient by hand, compiled with `fastmath` and run in
parallel. Only for the workloads that are loops by nature, not for products of matrices and their like.
"""

import numpy as np
from numba import njit, prange

compiled = njit(parallel=True, fastmath=True)


def prepare(workload, arrays):
    if workload.id not in FUNCTIONS:
        return None
    arguments = [arrays[name] for name in workload.arguments]
    arguments = [array if array.ndim else array[()] for array in arguments]
    upstream = arrays[workload.upstream]
    value, gradient = FUNCTIONS[workload.id]
    constants = tuple(workload.constants.values())
    return {
        "value": lambda: [value(*arguments, *constants)],
        "gradient": lambda: gradient(*arguments, upstream, *constants),
    }


@compiled
def paper(a, b, c, d):
    rows, length = a.shape
    f = np.empty((rows, b.shape[0]), a.dtype)
    for i in prange(rows):
        cubes = a.dtype.type(0)
        for k in range(length):
            cubes += d[i + k] ** 3
        for j in range(b.shape[0]):
            squares = a.dtype.type(0)
            for k in range(length):
                squares += (a[i, k] + b[j, k]) ** 2
            f[i, j] = np.exp(-(squares * c[i, i] + cubes))
    return f


@compiled
def paper_gradient(a, b, c, d, df):
    rows, length = a.shape
    columns = b.shape[0]
    da, db, dc, dd = np.zeros_like(a), np.zeros_like(b), np.zeros_like(c), np.zeros_like(d)
    g, sums = np.empty((rows, columns), a.dtype), np.zeros(rows, a.dtype)
    for i in prange(rows):
        cubes = a.dtype.type(0)
        for k in range(length):
            cubes += d[i + k] ** 3
        for j in range(columns):
            squares = a.dtype.type(0)
            for k in range(length):
                squares += (a[i, k] + b[j, k]) ** 2
            here = -df[i, j] * np.exp(-(squares * c[i, i] + cubes))
            g[i, j] = here
            sums[i] += here
            dc[i, i] += here * squares
            for k in range(length):
                da[i, k] += 2 * c[i, i] * here * (a[i, k] + b[j, k])
    for j in prange(columns):
        for i in range(rows):
            for k in range(length):
                db[j, k] += 2 * c[i, i] * g[i, j] * (a[i, k] + b[j, k])
    for m in prange(d.shape[0]):
        total = a.dtype.type(0)
        for k in range(max(0, m - rows + 1), min(m, length - 1) + 1):
            total += sums[m - k]
        dd[m] = 3 * d[m] ** 2 * total
    return da, db, dc, dd


@compiled
def kernel_sum(x, z, w):
    y = np.empty(x.shape[0], x.dtype)
    for i in prange(x.shape[0]):
        total = x.dtype.type(0)
        for j in range(z.shape[0]):
            squares = x.dtype.type(0)
            for d in range(x.shape[1]):
                squares += (x[i, d] - z[j, d]) ** 2
            total += np.exp(-squares) * w[j]
        y[i] = total
    return y


@compiled
def kernel_sum_gradient(x, z, w, dy):
    dx, dz, dw = np.zeros_like(x), np.zeros_like(z), np.zeros_like(w)
    for i in prange(x.shape[0]):
        for j in range(z.shape[0]):
            squares = x.dtype.type(0)
            for d in range(x.shape[1]):
                squares += (x[i, d] - z[j, d]) ** 2
            here = dy[i] * np.exp(-squares) * w[j]
            for d in range(x.shape[1]):
                dx[i, d] -= 2 * here * (x[i, d] - z[j, d])
    for j in prange(z.shape[0]):
        total = x.dtype.type(0)
        for i in range(x.shape[0]):
            squares = x.dtype.type(0)
            for d in range(x.shape[1]):
                squares += (x[i, d] - z[j, d]) ** 2
            here = dy[i] * np.exp(-squares)
            total += here
            for d in range(x.shape[1]):
                dz[j, d] += 2 * w[j] * here * (x[i, d] - z[j, d])
        dw[j] = total
    return dx, dz, dw


@compiled
def stencil(u, dt, c):
    v = u.copy()
    for i in prange(1, u.shape[0] - 1):
        for j in range(1, u.shape[1] - 1):
            laplacian = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
            v[i, j] += dt * laplacian * np.exp(-c * u[i, j] ** 2)
    return v


@compiled
def stencil_gradient(u, dt, c, dv):
    flow, du = np.zeros_like(u), np.empty_like(u)
    ddt, dc = 0.0, 0.0
    rows, columns = u.shape
    for i in prange(1, rows - 1):
        for j in range(1, columns - 1):
            flow[i, j] = dv[i, j] * np.exp(-c * u[i, j] ** 2)
    for i in prange(rows):
        for j in range(columns):
            here = dv[i, j]
            if 0 < i < rows - 1 and 0 < j < columns - 1:
                laplacian = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] - 4 * u[i, j]
                moved = flow[i, j] * laplacian
                ddt += moved
                dc -= dt * moved * u[i, j] ** 2
                here -= 2 * c * dt * u[i, j] * moved
            spread = -4 * flow[i, j]
            if i > 0:
                spread += flow[i - 1, j]
            if i < rows - 1:
                spread += flow[i + 1, j]
            if j > 0:
                spread += flow[i, j - 1]
            if j < columns - 1:
                spread += flow[i, j + 1]
            du[i, j] = here + dt * spread
    return du, ddt, dc


@compiled
def causal(t, x):
    y = np.empty_like(x)
    for i in prange(t.shape[0]):
        total = x.dtype.type(0)
        for k in range(i + 1):
            total += np.exp(-(t[i] - t[k])) * x[k]
        y[i] = total
    return y


@compiled
def causal_gradient(t, x, dy):
    dt, dx = np.empty_like(t), np.empty_like(x)
    for i in prange(t.shape[0]):
        below, above = x.dtype.type(0), x.dtype.type(0)
        for k in range(i + 1):
            below += np.exp(-(t[i] - t[k])) * x[k]
        for k in range(i, t.shape[0]):
            above += np.exp(-(t[k] - t[i])) * dy[k]
        dx[i] = above
        dt[i] = x[i] * above - dy[i] * below
    return dt, dx


@compiled
def correlation(x, y, length):
    rows, lags = x.shape[0] - length + 1, y.shape[0] - x.shape[0] + 1
    r = np.zeros((rows, lags), x.dtype)
    for i in prange(rows):
        for k in range(length):
            for lag in range(lags):
                r[i, lag] += x[i + k] * y[i + k + lag]
    return r


@compiled
def correlation_gradient(x, y, dr, length):
    rows, lags = dr.shape
    dx, dy = np.empty_like(x), np.empty_like(y)
    s = np.zeros((x.shape[0], lags), x.dtype)
    for m in prange(x.shape[0]):
        for i in range(max(0, m - length + 1), min(m, rows - 1) + 1):
            for lag in range(lags):
                s[m, lag] += dr[i, lag]
        total = x.dtype.type(0)
        for lag in range(lags):
            total += s[m, lag] * y[m + lag]
        dx[m] = total
    for n in prange(y.shape[0]):
        total = x.dtype.type(0)
        for lag in range(max(0, n - x.shape[0] + 1), min(n, lags - 1) + 1):
            total += x[n - lag] * s[n - lag, lag]
        dy[n] = total
    return dx, dy


FUNCTIONS = {
    "W1": (paper, paper_gradient),
    "W2": (kernel_sum, kernel_sum_gradient),
    "W6": (stencil, stencil_gradient),
    "W8": (causal, causal_gradient),
    "W9": (correlation, correlation_gradient),
}
