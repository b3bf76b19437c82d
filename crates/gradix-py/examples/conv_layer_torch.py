"""A convolution on a hexagonal lattice, trained in PyTorch to grow snowflakes.

The cells of a hexagonal lattice are stored row by row, and every other row is shifted by half a cell:

    row 0:   o   o   o   o
    row 1:     o   o   o   o
    row 2:   o   o   o   o

So the six neighbours of a cell lie at other columns in even rows than in odd ones, and `torch.nn.Conv2d`, which does
the same in all rows, can't express a filter on this lattice. In index notation it is one line. The cell (r, c) has the
axial coordinate q = c - r // 2. A step by (dr, dq) leads to row r + dr and, as q becomes q + dq, to column

    c + dq - r // 2 + (r + dr) // 2.

The filter has the taps |dr| <= R, |dq| <= R, |dr + dq| <= R: a hexagon. The lattice is periodic from left to right
(wrap) and mirrored at the top and bottom (reflect). gradix derives the transposed maps exactly, and the layer is a
module like any other.

The task is to learn a rule from pictures before and after one step: Packard's snowflakes, where a cell freezes if
exactly one of its neighbours is frozen. A network with this layer learns the rule so well that it grows the same
crystal from a seed. With a `Conv2d` in its place, whose nine taps reach all neighbours in even and in odd rows, it
can't learn the rule, because it does not know which kind of row a cell is in.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from torch import Tensor, nn
from torch.nn import functional

import gradix as gx

matplotlib.use("Agg")

LAYER = gx.compile("""
param R = 1
input x[B, C, H, W], w[F, C, 2*R + 1, 2*R + 1], b[F]

