"""Programs that several tests use, each with shapes for its arguments."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import gradix as gx

ROOT = Path(__file__).resolve().parents[3]

RBF = """
input x[N, D], z[M, D], w[M]
y[i] = sum[j] exp(-sum[d] (x[i, d] - z[j, d])^2) * w[j]
"""

# Strides that are negative or not one, diagonals, guards, triangles, several accesses of one array, names that collide.
NASTY: dict[str, tuple[str, list[tuple[int, ...]]]] = {
    "diagonal": ("input x[N, N]; y[i] = x[i, i]^3", [(4, 4)]),
    "stride": ("input x[N]; y[i in 0..N//2] = sin(x[2*i])", [(7,)]),
    "reversed": ("input x[N]; y[i] = x[N - 1 - i] * x[i]", [(5,)]),
    "window": ("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]", [(9,), (3,)]),
    "dilated": ("input x[N], w[K]; y[i in 0..N - 3*K + 3] = sum[k] x[i + 3*k]^2 * w[k]", [(11,), (3,)]),
    "triangle": ("input x[N, N]; y[i] = sum[j in 0..=i] x[i, j] * x[j, i]", [(5, 5)]),
    "guard": ("input x[N]; y[i] = if i > 0 and x[i - 1] > 0 then x[i] * x[i - 1] else x[i]^2", [(6,)]),
    "periodic": ("input x[N]; y[i in 0..N] = x[wrap(i + 1)] * x[wrap(i - 1)]", [(5,)]),
    "rank": ("input x[N]; y[i in 0..3, j in 0..3] = x[2*i + 2*j]^2", [(9,)]),
    "quotient": ("input x[N]; y[i in 0..2*N] = x[i // 2] * i", [(4,)]),
    "product": ("input x[N]; y = prod[i] x[i]", [(4,)]),
    "extreme": ("input x[N, M]; y[i] = max[j] x[i, j]", [(3, 4)]),
    "scalar": ("input t, x[N]; y[i] = exp(t * x[i])", [(), (3,)]),
    "collision": ("input x[N], df[N]; f[dx] = x[dx] * df[dx]", [(3,), (3,)]),
    "chain": ("input x[N]; a[i] = x[i]^2; b[i] = a[i] * sum[j] a[j]; c = sum[i] b[i] * x[i]", [(4,)]),
}


def arrays(shapes: list[tuple[int, ...]], seed: int = 0) -> list[np.ndarray]:
    """Random arrays."""
    random = np.random.default_rng(seed)
    return [random.uniform(-1, 1, shape) for shape in shapes]


def nasty(name: str) -> tuple[gx.Program, list[np.ndarray]]:
    """One of the programs, and arguments for it."""
    text, shapes = NASTY[name]
    return gx.compile(text), arrays(shapes)


def numeric_jacobian(function, given: list[np.ndarray], place: int, step: float = 1e-6) -> np.ndarray:
    """The derivatives of a function's result by one of its arguments, by central differences."""
    columns = []
    for index in np.ndindex(given[place].shape):
        moved = []
        for sign in (1, -1):
            changed = [array.copy() for array in given]
            changed[place][index] += sign * step
            moved.append(np.asarray(function(*changed)))
        columns.append((moved[0] - moved[1]) / (2 * step))
    return np.stack(columns, -1).reshape(*np.shape(columns[0]), *given[place].shape)
