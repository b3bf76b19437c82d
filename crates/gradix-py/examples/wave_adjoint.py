"""The adjoint of a wave equation: seeing inside a body with sound.

Sound with the pressure u(t, x) runs through a body with the speed c(x): u_tt + 2 s u_t = c^2 (u_xx + u_yy), where the
damping s is 0 except near the boundary, where it swallows the waves. On a grid of width h and with time steps dt,

    next = (2 u - (1 - s dt) prev + (c dt / h)^2 (sum of the four neighbours of u - 4 u)) / (1 + s dt).

All steps together are one gradix program, for all experiments (one for each source) at once: a definition that reads itself
at the two times before. Each source plays a signal where it stands, and microphones in a ring record u. The misfit is

    J = 1/2 sum over t, sources, microphones of (recorded - measured)^2.

The derivative of J by the speed at every place costs about as much as a few simulations, by the adjoint method: a wave that
runs backwards in time, with the residuals at the microphones as its sources. `MISFIT.value_and_grad` is that solver, with
its boundary, and nobody had to derive it. Descending along this derivative turns recordings into a picture of the body.
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

WAVES = """
input courant[N, N], damping[N, N], source[S, N, N], signal[T]

laplacian[t in 0..T, q in 0..S, i in 0..N, j in 0..N] = if t == 0 then 0 else
    u[t - 1, q, clamp(i - 1), j] + u[t - 1, q, clamp(i + 1), j] + u[t - 1, q, i, clamp(j - 1)] +
    u[t - 1, q, i, clamp(j + 1)] - 4 * u[t - 1, q, i, j]
u[t in 0..T, q in 0..S, i in 0..N, j in 0..N] = signal[t] * source[q, i, j] +
    (2 * pad(u[t - 1, q, i, j], 0) - (1 - damping[i, j]) * pad(u[t - 2, q, i, j], 0) +
     courant[i, j]^2 * laplacian[t, q, i, j]) / (1 + damping[i, j])
"""
SIMULATION = gx.compile(WAVES + "output u")

# What was measured is given everywhere, and compared where microphones are.
MISFIT = gx.compile(
    WAVES
    + """
input microphone[N, N], measured[T, S, N, N]
misfit = sum[t, q, i, j] microphone[i, j] * (u[t, q, i, j] - measured[t, q, i, j])^2 / 2
output misfit
"""
)

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

    def maps(self) -> tuple[Array, Array]:
        """A map for each source and one of all microphones: 1 where they stand."""
        source, microphone = np.zeros((len(self.sources[0]), SIZE, SIZE)), np.zeros((SIZE, SIZE))
        source[np.arange(len(source)), *self.sources] = 1
        microphone[self.microphones] = 1
        return source, microphone


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


def simulate(speed: Array, setup: Experiment) -> Array:
    """The pressure at all times, for all sources and everywhere."""
    source, _ = setup.maps()
    return SIMULATION(COURANT * speed, setup.damping, source, setup.signal)


def misfit_and_gradient(speed: Array, setup: Experiment, measured: Array) -> tuple[float, Array]:
    """The misfit J, and its derivative by the speed."""
    source, microphone = setup.maps()
    misfit, derivatives = MISFIT.value_and_grad(
        COURANT * speed, setup.damping, source, setup.signal, microphone, measured, wrt="courant"
    )
    return float(misfit), COURANT * derivatives.courant


def check_adjoint(setup: Experiment, measured: Array, rng: np.random.Generator) -> float:
    """The relative difference between the derivative in a random direction and a central difference."""
    speed, direction, step = np.ones((SIZE, SIZE)), rng.standard_normal((SIZE, SIZE)), 1e-5
    exact = np.sum(misfit_and_gradient(speed, setup, measured)[1] * direction)
    above, below = (misfit_and_gradient(speed + sign * step * direction, setup, measured)[0] for sign in (1, -1))
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
    measured = simulate(truth, setup)
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
    draw(setup, truth, found, measured[73, 5], misfits, folder / "wave_adjoint.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures"
    target.mkdir(parents=True, exist_ok=True)
    main(target)
