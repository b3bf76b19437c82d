"""Reference values for the example programs, written independently of gradix, in NumPy.

    python3 examples/reference.py --list
    python3 examples/reference.py NAME data.npz out.npz

Every example NAME.gx has a function NAME here that maps a dict of its inputs to a dict of its
results. Sizes come from the shapes of the arrays.
"""

import inspect
import math
import sys

try:
    import numpy as np
except ImportError:
    np = None  # enough for --list

EXAMPLES = {}
# The same functions as they stand below.
FUNCTIONS = {}


def example(function):
    """Registers `function`, whose parameters are the names of the inputs, as a dict -> dict."""
    names = list(inspect.signature(function).parameters)

    def reference(inputs: dict) -> dict:
        results = function(*(np.asarray(inputs[name], dtype=float) for name in names))
        return {name: np.asarray(value, dtype=float) for name, value in results.items()}

    reference.__name__ = function.__name__
    EXAMPLES[function.__name__] = reference
    FUNCTIONS[function.__name__] = function
    return reference


def build(shape, element):
    """The array of `shape` whose elements are element(i, j, ...)."""
    result = np.zeros([max(0, extent) for extent in shape])
    for index in np.ndindex(*result.shape):
        result[index] = element(*index)
    return result


def at(x, *index, outside=0.0):
    """x[index], or `outside` where the index leaves x."""
    return x[index] if all(0 <= i < n for i, n in zip(index, x.shape)) else outside


def softmax(x):
    e = np.exp(x)
    return e / e.sum(-1, keepdims=True)


def pairwise(x, y):
    """Squared distances of the rows of x to the rows of y."""
    return ((x[:, None, :] - y[None, :, :]) ** 2).sum(-1)


def laplacian(u):
    """Five-point Laplacian on a torus."""
    return sum(np.roll(u, s, axis) for s in (1, -1) for axis in (0, 1)) - 4 * u


# The paper


@example
def paper(a, b, c, d):
    K = a.shape[1]
    return dict(f=build((len(a), len(b)), lambda i, j: math.exp(
        -sum((a[i, k] + b[j, k]) ** 2 * c[i, i] + d[i + k] ** 3 for k in range(K)))))


@example
def f1(x):
    return dict(f=np.sin(x))


@example
def f2(x, y):
    return dict(f=x[:, None] * y)


@example
def f3(x):
    return dict(f=np.diag(x) ** 3)


@example
def f4(x, y):
    return dict(f=x @ y)


@example
def f5(x):
    return dict(f=np.exp(x).reshape(-1, 4))


# Linear algebra


@example
def matmul(a, b):
    return dict(c=a @ b)


@example
def batched_matmul(a, b):
    return dict(c=a @ b.transpose(0, 2, 1))


@example
def bilinear(x, z, w, b):
    return dict(y=np.einsum("ni,oij,nj->no", x, w, z) + b)


@example
def mttkrp(x, b, c):
    return dict(y=np.einsum("ijk,jr,kr->ir", x, b, c))


@example
def trace(a):
    return dict(t=np.trace(a), d=np.diag(a), r=np.diag(a[:, ::-1]))


@example
def tropical(a, b):
    return dict(c=(a[:, :, None] + b[None, :, :]).max(1))


# Convolutions and filters


@example
def conv1d(x, w, b):
    (N, C, T), (O, _, K) = x.shape, w.shape
    length = (T - 3 * (K - 1) - 1) // 2 + 1
    return dict(y=build((N, O, length), lambda n, o, t: b[o] + sum(
        x[n, c, 2 * t + 3 * k] * w[o, c, k] for c in range(C) for k in range(K))))


@example
def conv2d(x, w):
    (C, H, W), (O, _, K, _) = x.shape, w.shape
    before = K // 2
    padded = np.pad(x, ((0, 0), (before, K), (before, K)))
    return dict(y=build((O, H, W), lambda o, i, j: (w[o] * padded[:, i:i + K, j:j + K]).sum()))


@example
def depthwise_conv(x, w):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    return dict(y=build(x.shape, lambda c, i, j: (w[c] * padded[c, i:i + 3, j:j + 3]).sum()))