bordered[n, h, r in 0..H + 2*R, c in 0..W + 2*R] = x[n, h, reflect(r - R), wrap(c - R)]
y[n, f, r in 0..H, c in 0..W] = b[f] + sum[h, j, k, R <= j + k <= 3*R] (
    w[f, h, j, k] * bordered[n, h, r + j, c + k - r // 2 + (r + j - R) // 2])
""")
HEX = gx.torch.function(LAYER, threads=1)


class HexConv(nn.Module):
    """A convolution with the nearest neighbours on a hexagonal lattice."""

    def __init__(self, channels: int, filters: int) -> None:
        super().__init__()
        bound = (7 * channels) ** -0.5
        self.weight = nn.Parameter(torch.empty(filters, channels, 3, 3).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(filters).uniform_(-bound, bound))

    def forward(self, x: Tensor) -> Tensor:
        return HEX(x, self.weight, self.bias)


def network(first: nn.Module) -> nn.Module:
    """From a picture to the logarithmic odds that each cell is frozen after a step."""
    return nn.Sequential(first, nn.ReLU(), nn.Conv2d(8, 8, 1), nn.ReLU(), nn.Conv2d(8, 1, 1))


def neighbours(state: np.ndarray) -> np.ndarray:
    """The number of frozen neighbours, written without gradix: row by row, as it stands in books."""
    rows = state.shape[-2]
    count = np.zeros_like(state)
    for r in range(rows):
        above, below = state[..., abs(r - 1), :], state[..., rows - 1 - abs(rows - 2 - r), :]
        shift = -1 if r % 2 else 1
        for row in (above, below):
            count[..., r, :] += row + np.roll(row, shift, -1)
        count[..., r, :] += np.roll(state[..., r, :], 1, -1) + np.roll(state[..., r, :], -1, -1)
    return count


def grow(state: np.ndarray) -> np.ndarray:
    """One step of the rule."""
    return np.maximum(state, neighbours(state) == 1)


def examples(count: int, size: int, rng: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Pictures with random crystals, before and after a step."""
    density = rng.uniform(0, 0.35, (count, 1, 1, 1))
    before = (rng.random((count, 1, size, size)) < density).astype(np.float32)
    return torch.from_numpy(before), torch.from_numpy(grow(before))


def train(model: nn.Module, steps: int, rng: np.random.Generator) -> list[float]:
    """Minimises the cross entropy, and returns it at each step."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    losses = []
    for _ in range(steps):
        before, after = examples(16, 20, rng)
        loss = functional.binary_cross_entropy_with_logits(model(before), after)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def crystals(model: nn.Module, size: int, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """For how many steps each cell of a crystal has been frozen, by the rule and by the network."""
    truth = np.zeros((1, 1, size, size), np.float32)
    truth[..., size // 2, size // 2] = 1
    learned = torch.from_numpy(truth.copy())
    true_age, learned_age = truth.copy(), truth.copy()
    for _ in range(steps):
        truth = grow(truth)
        with torch.no_grad():
            learned = (model(learned) > 0).float()
        true_age += truth
        learned_age += learned.numpy()
    return true_age[0, 0], learned_age[0, 0]


def draw_cells(
    axes: Axes, rows: np.ndarray, columns: np.ndarray, values: np.ndarray, limits: tuple[float, float], **style: Any
) -> None:
    """Cells of the lattice as hexagons."""
    angle = np.pi / 6 + np.arange(6) * np.pi / 3
    corner = np.stack([np.cos(angle), np.sin(angle)], -1) / 3**0.5
    centre = np.stack([columns + (rows % 2) / 2, rows * 3**0.5 / 2], -1)
    cells = PolyCollection(list(centre[:, None] + corner), array=values, **style)
    cells.set_clim(*limits)
    axes.add_collection(cells)
    axes.set_aspect("equal")
    axes.autoscale_view()
    axes.invert_yaxis()
    axes.axis("off")


def draw_filter(axes: Axes, weights: np.ndarray, bound: float) -> None:
    """The seven taps of a filter, around a cell in an odd row."""
    j, k = (index.ravel() for index in np.mgrid[0:3, 0:3])
    used = (j + k >= 1) & (j + k <= 3)
    j, k = j[used], k[used]
    draw_cells(axes, j, k + j // 2, weights[j, k], (-bound, bound), cmap="RdBu_r", edgecolor="0.6", lw=0.5)


def draw(losses: dict[str, list[float]], model: nn.Module, age: np.ndarray, path: Path) -> None:
    figure = plt.figure(figsize=(11, 3.6), layout="constrained")
    left, middle, right = figure.subfigures(1, 3, width_ratios=(1.15, 1, 1.05))
    axes = left.subplots()
    for name, values in losses.items():
        axes.semilogy(np.convolve(values, np.ones(10) / 10, "valid"), label=name)
    axes.set(title="training on fresh pictures", xlabel="step", ylabel="cross entropy")
    axes.legend(fontsize=8)

    weights = model[0].weight.detach().numpy()[:, 0]
    middle.suptitle("the eight learned filters")
    for place, weight in zip(middle.subplots(3, 3).flat, [*weights, None], strict=True):
        if weight is None:
            place.axis("off")
        else:
            draw_filter(place, weight, np.abs(weights).max())

    axes = right.subplots()
    rows, columns = np.nonzero(age)
    limits = (-0.4 * age.max(), age.max())
    draw_cells(axes, rows, columns, age[rows, columns], limits, cmap="Blues", edgecolor="face", lw=0.1)
    axes.set_title("a crystal grown by the network")
    figure.savefig(path, dpi=90)
    plt.close(figure)


def check() -> None:
    """The layer counts neighbours as the plain code does, and its derivatives agree with finite differences."""
    state = (np.random.default_rng(0).random((2, 1, 8, 6)) < 0.5).astype(np.float64)
    weight = torch.ones(1, 1, 3, 3, dtype=torch.float64)
    weight[..., 1, 1] = 0
    bias = torch.zeros(1, dtype=torch.float64)
    counted = HEX(torch.from_numpy(state), weight, bias)
    assert np.array_equal(counted.numpy(), neighbours(state))
    shapes = ((1, 2, 4, 4), (2, 2, 3, 3), (2,))
    arguments = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(HEX, arguments)


def main(folder: Path) -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)  # The pictures are small: more threads would wait for each other.
    check()
    print("the layer agrees with plain code, and its derivatives with finite differences")

    steps = 300
    model = network(HexConv(1, 8))
    plain = network(nn.Conv2d(1, 8, 3, padding=1, padding_mode="circular"))
    losses = {
        "Conv2d": train(plain, steps, np.random.default_rng(2)),
        "hexagonal layer": train(model, steps, np.random.default_rng(2)),
    }
    for name, values in losses.items():
        print(f"{name}: cross entropy {values[0]:.3f} at the start, {np.mean(values[-10:]):.2g} at the end")
    assert np.mean(losses["hexagonal layer"][-10:]) < losses["hexagonal layer"][0] / 50
    assert np.mean(losses["Conv2d"][-10:]) > losses["Conv2d"][0] / 10

    truth, learned = crystals(model, 50, 22)
    print(f"a crystal after 22 steps: {np.count_nonzero(learned)} cells, {np.count_nonzero(learned != truth)} wrong")
    assert np.array_equal(learned, truth)
    draw(losses, model, learned, folder / "conv_layer_torch.png")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "figures"
    target.mkdir(parents=True, exist_ok=True)
    main(target)
