"""Exact symbolic derivatives of tensors defined in index notation, run fast.

A program defines arrays element by element; `compile` makes a function of it, which knows its own derivatives:

>>> import gradix as gx
>>> import numpy as np
>>> square = gx.compile("input x[N]; y = sum[i] x[i]^2")
>>> square(np.array([1.0, 2.0, 3.0]))
np.float64(14.0)
>>> square.grad(np.array([1.0, 2.0, 3.0])).x
array([2., 4., 6.])
>>> print(square.derivative())
input x[N], dy
dx[i] = 2 * dy * x[i]

`gradix.torch.function` and `gradix.jax.function` turn a program into a function of PyTorch's tensors or JAX's arrays.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from ._arrays import Arrays
from ._errors import (
    ArgumentError,
    Diagnostic,
    DtypeError,
    GradixError,
    GradixWarning,
    InternalError,
    RunError,
    ShapeError,
    SourceError,
)
from ._gradix import DeviceArray, __version__
from ._notebook import Explanation, Picture
from ._program import Comparison, Program, clear_cache, compile

if TYPE_CHECKING:
    from . import jax as jax
    from . import torch as torch

__all__ = [
    "ArgumentError",
    "Arrays",
    "Comparison",
    "DeviceArray",
    "Diagnostic",
    "DtypeError",
    "Explanation",
    "GradixError",
    "GradixWarning",
    "InternalError",
    "Picture",
    "Program",
    "RunError",
    "ShapeError",
    "SourceError",
    "__version__",
    "clear_cache",
    "compile",
]


# What users see of these is where they import them from.
for _public in (*GradixError.__subclasses__(), GradixError, GradixWarning, Diagnostic, Arrays, Comparison, Program):
    _public.__module__ = __name__
for _public in (Explanation, Picture):
    _public.__module__ = __name__


def __dir__() -> list[str]:
    # Tools look at all that is listed, so what can't be imported is not.
    return [*__all__, *(name for name in ("jax", "torch") if importlib.util.find_spec(name))]


def __getattr__(name: str) -> Any:
    # PyTorch and JAX take long to import: only who asks for them pays for them.
    if name in ("jax", "torch"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
