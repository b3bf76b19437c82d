"""The adjoint of a wave equation: seeing inside a body with sound.

Sound with the pressure u(t, x) runs through a body with the speed c(x): u_tt + 2 s u_t = c^2 (u_xx + u_yy), where the
damping s is 0 except near the boundary, where it swallows the waves. On a grid of width h and with time steps dt,

    next = (2 u - (1 - s dt) prev + (c dt / h)^2 (sum of the four neighbours of u - 4 u)) / (1 + s dt).

This step is a gradix program, for all experiments (one for each source) at once. A simulation is a loop of such steps:
u[t+1] = step(u[t], u[t-1], c), to which the source adds its signal. Microphones in a ring record u. The misfit is

    J = 1/2 sum over t, sources, microphones of (recorded - measured)^2.

The derivative of J by the speed at every place costs about as much as a few simulations, by the adjoint method. Let
v[t] be the derivative of J by u[t], starting with the residuals at the microphones. The chain rule through one step,

    v[t] += v[t+1] dnext/du,    v[t-1] += v[t+1] dnext/dprev,    dJ/dc += v[t+1] dnext/dc,

is exactly `step.grad(u[t], u[t-1], c, ..., dnext=v[t+1])`. So the adjoint solver, with its boundary, is the same loop
backwards, and nobody had to derive it. Descending along this derivative turns recordings into a picture of the body.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import matplotlib
import matplotlib.pyplot as plt
import numpy as np

import gradix as gx

matplotlib.use("Agg")

Array = np.ndarray

STEP = gx.compile("""
input u[S, N, N], prev[S, N, N], courant[N, N], damping[N, N]

laplacian[q, i, j] = u[q, clamp(i - 1), j] + u[q, clamp(i + 1), j] + u[q, i, clamp(j - 1)] + u[q, i, clamp(j + 1)] -
    4 * u[q, i, j]
next[q, i, j] = (2 * u[q, i, j] - (1 - damping[i, j]) * prev[q, i, j] + courant[i, j]^2 * laplacian[q, i, j]) /
    (1 + damping[i, j])
