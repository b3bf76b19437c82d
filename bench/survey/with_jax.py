"""The programs of the survey in JAX, as one would write them, timed under `jit` in a process of its own.

Reads requests as lines of JSON and answers each with one:

    {"program": "rbf", "sizes": {"N": 384, …}, "dtype": "f64", "shapes": {"x": [384, 640], …}, "seconds": 0.1}
    {"value": {"min_s": …, "first_s": …}, "gradient": {…}}

    {"program": "rbf", "sizes": …, "data": "data.npz", "out": "out.npz"}      results and derivatives, for a comparison

Most functions are those of examples/reference.py with JAX's numpy; those that loop over elements are written here.
"""

import json
import math
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import erf, gammaln

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent.parent / "examples")]

import reference
from peers import with_jax

MOST_CALLS = 1000


def main():
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    reference.np = jnp
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = save(**request) if "out" in request else measure(**request)
        except Exception as error:  # one program's failure must not end the others
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print(json.dumps(answer), file=answers, flush=True)


def function(program, sizes):
    """From arrays by name to results by name."""
    if program in OWN:
        return lambda given: OWN[program](**given)
    if program in with_jax.FUNCTIONS:
        constants = {"length": sizes["K"]} if program == "W9" else {}
        return lambda given: {"result": with_jax.FUNCTIONS[program](**given, **constants)}
    return lambda given: reference.FUNCTIONS[program](**given)


def calls(results, arrays, upstream):
    """Compiled functions for the results, and for the derivatives by all arguments."""
    return {
        "value": (jax.jit(results), (arrays,)),
        "gradient": (jax.jit(lambda given, by: jax.vjp(results, given)[1](by)[0]), (arrays, upstream)),
    }


def measure(program, sizes, dtype, shapes, seconds):
    results = function(program, sizes)
    random = np.random.default_rng(1)
    real = {"f64": np.float64, "f32": np.float32}[dtype]
    draw = lambda shape: jnp.asarray(random.uniform(-1, 1, shape).astype(real))
    arrays = {name: draw(shape) for name, shape in shapes.items()}
    upstream = jax.tree.map(lambda result: draw(result.shape).astype(result.dtype), jax.eval_shape(results, arrays))
    return {what: timed(*call, seconds) for what, call in calls(results, arrays, upstream).items()}


def timed(call, arguments, seconds):
    once = lambda: jax.block_until_ready(call(*arguments))
    first = duration(once)
    once()
    start, times = time.perf_counter(), [duration(once)]
    while time.perf_counter() - start < seconds and len(times) < MOST_CALLS:
        times.append(duration(once))
    return {"min_s": min(times), "first_s": first}


