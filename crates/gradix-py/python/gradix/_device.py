"""Arrays on a GPU, of any framework that tells where they lie: those of CuPy and Numba, tensors of PyTorch, and others.

They are read where they lie and computed with on the stream of the first of them, and nobody waits. Results are arrays of the
framework that the first argument came from, where that is known, and otherwise `gradix.DeviceArray`.
"""

from __future__ import annotations

import importlib.util
import math
import os
import pathlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._errors import ArgumentError, DtypeError, ShapeError
from ._gradix import DeviceArray, Plan


class _View(NamedTuple):
    """Where an array on a GPU lies."""

    name: str
    shape: tuple[int, ...]
    type: str
    address: int
    stream: int
    of: Any
    """What keeps it there."""


def run(
    plan: Plan, args: Sequence[Any], named: Mapping[str, Any], out: Any, backend: str | None, dtype: Any
) -> tuple[Any, ...]:
    """Starts the computation of a plan for arrays of which at least one is on a GPU."""
    if backend not in (None, "auto", "cuda"):
        raise ArgumentError(f"arrays on a GPU are computed with there, and 'backend' is {backend!r}")
    find_compiler()
    given, sizes = _bind(plan, args, named)
    views = [_view(name, value) for name, value in given.items() if _is_on_device(value)]
    types = {view.type for view in views}
    wanted = np.dtype(dtype).str if dtype is not None else views[0].type
    if types != {wanted}:
        listed = ", ".join(f"{view.name!r} has {np.dtype(view.type)}" for view in views)
        raise DtypeError(f"arrays on a GPU are not converted: {listed}; {np.dtype(wanted)} is computed in")
    found = {view.name: view for view in views}
    all_views = [found.get(name) or _number(name, value, wanted) for name, value in given.items()]
    count = plan.arguments
    shapes = plan.shapes([view.shape for view in all_views[:count]], sizes)[1]
    results = _results(plan, shapes, wanted, out, next(iter(given[view.name] for view in views)))
    outputs = [_view(name, result) for name, result in zip(plan.results, results, strict=True)]
    plan.run_on_device(
        [list(view.shape) for view in all_views],
        [view.address for view in all_views],
        sizes,
        [view.address for view in outputs],
        np.dtype(wanted).name,
        views[0].stream,
    )
    return tuple(results)


def _bind(plan: Plan, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, int]]]:
    """Arrays by name, in the order of the plan, and sizes."""
    if len(args) > plan.arguments:
        raise ArgumentError(f"{len(args)} arguments are given by place, but there are {plan.arguments}")
    given = dict(zip(plan.slots, args, strict=False))
    sizes = []
    for name, value in named.items():
        if name in given:
            raise ArgumentError(f"{name!r} is given twice, by place and by name")
        if name in plan.slots:
            given[name] = value
        else:
            sizes.append((name, int(value)))
    for name in plan.scalars:
        given.setdefault(name, 1.0)
    if missing := [name for name in plan.slots if name not in given]:
        raise ArgumentError(f"{missing[0]!r} is not given")
    return {name: given[name] for name in plan.slots}, sizes


def _is_on_device(value: Any) -> bool:
    return hasattr(value, "__cuda_array_interface__")


def _view(name: str, value: Any) -> _View:
    """Where an array lies: dense and in C order, made so if its framework can."""
    interface = value.__cuda_array_interface__
    if interface.get("mask") is not None:
        raise ArgumentError(f"{name!r} is a masked array; fill in what is masked")
    if interface["typestr"] not in ("<f4", "<f8"):
        kind = np.dtype(interface["typestr"])
        raise DtypeError(f"{name!r} has elements of type {kind}, but float64 or float32 is expected")
    shape = tuple(interface["shape"])
    if not _is_dense(shape, interface.get("strides"), int(interface["typestr"][2:])):
        return _view(name, _dense(name, value))
    return _View(name, shape, interface["typestr"], interface["data"][0], _stream(value, interface), value)