""")

# A weighted mean over five by five points. It removes from the derivative what is finer than the waves can see.
BLUR = gx.compile("""
input x[N, M]
w[k in 0..5] = exp(-(k - 2)^2 / 2)
y[i in 0..N, j in 0..M] = sum[k, l] w[k] * w[l] * x[clamp(i + k - 2), clamp(j + l - 2)] / (sum[k] w[k])^2
""")

SIZE = 70
TIMES = 170
COURANT = 0.5
"""The speed of sound outside of the body, in grid points per step."""


class Experiment(NamedTuple):
    """Where the sources and microphones are, what the sources play, and how the boundary dampens."""

    sources: tuple[Array, Array]
    microphones: tuple[Array, Array]
    signal: Array
    damping: Array


def ring(count: int, radius: float) -> tuple[Array, Array]:
    """The rows and columns of points on a circle."""
    angle = 2 * np.pi * np.arange(count) / count
    centre = (SIZE - 1) / 2
    rows, columns = (np.rint(centre + radius * wave(angle)).astype(int) for wave in (np.sin, np.cos))
    return rows, columns


def experiment() -> Experiment:
    time = np.arange(TIMES)
    phase = (np.pi * (time - 22) / 20) ** 2
    from_edge = np.minimum(np.arange(SIZE), SIZE - 1 - np.arange(SIZE))
    depth = np.maximum(1 - np.minimum.outer(from_edge, from_edge) / 10, 0)
    return Experiment(ring(8, 23), ring(48, 23), (1 - 2 * phase) * np.exp(-phase), 0.15 * depth**2)


def body() -> Array:
    """The speed to find, relative to that outside: a body with a slow and a fast lump."""
    i, j = np.mgrid[0:SIZE, 0:SIZE] - (SIZE - 1) / 2

    def lump(row: float, column: float, radius: float) -> Array:
        return 1 / (1 + np.exp((np.hypot(i - row, j - column) - radius) / 0.7))

    return 1 + 0.06 * lump(0, 0, 17) + 0.12 * lump(-5, -6, 5) - 0.14 * lump(5, 6, 4.5)


def simulate(speed: Array, setup: Experiment) -> tuple[Array, Array]:
    """The states u[-1], u[0], u[1], … for all sources, and what the microphones record at each of them."""
    count = len(setup.sources[0])
    states = np.zeros((TIMES + 2, count, SIZE, SIZE))
    for t, played in enumerate(setup.signal):
        STEP(states[t + 1], states[t], COURANT * speed, setup.damping, out=states[t + 2])
        states[t + 2, np.arange(count), *setup.sources] += played
    return states, states[:, :, *setup.microphones]


def misfit_and_gradient(speed: Array, setup: Experiment, measured: Array) -> tuple[float, Array]:
    """The misfit J, and its derivative by the speed."""
    states, recorded = simulate(speed, setup)
    residual = recorded - measured
    slope = np.zeros_like(speed)
    later, now = np.zeros_like(states[0]), np.zeros_like(states[0])
    for t in reversed(range(TIMES)):
        later[:, *setup.microphones] += residual[t + 2]
        g = STEP.grad(
            states[t + 1], states[t], COURANT * speed, setup.damping, dnext=later, wrt=("u", "prev", "courant")
        )
        later, now = now + g.u, g.prev
        slope += COURANT * g.courant
    return 0.5 * np.sum(residual**2), slope


def check_adjoint(setup: Experiment, measured: Array, rng: np.random.Generator) -> float:
    """The relative difference between the derivative in a random direction and a central difference."""
    speed, direction, step = np.ones((SIZE, SIZE)), rng.standard_normal((SIZE, SIZE)), 1e-5
    exact = np.sum(misfit_and_gradient(speed, setup, measured)[1] * direction)
    above, below = (
        0.5 * np.sum((simulate(speed + sign * step * direction, setup)[1] - measured) ** 2) for sign in (1, -1)
    )
    return float(abs((above - below) / (2 * step) - exact) / abs(exact))


def invert(setup: Experiment, measured: Array, inside: Array, steps: int = 60) -> tuple[Array, list[float]]:
    """Finds the speed inside the ring with Adam, from the speed outside as the start."""
    speed = np.ones((SIZE, SIZE))
    mean, square = np.zeros_like(speed), np.zeros_like(speed)
    misfits = []
    for step in range(1, steps + 1):
        misfit, slope = misfit_and_gradient(speed, setup, measured)
        misfits.append(misfit)
        slope = BLUR(slope) * inside
        mean += 0.1 * (slope - mean)
        square += 0.01 * (slope**2 - square)
        rate = 0.01 * np.cos(0.5 * np.pi * (step - 1) / steps)
        speed -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-12)
    return speed, misfits


def draw(setup: Experiment, truth: Array, found: Array, wave: Array, misfits: list[float], path: Path) -> None:
    figure, axes = plt.subplots(1, 5, figsize=(13.5, 3), layout="constrained")
    speeds = {"speed at the start": np.ones_like(truth), "recovered speed": found, "true speed": truth}
    view = slice(9, SIZE - 9)
    bounds = (8.5, SIZE - 9.5, SIZE - 9.5, 8.5)
    limit = 0.7 * np.abs(wave[view, view]).max()
    axes[0].imshow(wave[view, view], cmap="RdBu_r", vmin=-limit, vmax=limit, extent=bounds)
    axes[0].set_title("a wave in the body")
    for place, (title, speed) in zip(axes[1:4], speeds.items(), strict=True):
        image = place.imshow(speed[view, view], cmap="viridis", vmin=0.9, vmax=1.2, extent=bounds)
        place.set_title(title)
    figure.colorbar(image, ax=axes[3], shrink=0.85)
    for place in axes[:4]:
        place.plot(setup.microphones[1], setup.microphones[0], ".", color="black", ms=2)
        place.plot(setup.sources[1], setup.sources[0], "*", color="C1", ms=7)
        place.set(xticks=[], yticks=[])
    axes[4].semilogy(np.array(misfits) / misfits[0])
    axes[4].set(title="misfit beside the start", xlabel="step")
    axes[4].grid(alpha=0.3)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(folder: Path) -> None:
    setup, truth = experiment(), body()
    states, measured = simulate(truth, setup)
    difference = check_adjoint(setup, measured, np.random.default_rng(0))
    print(f"adjoint beside a finite difference: relative difference {difference:.1e}")
    assert difference < 1e-6

    centre = (SIZE - 1) / 2
    inside = np.hypot(*(np.mgrid[0:SIZE, 0:SIZE] - centre)) < 21
    found, misfits = invert(setup, measured, inside)
    print(f"misfit: {misfits[0]:.3g} at the start, {misfits[-1]:.3g} after {len(misfits)} steps")
    before, after = (np.sqrt(np.mean((speed - truth)[inside] ** 2)) for speed in (np.ones_like(truth), found))
    print(f"error of the speed: {before:.3f} at the start, {after:.3f} at the end")
    assert misfits[-1] < misfits[0] / 100
    assert after < before / 3
    draw(setup, truth, found, states[75, 5], misfits, folder / "wave_adjoint.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures"
    target.mkdir(parents=True, exist_ok=True)
    main(target)
