"""Gaussian-process regression that learns which inputs matter.

The data are n points x[i, :] with values y[i] = f(x[i, :]) + noise. The prior covariance of f is the squared
exponential kernel with one length scale for each input dimension,

    k[i, j] = a^2 exp(-1/2 sum[d] ((x[i, d] - z[j, d]) / l[d])^2),

so that the values have the covariance C = k(x, x) + s^2 I. The log marginal likelihood and its derivative by C are

    L = -1/2 y' C^-1 y - 1/2 log det C - n/2 log 2 pi,        dL/dC = 1/2 (b b' - C^-1),    b = C^-1 y.

The kernel matrix is a gradix program. The rest is linear algebra in NumPy, and `kernel.grad` carries dL/dC on to the
parameters. All parameters are logarithms, so that they are free to take any value. An input on which f does not depend
gets a long length scale: the kernel no longer sees it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

import gradix as gx

matplotlib.use("Agg")

Array = np.ndarray

KERNEL = gx.compile("""
input x[N, D], z[M, D], log_l[D], log_a
k[i, j] = exp(2 * log_a - sum[d] ((x[i, d] - z[j, d]) * exp(-log_l[d]))^2 / 2)
""")

INPUTS = 5
NOISE = 0.1


class Parameters(NamedTuple):
    """The logarithms of the length scales, the amplitude and the standard deviation of the noise."""

    log_l: Array
    log_a: float
    log_s: float


def truth(x: Array) -> Array:
    """The function to find: it is steep in input 0, slow in input 1, and does not depend on the others."""
    return np.sin(5 * x[:, 0]) + 0.8 * x[:, 1] ** 2


def sample(count: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Random points in a cube, and noisy values there."""
    x = rng.uniform(-1, 1, (count, INPUTS))
    return x, truth(x) + NOISE * rng.standard_normal(count)


def likelihood(p: Parameters, x: Array, y: Array) -> tuple[float, Parameters]:
    """The log marginal likelihood, and its derivatives by the parameters."""
    variance = np.exp(2 * p.log_s)
    covariance = KERNEL(x, x, p.log_l, p.log_a) + variance * np.eye(len(y))
    factor = np.linalg.cholesky(covariance)
    inverse = np.linalg.inv(covariance)
    b = inverse @ y
    value = -0.5 * y @ b - np.log(np.diag(factor)).sum() - 0.5 * len(y) * np.log(2 * np.pi)
    dk = 0.5 * (np.outer(b, b) - inverse)
    g = KERNEL.grad(x, x, p.log_l, p.log_a, dk=dk, wrt=("log_l", "log_a"))
    return value, Parameters(g.log_l, g.log_a, 2 * variance * np.trace(dk))


def fit(x: Array, y: Array, steps: int = 250, rate: float = 0.05) -> tuple[Parameters, list[float]]:
    """Climbs the likelihood with Adam, and returns the parameters and the likelihood at each step."""
    flat = np.concatenate([np.zeros(INPUTS), [0.0, np.log(0.5)]])
    mean, square = np.zeros_like(flat), np.zeros_like(flat)
    values = []
    for step in range(1, steps + 1):
        value, gradient = likelihood(unpack(flat), x, y)
        values.append(value)
        slope = np.hstack(gradient)
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        flat += rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
    return unpack(flat), values


def unpack(flat: Array) -> Parameters:
    return Parameters(flat[:-2], flat[-2], flat[-1])


def predict(p: Parameters, x: Array, y: Array, at: Array) -> tuple[Array, Array]:
    """The mean and the standard deviation of f at other points."""
    factor = np.linalg.cholesky(KERNEL(x, x, p.log_l, p.log_a) + np.exp(2 * p.log_s) * np.eye(len(y)))
    cross = KERNEL(x, at, p.log_l, p.log_a)
    whitened = np.linalg.solve(factor, cross)
    mean = whitened.T @ np.linalg.solve(factor, y)
    return mean, np.sqrt(np.maximum(np.exp(2 * p.log_a) - (whitened**2).sum(0), 0))