@example
def conv_transpose(x, w):
    (C, N), (_, O, K) = x.shape, w.shape
    y = np.zeros((O, 2 * N + K - 2))
    for i in range(N):
        for k in range(K):
            y[:, 2 * i + k] += x[:, i] @ w[:, :, k]
    return dict(y=y)


@example
def circular_conv(x, h):
    return dict(y=np.fft.ifft(np.fft.fft(x) * np.fft.fft(h)).real)


@example
def cross_correlation(a, b):
    return dict(y=np.correlate(b, a, "full"))


@example
def template_match(x, t):
    (H, W), (P, Q) = x.shape, t.shape
    return dict(s=build((H - P + 1, W - Q + 1), lambda i, j: ((x[i:i + P, j:j + Q] - t) ** 2).sum()))


@example
def causal_filter(x, h):
    return dict(y=np.convolve(x, h)[:len(x)] if len(x) else x)


@example
def cumulative(x):
    return dict(s=np.cumsum(x), g=np.cumprod(1 + x / 10))


@example
def leaky_integrator(x, a):
    v, state = [], 0.0
    for value in x:
        state = state / (1 + math.exp(-a)) + value
        v.append(state)
    return dict(v=v)


@example
def rnn(x, w, u, h0):
    h = h0
    for step in x:
        h = np.tanh(w @ step + u @ h)
    return dict(h3=h)


# Loops over time


@example
def linear_recurrence(a, b, h0):
    h, state = [], h0
    for factor, term in zip(a, b):
        state = factor * state + term
        h.append(state)
    return dict(h=h)


@example
def prefix(x):
    return dict(s=np.cumsum(x), p=np.cumprod(1 + x / 10), m=np.maximum.accumulate(x))


@example
def summed_area(x):
    return dict(s=x.cumsum(0).cumsum(1))


@example
def tree_sum(x):
    return dict(y=x.sum() ** 2)


@example
def selective_scan(x, d, a, b, c):
    N, T, C = x.shape
    h, y = np.zeros((N, C, a.shape[1])), np.zeros((N, T, C))
    for t in range(T):
        h = np.exp(d[:, t, :, None] * a) * h + (d * x)[:, t, :, None] * b[:, t, None, :]
        y[:, t] = np.einsum("ns,nks->nk", c[:, t], h)
    return dict(y=y)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


@example
def gru(x, w, u):
    h, states = np.zeros(u.shape[1]), []
    for step in x:
        z, r = (sigmoid(w[q] @ step + u[q] @ h) for q in (0, 1))
        h = (1 - z) * np.tanh(w[2] @ step + r * (u[2] @ h)) + z * h
        states.append(h)
    return dict(h=states)


@example
def lstm(x, w, u, b):
    h = c = np.zeros((x.shape[1], u.shape[1]))
    states = []
    for step in x:
        i, f, g, o = (step @ w[q].T + h @ u[q].T + b[q] for q in range(4))
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        states.append(h)
    return dict(h=states)


@example
def heat_steps(u0, q, r):
    states = [u0]
    for source in q:
        u = states[-1]
        states.append(u + r * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) + source)
    return dict(u=states)