def _is_dense(shape: Sequence[int], strides: Sequence[int] | None, width: int) -> bool:
    if strides is None or 0 in shape:
        return True
    expected = [width * math.prod(shape[place + 1 :]) for place in range(len(shape))]
    return all(extent == 1 or stride == own for extent, stride, own in zip(shape, strides, expected, strict=True))


def _framework(value: Any) -> Any:
    """The module that an array is of."""
    return sys.modules.get(type(value).__module__.partition(".")[0])


def _dense(name: str, value: Any) -> Any:
    make: Callable[[Any], Any] | None = getattr(_framework(value), "ascontiguousarray", None)
    if hasattr(value, "contiguous"):
        return value.contiguous()
    if make is None:
        raise ArgumentError(f"{name!r} is on a GPU and not in C order; make a copy that is")
    return make(value)


def _stream(value: Any, interface: Mapping[str, Any]) -> int:
    """The stream that the framework works on; 0 is the default one."""
    name, framework = type(value).__module__.partition(".")[0], _framework(value)
    if name == "torch" and framework is not None:
        return int(framework.cuda.current_stream(value.device).cuda_stream)
    if name == "cupy" and framework is not None:
        return int(framework.cuda.get_current_stream().ptr)
    return int(interface.get("stream") or 0)


def _number(name: str, value: Any, dtype: str) -> _View:
    """A number, in memory of the device; an array of the host's is a mistake."""
    array = np.asarray(value, dtype)
    if array.ndim > 0:
        raise ArgumentError(f"{name!r} is in the memory of the host, and others are on a GPU; bring them together")
    held = DeviceArray([], array.dtype.name, float(array))
    return _View(name, (), dtype, held.__cuda_array_interface__["data"][0], 0, held)


def _results(plan: Plan, shapes: Sequence[Sequence[int]], dtype: str, out: Any, like: Any) -> list[Any]:
    """Arrays for the results: those of the caller, or new ones of the framework of an argument."""
    results = [None] * len(shapes)
    if isinstance(out, Mapping):
        results = [out.get(name) for name in plan.results]
    elif _is_on_device(out):
        results = [out]
    elif out is not None:
        results = list(out)
    if len(results) != len(shapes):
        raise ArgumentError(f"'out' has {len(results)} arrays, but there are {len(shapes)} results")
    made = [_empty(shape, dtype, like) if own is None else own for own, shape in zip(results, shapes, strict=True)]
    for name, own, shape in zip(plan.results, made, shapes, strict=True):
        if not _is_on_device(own):
            raise ArgumentError(f"'out' for {name!r} is not on a GPU")
        interface = own.__cuda_array_interface__
        if tuple(interface["shape"]) != tuple(shape):
            raise ShapeError(
                f"'out' for {name!r} has shape {tuple(interface['shape'])}, but {tuple(shape)} is expected"
            )
        if interface["typestr"] != dtype or not _is_dense(shape, interface.get("strides"), int(dtype[2:])):
            raise ArgumentError(f"'out' for {name!r} is not in C order, or not of type {np.dtype(dtype)}")
    return made


def _empty(shape: Sequence[int], dtype: str, like: Any) -> Any:
    name, framework = type(like).__module__.partition(".")[0], _framework(like)
    if name == "torch" and framework is not None:
        return framework.empty(tuple(shape), dtype=like.dtype, device=like.device)
    if name == "cupy" and framework is not None:
        return framework.empty(tuple(shape), dtype)
    return DeviceArray(list(shape), np.dtype(dtype).name, None)


def find_compiler() -> None:
    """Lets gradix find the run-time compiler in NVIDIA's Python packages, unless the environment names one."""
    if "GRADIX_NVRTC" in os.environ:
        return
    spec = importlib.util.find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        # `cuda_nvrtc` has that of CUDA 11 and 12, `cu13` that of CUDA 13.
        for place in ("cu[0-9]*", "cuda_nvrtc"):
            for file in sorted(pathlib.Path(folder).glob(f"{place}/lib/libnvrtc.so*")):
                os.environ["GRADIX_NVRTC"] = str(file)
                return
