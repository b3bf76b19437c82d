"""Loops over time in JAX, twice: as one would write them with `lax.scan`, and the best way that we know for each."""

import jax
import jax.numpy as jnp
from jax import lax
from jax.scipy.special import logsumexp


def prefix_sum(x):
    return lax.scan(lambda before, here: (before + here,) * 2, x.dtype.type(0), x)[1]


def causal_kernel(x, s):
    def step(y, now):
        here, decay = now
        y = here + decay * y
        return y, y

    return lax.scan(step, x[0] * 0, (x, jnp.concatenate([s[:1] * 0, jnp.exp(s[:-1] - s[1:])])))[1]


def selective_scan(x, d, a, b, c):
    def step(h, now):
        x, d, b, c = now
        h = jnp.exp(d[:, :, None] * a) * h + (d * x)[:, :, None] * b[:, None, :]
        return h, (h * c[:, None, :]).sum(-1)

    first = jnp.zeros((x.shape[0], *a.shape), x.dtype)
    return lax.scan(step, first, tuple(jnp.swapaxes(each, 0, 1) for each in (x, d, b, c)))[1].swapaxes(0, 1)


def reacted(state, f):
    u, v = state
    reaction = u * v**2
    laplacian = lambda w: sum(jnp.roll(w, by, axis) for by in (1, -1) for axis in (0, 1)) - 4 * w
    return u - reaction + f * (1 - u) + 0.2 * laplacian(u), v + reaction - (f + 0.06) * v + 0.1 * laplacian(v)


def reaction_diffusion(u0, v0, f):
    last, _ = lax.scan(lambda state, f: (reacted(state, f), None), (u0, v0), f)
    return (last[1] ** 2).sum()


def lstm(x, w, u, b):
    def step(state, now):
        h, c = state
        g = now + jnp.einsum("nj,qij->nqi", h, u)
        c = jax.nn.sigmoid(g[:, 1]) * c + jax.nn.sigmoid(g[:, 0]) * jnp.tanh(g[:, 2])
        h = jax.nn.sigmoid(g[:, 3]) * jnp.tanh(c)
        return (h, c), h

    first = jnp.zeros((x.shape[1], w.shape[1]), x.dtype)
    return lax.scan(step, (first, first), jnp.einsum("tnd,qid->tnqi", x, w) + b)[1]


def crf(e, w):
    last, _ = lax.scan(lambda a, e: (e + logsumexp(a[:, None] + w, axis=0), None), e[0], e[1:])
    return logsumexp(last)


def soft_dtw(x, y):
    def row(before, x):
        def element(left, now):
            y, above, corner = now
            here = (x - y) ** 2 - jnp.log(jnp.exp(-above) + jnp.exp(-left) + jnp.exp(-corner))
            return here, here

        _, rest = lax.scan(element, before[0] * 0 + 20, (y, before[1:], before[:-1]))
        return jnp.concatenate([jnp.full(1, 20, rest.dtype), rest]), None

    first = jnp.concatenate([jnp.zeros(1, x.dtype), jnp.full(len(y), 20, x.dtype)])
    return lax.scan(row, first, x)[0][-1]


def cholesky(B):
    n = len(B)
    A = B @ B.T + jnp.eye(n, dtype=B.dtype)
    rows = jnp.arange(n)

    def column(L, j):
        # Columns from j on are 0 yet.
        rest = A[:, j] - L @ L[j]
        here = jnp.where(rows < j, 0, rest / jnp.sqrt(jnp.where(rest[j] > 0, rest[j], 1)))
        return L.at[:, j].set(here), None

    return lax.scan(column, jnp.zeros_like(A), rows)[0]


def best_prefix_sum(x):
    return lax.associative_scan(jnp.add, x)


def composed(first, second):
    return second[0] * first[0], second[0] * first[1] + second[1]


def best_causal_kernel(x, s):
    decay = jnp.concatenate([jnp.zeros(1, s.dtype), jnp.exp(s[:-1] - s[1:])])
    return lax.associative_scan(composed, (decay, x))[1]


def best_selective_scan(x, d, a, b, c):
    decay, added = jnp.exp(d[..., None] * a), (d * x)[..., None] * b[:, :, None, :]
    return jnp.einsum("nts,ntks->ntk", c, lax.associative_scan(composed, (decay, added), axis=1)[1])


def best_reaction_diffusion(u0, v0, f):
    segment = jax.checkpoint(lambda state, f: lax.scan(lambda state, f: (reacted(state, f), None), state, f))
    last, _ = lax.scan(segment, (u0, v0), f.reshape(10, -1))
    return (last[1] ** 2).sum()


def best_lstm(x, w, u, b):
    H = w.shape[1]
    across = u.reshape(-1, H).T

    def step(state, now):
        h, c = state
        g = now + h @ across
        c = jax.nn.sigmoid(g[:, H:2 * H]) * c + jax.nn.sigmoid(g[:, :H]) * jnp.tanh(g[:, 2 * H:3 * H])
        h = jax.nn.sigmoid(g[:, 3 * H:]) * jnp.tanh(c)
        return (h, c), h

    first = jnp.zeros((x.shape[1], H), x.dtype)
    return lax.scan(step, (first, first), x @ w.reshape(4 * H, -1).T + b.reshape(-1), unroll=4)[1]


def best_crf(e, w):
    """Products with exp(w): right as long as no term is smaller than the largest by the range of the type."""
    shift = w.max()
    weights = jnp.exp(w - shift)

    def step(a, e):
        top = a.max()
        return e + jnp.log(jnp.exp(a - top) @ weights) + top + shift, None

    return logsumexp(lax.scan(step, e[0], e[1:])[0])


def best_soft_dtw(x, y):
    n, m = len(x), len(y)
    rows = jnp.arange(n + 1)

    def diagonal(state, t):
        before, second = state
        columns = t - rows
        gap = x[jnp.clip(rows - 1, 0, n - 1)] - y[jnp.clip(columns - 1, 0, m - 1)]
        above = jnp.concatenate([before[:1], before[:-1]])
        corner = jnp.concatenate([second[:1], second[:-1]])
        inside = (rows > 0) & (columns > 0) & (columns <= m)
        terms = jnp.where(inside, jnp.exp(-above) + jnp.exp(-before) + jnp.exp(-corner), 1)
        here = jnp.where(inside, gap**2 - jnp.log(terms), 20)
        return (here, before), None

    zeroth = jnp.where(rows == 0, 0, 20).astype(x.dtype)
    first = jnp.full(n + 1, 20, x.dtype)
    return lax.scan(diagonal, (first, zeroth), jnp.arange(2, n + m + 1))[0][0][n]


def best_cholesky(B):
    return jnp.linalg.cholesky(B @ B.T + jnp.eye(len(B), dtype=B.dtype), symmetrize_input=False)


SCANS = {"L1": prefix_sum, "L2": causal_kernel, "L3": selective_scan, "L4": reaction_diffusion, "L5": lstm, "L6": crf,
         "L7": soft_dtw, "L8": cholesky}
BEST = {"L1": best_prefix_sum, "L2": best_causal_kernel, "L3": best_selective_scan, "L4": best_reaction_diffusion,
        "L5": best_lstm, "L6": best_crf, "L7": best_soft_dtw, "L8": best_cholesky}