@example
def wave_steps(u0, c, d):
    states = [u0, u0]
    while len(states) < len(d):
        u = np.pad(states[-1], 1)
        states.append(2 * states[-1] - states[-2] + c**2 / 4 * (u[:-2] - 2 * states[-1] + u[2:]))
    traces = np.array([state[len(u0) // 2] for state in states[: len(d)]])
    return dict(loss=((traces - d) ** 2).sum())


@example
def gray_scott_steps(u0, v0, f):
    u, v = u0, v0
    for feed in f:
        reaction = u * v**2
        u, v = (
            u - reaction + feed * (1 - u) + 0.2 * laplacian(u),
            v + reaction - (feed + 0.06) * v + 0.1 * laplacian(v),
        )
    return dict(loss=(v**2).sum())


@example
def leapfrog(q0, p0, k):
    places, momenta = [q0], [p0]
    for strength in k:
        momenta.append(momenta[-1] - 0.1 * strength * np.sin(places[-1]))
        places.append(places[-1] + 0.1 * momenta[-1])
    return dict(q=places, p=momenta)


@example
def runge_kutta(y0, f):
    states = [y0]
    for force in f:
        y = states[-1]
        slope = lambda y: np.array([y[1], force - np.sin(y[0])])  # noqa: E731
        k1 = slope(y)
        k2 = slope(y + 0.05 * k1)
        k3 = slope(y + 0.05 * k2)
        k4 = slope(y + 0.1 * k3)
        states.append(y + 0.1 / 6 * (k1 + 2 * k2 + 2 * k3 + k4))
    return dict(y=states)


@example
def crf(e, w):
    a = e[0]
    for scores in e[1:]:
        a = scores + np.log(np.exp(a[:, None] + w).sum(0))
    return dict(z=np.log(np.exp(a).sum()))


@example
def hmm(e, w):
    a = np.exp(e[0])
    for scores in e[1:]:
        a = np.exp(scores) * (a @ np.exp(w))
    return dict(loglik=np.log(a.sum()))


@example
def viterbi(e, w):
    v = e[0]
    for scores in e[1:]:
        v = scores + (v[:, None] + w).max(0)
    return dict(best=v.max())


@example
def soft_dtw(x, y):
    r = np.full((len(x) + 1, len(y) + 1), 20.0)
    r[0, 0] = 0
    for i, j in np.ndindex(len(x), len(y)):
        neighbours = np.array([r[i, j + 1], r[i + 1, j], r[i, j]])
        r[i + 1, j + 1] = (x[i] - y[j]) ** 2 - np.log(np.exp(-neighbours).sum())
    return dict(d=r[-1, -1])


@example
def edit_distance(c, gap):
    d = np.zeros((c.shape[0] + 1, c.shape[1] + 1))
    down, right = (gap**2 * (1 + np.arange(n) / by) for n, by in zip(d.shape, (9, 10)))
    d[1:, 0], d[0, 1:] = np.cumsum(down[1:]), np.cumsum(right[1:])
    for i, j in np.ndindex(*c.shape):
        d[i + 1, j + 1] = min(d[i, j] + c[i, j], d[i, j + 1] + down[i + 1], d[i + 1, j] + right[j + 1])
    return dict(y=d[-1, -1])


@example
def kalman(y, q, r):
    mean, variance, means, nll = 0.0, 1.0, [], 0.0
    for value in y:
        predicted = variance + q**2 + 0.1
        spread = predicted + r**2 + 0.1
        nll += (value - mean) ** 2 / spread + np.log(spread)
        mean += predicted / spread * (value - mean)
        variance = (1 - predicted / spread) * predicted
        means.append(mean)
    return dict(m=means, nll=nll)


@example
def sinkhorn(c, e):
    N, M = c.shape
    v = np.ones(M)
    for strength in e:
        kernel = np.exp(-c * (2 + strength))
        u = 1 / N / (kernel @ v)
        v = 1 / M / (kernel.T @ u)
    return dict(cost=(c * u[:, None] * kernel * v).sum())


@example
def cholesky(B):
    return dict(L=np.linalg.cholesky(B @ B.T + np.eye(len(B))))


@example
def lu(B):
    F = B + (len(B) + 1) * np.eye(len(B))
    for k in range(len(F)):
        F[k + 1 :, k] /= F[k, k]
        F[k + 1 :, k + 1 :] -= np.outer(F[k + 1 :, k], F[k, k + 1 :])
    return dict(F=F)


@example
def substitution(L, b):
    lower = np.tril(L) + 2 * np.eye(len(b))
    return dict(x=np.linalg.solve(lower.T, np.linalg.solve(lower, b)))


@example
def tridiagonal(a, b, c, f):
    matrix = np.diag(3 + b) + np.diag(a[1:], -1) + np.diag(c[:-1], 1)
    return dict(x=np.linalg.solve(matrix, f))


# Pooling and resampling


@example
def max_pool(x):
    C, H, W = x.shape
    return dict(y=x[:, :H // 2 * 2, :W // 2 * 2].reshape(C, H // 2, 2, W // 2, 2).max((2, 4)))


@example
def avg_pool(x):
    C, H, W = x.shape
    return dict(y=build((C, (H - 1) // 2, (W - 1) // 2), lambda c, i, j: x[
        c, 2 * i:2 * i + 3, 2 * j:2 * j + 3].mean()))


@example
def pixel_shuffle(x):
    C, H, W = x.shape[0] // 4, *x.shape[1:]
    return dict(y=x.reshape(C, 2, 2, H, W).transpose(0, 3, 1, 4, 2).reshape(C, 2 * H, 2 * W))


@example
def upsample(x):
    return dict(y=x.repeat(2, axis=1).repeat(2, axis=2))


@example
def haar(x):
    even, odd = x[:len(x) // 2 * 2:2], x[1::2]
    return dict(low=(even + odd) / math.sqrt(2), high=(even - odd) / math.sqrt(2))


@example
def dft(x):
    return dict(p=abs(np.fft.fft(x)) ** 2 / len(x))


# Attention and its surroundings


@example
def attention(q, k, v):
    p = softmax(q @ k.T / math.sqrt(q.shape[1]))
    return dict(y=p @ v, p=p)


@example
def causal_attention(q, k, v):
    s = q @ k.T / math.sqrt(q.shape[1])
    return dict(y=softmax(np.where(np.tri(len(q)) > 0, s, -np.inf)) @ v)


@example
def positional_encoding(x, scale):
    D = x.shape[1]

    def encoding(t, c):
        angle = t / 10000 ** (c // 2 * 2 / D)
        return math.cos(angle) if c % 2 else math.sin(angle)

    return dict(y=x + scale * build(x.shape, encoding))


@example
def rope(x):
    T, D = x.shape[0], x.shape[1] // 2
    angle = np.arange(T)[:, None] / 100 ** (np.arange(D) / D)
    z = (x[:, 0::2] + 1j * x[:, 1::2]) * np.exp(1j * angle)
    return dict(y=np.stack([z.real, z.imag], -1).reshape(x.shape))


# Normalisation and networks


@example
def layer_norm(x, g, b):
    return dict(y=g * (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 0.01) + b)


@example
def batch_norm(x, g, b):
    x = x.transpose(0, 2, 1)
    y = g * (x - x.mean((0, 1))) / np.sqrt(x.var((0, 1)) + 0.01) + b
    return dict(y=y.transpose(0, 2, 1))


@example
def lrn(x):
    return dict(y=build(x.shape, lambda c, i: x[c, i] / (
        1 + 0.5 * (x[max(0, c - 2):c + 3, i] ** 2).sum()) ** 0.75))


@example
def gelu_ffn(x, w1, w2):
    h = x @ w1.T
    return dict(y=x + build(h.shape, lambda *i: h[i] * (1 + math.erf(h[i] / math.sqrt(2))) / 2) @ w2.T)


@example
def mlp(x, w1, b1, w2, b2, t):
    p = softmax(np.tanh(x @ w1.T + b1) @ w2.T + b2)
    return dict(loss=-(t * np.log(p)).sum() / len(x))


@example
def logsumexp(x):
    return dict(y=np.log(np.exp(x).sum(1)))


@example
def straight_through(x, w, y):
    return dict(loss=((x @ (np.round(8 * w) / 8) - y) ** 2).mean())


# Losses and likelihoods


@example
def cross_entropy(x, t):
    p = softmax(x)
    return dict(loss=-(t * np.log(p)).sum() / len(x) + np.log(np.exp(x).sum(1)) @ (1 - t.sum(1)) / len(x), p=p)


@example
def ridge(x, y, w, b):
    return dict(loss=((x @ w + b - y) ** 2).mean() + 0.1 * (w ** 2).sum())


@example
def huber(x, y, w):
    r = abs(x @ w - y)
    return dict(loss=np.where(r <= 0.5, r ** 2 / 2, 0.5 * r - 0.125).mean())


@example
def hinge(x, y, w, b):
    return dict(loss=np.maximum(0, 1 - y * (x @ w + b)).mean() + 0.05 * (w ** 2).sum())


@example
def quantile(x, y, w):
    r = y - x @ w
    return dict(loss=np.where(r > 0, 0.9 * r, -0.1 * r).mean())


@example
def gamma_nll(x, a, b, y):
    loss = 0.0
    for u, v, z in zip(x @ a, x @ b, y ** 2 + 0.1):
        s, r = 1 + math.exp(u), math.exp(v)
        loss -= s * v - math.lgamma(s) + (s - 1) * math.log(z) - r * z
    return dict(loss=loss)


@example
def mixture(x, mu, a):
    density = np.exp(-(x[:, None] - mu) ** 2 / 2) / math.sqrt(2 * math.pi)
    return dict(p=np.prod(density @ softmax(a)))


# Distances, kernels, particles


@example
def cosine_similarity(x, y):
    a, b = (x ** 2).sum(1) + 0.01, (y ** 2).sum(1) + 0.01
    return dict(s=x @ y.T / np.sqrt(np.outer(a, b)))


@example
def chamfer(x, y):
    r = pairwise(x, y)
    return dict(loss=r.min(1).mean() + r.min(0).mean())


@example
def rbf(x, z, w):
    return dict(y=np.exp(-pairwise(x, z)) @ w)


@example
def periodic_kernel(x, log_scale, log_length, log_period, log_noise):
    scale, length, period, noise = map(math.exp, (log_scale, log_length, log_period, log_noise))
    u = np.sin(np.pi * (x[:, None] - x) / period)
    return dict(k=scale ** 2 * np.exp(-2 * (u / length) ** 2) + noise ** 2 * np.eye(len(x)))


@example
def nbody(x, m):
    a = np.zeros_like(x)
    for i in range(len(x)):
        for j in range(len(x)):
            r = x[j] - x[i]
            a[i] += m[j] * r / math.sqrt(r @ r + 0.1) ** 3
    return dict(a=a)


@example
def lennard_jones(x):
    q = 1 / (0.5 + pairwise(x, x) ** 3)
    return dict(energy=4 * np.triu(q ** 2 - q, 1).sum())


# Stencils and images


@example
def heat2d(u, a):
    v = u.copy()
    v[1:-1, 1:-1] += a * laplacian(u)[1:-1, 1:-1]
    return dict(v=v)


@example
def wave1d(u, v, c):
    return dict(w=2 * u - v + c ** 2 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)))


@example
def wave2d(u, v, c):
    return dict(w=2 * u - v + c ** 2 * laplacian(np.pad(u, 1))[1:-1, 1:-1])


@example
def stencil5(u, w):
    return dict(y=np.tanh(w[0] * u[1:-1, 1:-1] + w[1] * u[:-2, 1:-1] + w[2] * u[2:, 1:-1]
                          + w[3] * u[1:-1, :-2] + w[4] * u[1:-1, 2:]))


@example
def perona_malik(u, a):
    def inflow(i, j):
        steps = [(0, 1), (1, 0), (0, -1), (-1, 0)]
        drops = [at(u, i + di, j + dj, outside=u[i, j]) - u[i, j] for di, dj in steps]
        return sum(drop / (1 + drop ** 2) for drop in drops)

    return dict(v=u + a * build(u.shape, inflow))


@example
def gray_scott(u, v, feed, kill):
    reaction = u * v ** 2
    return dict(u1=u + 0.16 * laplacian(u) - reaction + feed * (1 - u),
                v1=v + 0.08 * laplacian(v) + reaction - (feed + kill) * v)


@example
def blur_reflect(x, w):
    padded = np.pad(x, 2, mode="reflect")
    return dict(y=build(x.shape, lambda i, j: w @ padded[i:i + 5, j:j + 5] @ w))


@example
def edges_clamp(x):
    p = np.pad(x, 1, mode="edge")
    gy, gx = (p[2:, 1:-1] - p[:-2, 1:-1]) / 2, (p[1:-1, 2:] - p[1:-1, :-2]) / 2
    return dict(e=np.sqrt(gx ** 2 + gy ** 2 + 0.1))


@example
def total_variation(u):
    down, right = np.diff(u, axis=0)[:, :-1], np.diff(u, axis=1)[:-1, :]
    return dict(tv=np.sqrt(down ** 2 + right ** 2 + 0.1).sum())


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(sorted(EXAMPLES)))
    elif len(arguments) == 3 and arguments[0] in EXAMPLES:
        if np is None:
            sys.exit("reference.py: this needs NumPy")
        name, data, out = arguments
        np.savez(out, **EXAMPLES[name](dict(np.load(data))))
    elif len(arguments) == 3:
        sys.exit(f"reference.py: no example is called {arguments[0]!r}; see --list")
    else:
        sys.exit(__doc__.strip())


if __name__ == "__main__":
    main(sys.argv[1:])