def check_gradient(x: Array, y: Array, rng: np.random.Generator) -> float:
    """The relative difference between the derivative in a random direction and a central difference."""
    flat, direction, step = 0.3 * rng.standard_normal(INPUTS + 2), rng.standard_normal(INPUTS + 2), 1e-5
    exact = np.hstack(likelihood(unpack(flat), x, y)[1]) @ direction
    above, below = (likelihood(unpack(flat + sign * step * direction), x, y)[0] for sign in (1, -1))
    return float(abs((above - below) / (2 * step) - exact) / abs(exact))


def draw_slice(axes: Axes, p: Parameters, x: Array, y: Array, along: int) -> None:
    """The posterior along one input, all others 0. Each point is moved there by the change of the mean."""
    line = np.linspace(-1, 1, 200)
    at = np.zeros((len(line), INPUTS))
    at[:, along] = line
    mean, deviation = predict(p, x, y, at)
    moved = np.zeros_like(x)
    moved[:, along] = x[:, along]
    shown = y - predict(p, x, y, x)[0] + predict(p, x, y, moved)[0]
    low, high = mean - 2 * deviation, mean + 2 * deviation
    axes.fill_between(line, low, high, color="C0", alpha=0.25, lw=0, label="mean ± 2σ")
    axes.plot(line, mean, color="C0")
    axes.plot(line, truth(at), color="black", lw=1, ls="--", label="truth")
    axes.plot(x[:, along], shown, ".", color="C1", ms=4, label="data, moved to the slice")
    axes.set(title=f"along input {along}, others 0", xlabel=f"input {along}", xlim=(-1, 1))


def draw(p: Parameters, x: Array, y: Array, path: Path) -> None:
    figure, (first, second, scales) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    draw_slice(first, p, x, y, 0)
    draw_slice(second, p, x, y, 1)
    first.set_ylabel("f")
    first.set_ylim(-1.5, 2.1)
    first.legend(fontsize=7.5, loc="upper right", ncols=2)
    second.sharey(first)
    length = np.exp(p.log_l)
    names = [f"input {d}" for d in range(INPUTS)]
    bars = scales.barh(names, length, color=["C0" if scale < 5 else "0.75" for scale in length])
    labels = [f"{scale:.2f}" if scale < 10 else f"{scale:.0f}" for scale in length]
    scales.bar_label(bars, labels, padding=9, fontsize=8)
    scales.axvline(2, color="black", lw=1, ls=":")
    scales.text(2.3, -0.75, "width of the data", fontsize=8, va="center")
    scales.set(xscale="log", title="learned length scales", xlabel="length scale", xlim=(0.1, 8 * length.max()))
    scales.set_ylim(INPUTS - 0.4, -1.1)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(folder: Path) -> None:
    rng = np.random.default_rng(1)
    x, y = sample(120, rng)
    difference = check_gradient(x, y, rng)
    print(f"gradient of the likelihood beside a finite difference: relative difference {difference:.1e}")
    assert difference < 1e-6

    p, values = fit(x, y)
    length, noise = np.exp(p.log_l), np.exp(p.log_s)
    print(f"log likelihood: {values[0]:.1f} at the start, {values[-1]:.1f} after {len(values)} steps")
    print("length scales: " + ", ".join(f"{scale:.2f}" for scale in length))
    print(f"noise: {noise:.3f}, and {NOISE} in truth")
    assert length[0] < length[1] < 3 and length[2:].min() > 5
    assert abs(noise - NOISE) < 0.25 * NOISE

    at = rng.uniform(-1, 1, (1000, INPUTS))
    mean, deviation = predict(p, x, y, at)
    error = np.sqrt(np.mean((mean - truth(at)) ** 2))
    inside = np.mean(np.abs(mean - truth(at)) < 2 * deviation)
    print(f"at 1000 new points: error {error:.3f}, and {inside:.0%} of the truth is inside ± 2σ")
    assert error < NOISE and inside > 0.85
    draw(p, x, y, folder / "gaussian_process.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures"
    target.mkdir(parents=True, exist_ok=True)
    main(target)
