"""The ten workloads and the loops over time: sizes from workloads.json and loops.json, and the data that every peer gets.

The data is f64, drawn from a fixed seed, and scaled so that exponents stay moderate: neither overflow nor denormal
numbers decide a comparison.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Workload:
    id: str
    name: str
    file: Path
    hand: Path
    arguments: tuple
    result: str
    sizes: dict
    # The largest errors for types for which that of the suite does not do.
    tolerance: dict
    dtypes: tuple

    @property
    def results(self):
        """Names of the results of the value and of the gradient, as gradix calls them."""
        return {"value": [self.result], "gradient": ["d" + name for name in self.arguments]}

    @property
    def constants(self):
        """Sizes that the shapes of the arguments don't tell."""
        return {"length": self.sizes["K"]} if self.id == "W9" else {}

    @property
    def upstream(self):
        return "d" + self.result


def load(small=False, suite="workloads", sizes=None):
    """The workloads at their usual sizes, the small ones, or those with another name."""
    sizes = sizes or ("small" if small else "sizes")
    entries = json.loads((HERE / f"{suite}.json").read_text())
    return [
        Workload(
            entry["id"], entry["name"], HERE / "workloads" / entry["file"], HERE / "hand" / entry["hand"],
            tuple(entry["arguments"]), entry["result"], entry[sizes],
            entry.get("tolerance", {}), tuple(entry.get("dtypes", ("f64", "f32"))),
        )
        for entry in entries
    ]


def data(workload):
    """Every argument by name, and the upstream derivative, in f64."""
    random = np.random.default_rng(20171101)
    arrays = ARGUMENTS[workload.id](random, **workload.sizes)
    arrays[workload.upstream] = random.standard_normal(RESULT_SHAPES[workload.id](**workload.sizes))
    return {name: np.asarray(array, dtype=np.float64, order="C") for name, array in arrays.items()}


def _uniform(random, *shape, scale=1.0):
    return random.uniform(-scale, scale, shape)


ARGUMENTS = {
    "W1": lambda r, I, J, K: dict(
        a=_uniform(r, I, K), b=_uniform(r, J, K), c=r.uniform(0, 2 / K, (I, I)), d=_uniform(r, I + K - 1, scale=0.5)),
    "W2": lambda r, N, M, D: dict(
        x=_uniform(r, N, D), z=_uniform(r, M, D), w=_uniform(r, M)),
    "W3": lambda r, N, O, C, K, T: dict(
        w=_uniform(r, O, C, K), x=_uniform(r, N, C, 2 * T + 3 * K - 4)),
    "W4": lambda r, N, O, C, H, V: dict(
        w=_uniform(r, O, C, 3, 3), x=_uniform(r, N, C, H, V)),
    "W5": lambda r, N, I, O: dict(
        W=_uniform(r, O, I, scale=I**-0.5), x=_uniform(r, N, I), b=_uniform(r, O)),
    "W6": lambda r, N, M: dict(
        u=_uniform(r, N, M), dt=np.array(0.1), c=np.array(0.7)),
    "W7": lambda r, N, D: dict(
        q=r.standard_normal((N, D)), k=r.standard_normal((N, D)), v=r.standard_normal((N, D)), scale=np.array(D**-0.5)),
    "W8": lambda r, N: dict(
        t=np.sort(r.uniform(0, 8, N)), x=_uniform(r, N)),
    "W9": lambda r, I, L, K: dict(
        x=_uniform(r, I + K - 1), y=_uniform(r, I + K + L - 2)),
    "W10": lambda r, I, J, K, R: dict(
        T=_uniform(r, I, J, K), B=_uniform(r, J, R), C=_uniform(r, K, R)),
    "L1": lambda r, N: dict(x=_uniform(r, N)),
    "L2": lambda r, N: dict(x=_uniform(r, N), s=_uniform(r, N)),
    "L3": lambda r, N, T, C, S: dict(
        x=_uniform(r, N, T, C), d=r.uniform(0, 0.1, (N, T, C)), a=-r.uniform(0.5, 2, (C, S)), b=_uniform(r, N, T, S),
        c=_uniform(r, N, T, S)),
    "L4": lambda r, H, W, T: dict(
        u0=r.uniform(0.4, 0.6, (H, W)), v0=r.uniform(0.2, 0.3, (H, W)), f=r.uniform(0.03, 0.05, T)),
    "L5": lambda r, T, B, H, D: dict(
        x=_uniform(r, T, B, D), w=_uniform(r, 4, H, D, scale=D**-0.5), u=_uniform(r, 4, H, H, scale=H**-0.5),
        b=_uniform(r, 4, H)),
    "L6": lambda r, T, S: dict(e=_uniform(r, T, S), w=_uniform(r, S, S)),
    # A distance that stays small: exp(-r) is far from the smallest numbers.
    "L7": lambda r, N, M: dict(x=_uniform(r, N, scale=0.7), y=_uniform(r, M, scale=0.7)),
    "L8": lambda r, N: dict(B=_uniform(r, N, N, scale=N**-0.5)),
}

RESULT_SHAPES = {
    "W1": lambda I, J, K: (I, J),
    "W2": lambda N, M, D: (N,),
    "W3": lambda N, O, C, K, T: (N, O, T),
    "W4": lambda N, O, C, H, V: (N, O, H, V),
    "W5": lambda N, I, O: (N, O),
    "W6": lambda N, M: (N, M),
    "W7": lambda N, D: (N, D),
    "W8": lambda N: (N,),
    "W9": lambda I, L, K: (I, L),
    "W10": lambda I, J, K, R: (I, R),
    "L1": lambda N: (N,),
    "L2": lambda N: (N,),
    "L3": lambda N, T, C, S: (N, T, C),
    "L4": lambda H, W, T: (),
    "L5": lambda T, B, H, D: (T, B, H),
    "L6": lambda T, S: (),
    "L7": lambda N, M: (),
    "L8": lambda N: (N, N),
}