def duration(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def save(program, sizes, data, out):
    """Results for given arrays, and derivatives where all upstream derivatives are 1."""
    results = function(program, sizes)
    with np.load(data) as stored:
        arrays = {name: jnp.asarray(stored[name]) for name in stored.files}
    upstream = jax.tree.map(jnp.ones_like, jax.eval_shape(results, arrays))
    made = {what: call(*arguments) for what, (call, arguments) in calls(results, arrays, upstream).items()}
    named = made["value"] | {"d" + name: array for name, array in made["gradient"].items()}
    np.savez(out, **{name: np.asarray(array) for name, array in named.items()})
    return {"saved": out}


def scanned(step, start, inputs):
    return lax.scan(step, start, inputs)[1]


def convolve(x, w, **options):
    return lax.conv_general_dilated(x, w, window_strides=options.pop("strides"), **options)


def conv1d(x, w, b):
    return dict(y=convolve(x, w, strides=(2,), padding="VALID", rhs_dilation=(3,)) + b[:, None])


def conv2d(x, w):
    size = w.shape[2]
    pad = (size // 2, size - 1 - size // 2)
    return dict(y=convolve(x[None], w, strides=(1, 1), padding=(pad, pad))[0])


def depthwise_conv(x, w):
    return dict(y=convolve(x[None], w[:, None], strides=(1, 1), padding="SAME", feature_group_count=len(x))[0])


def conv_transpose(x, w):
    last = w.shape[2] - 1
    kernel = w.transpose(1, 0, 2)[:, :, ::-1]
    return dict(y=convolve(x[None], kernel, strides=(1,), padding=((last, last),), lhs_dilation=(2,))[0][
        :, : 2 * x.shape[1] + last - 1])


def template_match(x, t):
    squares = convolve((x**2)[None, None], jnp.ones_like(t)[None, None], strides=(1, 1), padding="VALID")
    return dict(s=(squares - 2 * convolve(x[None, None], t[None, None], strides=(1, 1), padding="VALID"))[0, 0] + (t**2).sum())


def paper(a, b, c, d):
    return dict(f=with_jax.paper(a, b, c, d))


def leaky_integrator(x, a):
    return dict(v=scanned(lambda v, new: (v * jax.nn.sigmoid(a) + new,) * 2, jnp.zeros((), x.dtype), x))


def linear_recurrence(a, b, h0):
    return dict(h=scanned(lambda h, new: (new[0] * h + new[1],) * 2, h0, (a, b)))


def prefix(x):
    return dict(s=jnp.cumsum(x), p=jnp.cumprod(1 + x / 10), m=lax.cummax(x))


def tree_sum(x):
    return dict(y=x.sum() ** 2)


def selective_scan(x, d, a, b, c):
    def step(h, new):
        x, d, b, c = new
        h = jnp.exp(d[:, :, None] * a) * h + (d * x)[:, :, None] * b[:, None, :]
        return h, jnp.einsum("ns,nks->nk", c, h)

    start = jnp.zeros((x.shape[0], x.shape[2], a.shape[1]), x.dtype)
    return dict(y=scanned(step, start, tuple(array.swapaxes(0, 1) for array in (x, d, b, c))).swapaxes(0, 1))


def gru(x, w, u):
    def step(h, x):
        z, r = (jax.nn.sigmoid(w[q] @ x + u[q] @ h) for q in (0, 1))
        return ((1 - z) * jnp.tanh(w[2] @ x + r * (u[2] @ h)) + z * h,) * 2

    return dict(h=scanned(step, jnp.zeros(u.shape[1], x.dtype), x))


def lstm(x, w, u, b):
    def step(state, x):
        h, c = state
        i, f, g, o = (x @ w[q].T + h @ u[q].T + b[q] for q in range(4))
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = jnp.zeros((x.shape[1], u.shape[1]), x.dtype)
    return dict(h=scanned(step, (start, start), x))


def heat_steps(u0, q, r):
    step = lambda u, q: (u + r * (jnp.roll(u, 1) - 2 * u + jnp.roll(u, -1)) + q,) * 2
    return dict(u=jnp.concatenate([u0[None], scanned(step, u0, q)]))


def wave_steps(u0, c, d):
    def step(state, _):
        old, u = state
        padded = jnp.pad(u, 1)
        new = 2 * u - old + c**2 / 4 * (padded[:-2] - 2 * u + padded[2:])
        return (u, new), new[len(u0) // 2]

    later = scanned(step, (u0, u0), d[2:])
    return dict(loss=((u0[len(u0) // 2] - d[:2]) ** 2).sum() + ((later - d[2:]) ** 2).sum())


def gray_scott_steps(u0, v0, f):
    def step(state, feed):
        u, v = state
        reaction = u * v**2
        return (u - reaction + feed * (1 - u) + 0.2 * reference.laplacian(u),
                v + reaction - (feed + 0.06) * v + 0.1 * reference.laplacian(v)), None

    return dict(loss=(lax.scan(step, (u0, v0), f)[0][1] ** 2).sum())


def leapfrog(q0, p0, k):
    def step(state, strength):
        q, p = state
        p = p - 0.1 * strength * jnp.sin(q)
        return (q + 0.1 * p, p), (q + 0.1 * p, p)

    q, p = scanned(step, (q0, p0), k)
    return dict(q=jnp.concatenate([q0[None], q]), p=jnp.concatenate([p0[None], p]))


def runge_kutta(y0, f):
    def step(y, force):
        slope = lambda y: jnp.array([y[1], force - jnp.sin(y[0])])
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        k4 = slope(y + 0.1 * k3)
        return (y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4),) * 2

    return dict(y=jnp.concatenate([y0[None], scanned(step, y0, f)]))


def crf(e, w):
    step = lambda a, scores: (scores + jax.nn.logsumexp(a[:, None] + w, 0), None)
    return dict(z=jax.nn.logsumexp(lax.scan(step, e[0], e[1:])[0]))


def hmm(e, w):
    step = lambda a, scores: (jnp.exp(scores) * (a @ jnp.exp(w)), None)
    return dict(loglik=jnp.log(lax.scan(step, jnp.exp(e[0]), e[1:])[0].sum()))


def viterbi(e, w):
    step = lambda v, scores: (scores + (v[:, None] + w).max(0), None)
    return dict(best=lax.scan(step, e[0], e[1:])[0].max())


def soft_dtw(x, y):
    def row(above, x):
        def cell(left, new):
            y, up, corner = new
            here = (x - y) ** 2 - jnp.log(jnp.exp(-up) + jnp.exp(-left) + jnp.exp(-corner))
            return here, here

        edge = jnp.asarray(20.0, y.dtype)
        new = scanned(cell, edge, (y, above[1:], above[:-1]))
        return jnp.concatenate([edge[None], new]), None

    start = jnp.full(len(y) + 1, 20.0, y.dtype).at[0].set(0)
    return dict(d=lax.scan(row, start, x)[0][-1])


def edit_distance(c, gap):
    down, right = (gap**2 * (1 + jnp.arange(1, n + 1).astype(c.dtype) / by) for n, by in zip(c.shape, (9, 10)))

    def row(state, new):
        above, first = state
        costs, down = new

        def cell(left, new):
            cost, up, corner, right = new
            here = jnp.minimum(corner + cost, jnp.minimum(up + down, left + right))
            return here, here

        first = first + down
        new = scanned(cell, first, (costs, above[1:], above[:-1], right))
        return (jnp.concatenate([first[None], new]), first), None

    zero = jnp.zeros((), c.dtype)
    start = jnp.concatenate([zero[None], jnp.cumsum(right)])
    return dict(y=lax.scan(row, (start, zero), (c, down))[0][0][-1])


def kalman(y, q, r):
    def step(state, value):
        mean, variance, nll = state
        predicted = variance + q**2 + 0.1
        spread = predicted + r**2 + 0.1
        nll = nll + (value - mean) ** 2 / spread + jnp.log(spread)
        mean = mean + predicted / spread * (value - mean)
        return (mean, (1 - predicted / spread) * predicted, nll), mean

    zero = jnp.zeros((), y.dtype)
    (_, _, nll), means = lax.scan(step, (zero, zero + 1, zero), y)
    return dict(m=means, nll=nll)


def sinkhorn(c, e):
    N, M = c.shape

    def step(state, strength):
        kernel = jnp.exp(-c * (2 + strength))
        u = 1 / N / (kernel @ state[0])
        return (1 / M / (kernel.T @ u), u), None

    v, u = lax.scan(step, (jnp.ones(M, c.dtype), jnp.ones(N, c.dtype)), e)[0]
    return dict(cost=(c * u[:, None] * jnp.exp(-c * (2 + e[-1])) * v).sum())


def lu(B):
    F = B + (len(B) + 1) * jnp.eye(len(B), dtype=B.dtype)
    row = jnp.arange(len(B))

    def step(k, F):
        below = row > k
        column = jnp.where(below, F[:, k] / F[k, k], 0)
        F = F - jnp.outer(column, jnp.where(below, F[k], 0))
        return F.at[:, k].set(jnp.where(below, column, F[:, k]))

    return dict(F=lax.scan(lambda F, k: (step(k, F), None), F, row)[0])


def substitution(L, b):
    lower = jnp.tril(L) + 2 * jnp.eye(len(b), dtype=b.dtype)
    solve = jax.scipy.linalg.solve_triangular
    return dict(x=solve(lower, solve(lower, b, lower=True), lower=True, trans=1))


def tridiagonal(a, b, c, f):
    def down(state, new):
        w, g = state
        a, b, c, f = new
        below = 3 + b - a * w
        return ((c / below, (f - a * g) / below),) * 2

    zero = jnp.zeros((), b.dtype)
    w, g = scanned(down, (zero, zero), (a.at[0].set(0), b, c.at[-1].set(0), f))
    return dict(x=lax.scan(lambda x, new: (new[1] - new[0] * x,) * 2, zero, (w, g), reverse=True)[1])


def avg_pool(x):
    return dict(y=lax.reduce_window(x, x.dtype.type(0), lax.add, (1, 3, 3), (1, 2, 2), "VALID") / 9)


def haar(x):
    pairs = x[: len(x) // 2 * 2].reshape(-1, 2)
    return dict(low=(pairs[:, 0] + pairs[:, 1]) / math.sqrt(2), high=(pairs[:, 0] - pairs[:, 1]) / math.sqrt(2))


def positional_encoding(x, scale):
    T, D = x.shape
    c = jnp.arange(D)
    angle = jnp.arange(T)[:, None].astype(x.dtype) / 10000 ** ((c // 2 * 2).astype(x.dtype) / D)
    return dict(y=x + scale * jnp.where(c % 2 == 0, jnp.sin(angle), jnp.cos(angle)))


def rope(x):
    T, D = x.shape[0], x.shape[1] // 2
    angle = jnp.arange(T).astype(x.dtype)[:, None] / 100 ** (jnp.arange(D).astype(x.dtype) / D)
    even, odd, cos, sin = x[:, 0::2], x[:, 1::2], jnp.cos(angle), jnp.sin(angle)
    return dict(y=jnp.stack([even * cos - odd * sin, even * sin + odd * cos], -1).reshape(x.shape))


def periodic_kernel(x, log_scale, log_length, log_period, log_noise):
    scale, length, period, noise = map(jnp.exp, (log_scale, log_length, log_period, log_noise))
    u = jnp.sin(jnp.pi * (x[:, None] - x) / period)
    return dict(k=scale**2 * jnp.exp(-2 * (u / length) ** 2) + noise**2 * jnp.eye(len(x), dtype=x.dtype))


def lrn(x):
    s = lax.reduce_window(x**2, x.dtype.type(0), lax.add, (5, 1), (1, 1), "SAME")
    return dict(y=x / (1 + 0.5 * s) ** 0.75)


def gelu_ffn(x, w1, w2):
    h = x @ w1.T
    return dict(y=x + (h * (1 + erf(h / math.sqrt(2))) / 2) @ w2.T)


def logsumexp(x):
    return dict(y=jax.nn.logsumexp(x, 1))


def gamma_nll(x, a, b, y):
    z, s, v = y**2 + 0.1, 1 + jnp.exp(x @ a), x @ b
    r = jnp.exp(v)
    return dict(loss=-(s * v - gammaln(s) + (s - 1) * jnp.log(z) - r * z).sum())


def straight_through(x, w, y):
    rounded = w + lax.stop_gradient(jnp.round(8 * w) / 8 - w)
    return dict(loss=((x @ rounded - y) ** 2).mean())


def nbody(x, m):
    r = x[None] - x[:, None]
    return dict(a=(m[None, :, None] * r / ((r**2).sum(-1) + 0.1)[:, :, None] ** 1.5).sum(1))


def heat2d(u, a):
    return dict(v=u.at[1:-1, 1:-1].add(a * reference.laplacian(u)[1:-1, 1:-1]))


def perona_malik(u, a):
    flow = lambda drop: drop / (1 + drop**2)
    south = jnp.pad(flow(u[1:] - u[:-1]), ((1, 1), (0, 0)))
    east = jnp.pad(flow(u[:, 1:] - u[:, :-1]), ((0, 0), (1, 1)))
    return dict(v=u + a * (south[1:] - south[:-1] + east[:, 1:] - east[:, :-1]))


def blur_reflect(x, w):
    once = lambda x: convolve(jnp.pad(x, ((2, 2), (0, 0)), mode="reflect")[None, None], w[None, None, :, None],
                              strides=(1, 1), padding="VALID")[0, 0]
    return dict(y=once(once(x).T).T)


def dft(x):
    y = jnp.fft.fft(x)
    return dict(p=(y.real**2 + y.imag**2) / len(x))


def causal_kernel(x, s):
    decay = jnp.exp(jnp.concatenate([jnp.zeros(1, s.dtype), s[:-1] - s[1:]]))
    return dict(y=scanned(lambda y, new: (new[0] + new[1] * y,) * 2, jnp.zeros((), x.dtype), (x, decay)))


def prefix_sum(x):
    return dict(s=jnp.cumsum(x))


# All functions above whose names are those of programs.
OWN = {name: made for name, made in list(globals().items())
       if callable(made) and (name in reference.FUNCTIONS or name in ("causal_kernel", "prefix_sum"))}

if __name__ == "__main__":
    main()
