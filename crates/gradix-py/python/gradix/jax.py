"""Programs as functions of JAX's arrays.

>>> import gradix as gx
>>> import jax
>>> import jax.numpy as jnp
>>> smooth = gx.jax.function(gx.compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]"))
>>> x, w = jnp.arange(5.0), jnp.array([0.5, 0.5])
>>> jax.jit(smooth)(x, w)
Array([0.5, 1.5, 2.5, 3.5], dtype=float32)
>>> jax.grad(lambda x: smooth(x, w).sum())(x)
Array([0.5, 1. , 1. , 1. , 0.5], dtype=float32)
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ._arrays import Arrays
from ._device import find_compiler
from ._errors import ArgumentError, DtypeError
from ._gradix import xla_clear, xla_device_handler, xla_handler
from ._program import _CACHES, Backend, Program
from ._transform import Call, Transformed, bind, derived

__all__ = ["Function", "function"]


def function(program: Program, *, backend: Backend | None = None, threads: int | None = None) -> Function:
    """A program as a function of JAX's arrays.

    It works under `jax.jit`, `jax.grad`, `jax.jvp`, `jax.vjp`, `jax.vmap` and the others, in any combination and to any
    order; a batch is one call of a program with one more index. On the CPU, XLA calls gradix with the memory of its arrays,
    and nothing is copied; on NVIDIA's GPUs, too, on XLA's stream, unless another backend is asked for; elsewhere the arrays go
    to the host and back. Arguments are given by place or by name; a size that follows from no shape is given by name.

    Args:
        program: The program.
        backend: What computes, if not what the program was compiled for; see `gradix.compile`.
        threads: How many threads compute, if not as many as the program was compiled for.

    Returns:
        A function that returns an array, or several as `gradix.Arrays`.
    """
    return Function(program, backend, threads)


class Function(Transformed):
    """A program as a function of JAX's arrays. Made by `function`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Computes the results: an array, or several as `gradix.Arrays`."""
        values, sizes = bind(self._names, self._free, args, named)
        given = _arrays(self._names, values)
        call = Call(self._text, tuple(sizes.items()), self._backend, self._threads).at([array.shape for array in given])
        arrays = _bind(call, given, given[0].dtype if given else jnp.result_type(float))
        return arrays[0] if len(self._results) == 1 else Arrays(self._results, arrays)


def _arrays(names: Sequence[str], values: Sequence[Any]) -> list[jax.Array]:
    """Arrays of one type."""
    arrays = []
    for name, value in zip(names, values, strict=True):
        if value is None or isinstance(value, str):
            raise ArgumentError(f"{name!r} is {value!r}, but an array or a number is expected")
        try:
            arrays.append(value if isinstance(value, (jax.Array, np.ndarray, int, float)) else jnp.asarray(value))
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{name!r} can't be made an array: {error}") from error
    dtype = jnp.result_type(*arrays, float)
    if dtype in (jnp.bfloat16, jnp.float16):
        dtype = jnp.dtype(jnp.float32)
    if dtype not in (jnp.float32, jnp.float64):
        raise DtypeError(f"{', '.join(names)} have elements of type {dtype}, but float64 or float32 is expected")
    return [jnp.asarray(array, dtype) for array in arrays]


# One primitive for all programs: the text is a parameter, and so tangents, transposes and batches of any order are calls of
# the same primitive.

_call = Primitive("gradix")
_call.multiple_results = True
_TARGET = "gradix_call"
_DEVICE_TARGET = "gradix_call_on_device"


def _bind(call: Call, arrays: Sequence[Any], dtype: Any) -> list[Any]:
    return _call.bind(*arrays, call=call, dtype=np.dtype(dtype))


@functools.lru_cache(maxsize=1024)
def _compiled(call: Call, dtype: Any) -> Callable[..., list[Any]]:
    return jax.jit(lambda *arrays: _bind(call, arrays, dtype))


@_call.def_impl
def _run(*arrays: Any, call: Call, dtype: Any) -> list[Any]:
    with jax.disable_jit(False):
        return _compiled(call, dtype)(*arrays)


@_call.def_abstract_eval
def _shapes(*arrays: Any, call: Call, dtype: Any) -> list[Any]:
    return [jax.core.ShapedArray(shape, dtype) for shape in call.shapes([array.shape for array in arrays])]


def _lower(ctx: Any, *arrays: Any, call: Call, dtype: Any, target: str = _TARGET) -> Any:
    sizes = np.array([size for _, size in call.sizes], np.int64)
    attributes = {"program": call.text, "sizes": sizes, "backend": call.backend, "threads": np.int64(call.threads)}
    return jax.ffi.ffi_lowering(target)(ctx, *arrays, **attributes)


def _lower_on_device(ctx: Any, *arrays: Any, call: Call, dtype: Any) -> Any:
    if call.backend not in ("auto", "cuda"):
        return mlir.lower_fun(_on_host, multiple_results=True)(ctx, *arrays, call=call, dtype=dtype)
    find_compiler()
    return _lower(ctx, *arrays, call=call, dtype=dtype, target=_DEVICE_TARGET)


def _on_host(*arrays: Any, call: Call, dtype: Any) -> Any:
    results = _shapes(*arrays, call=call, dtype=dtype)
    shapes = [jax.ShapeDtypeStruct(result.shape, dtype) for result in results]
    run = functools.partial(_run_on_host, call, dtype)
    return jax.pure_callback(run, shapes, *arrays, vmap_method="sequential")


def _run_on_host(call: Call, dtype: Any, *arrays: Any) -> list[Any]:
    return [np.asarray(result) for result in call.run([np.asarray(array) for array in arrays], None, dtype.name)]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, call: Call, dtype: Any) -> tuple[Any, Any]:
    program = call.program
    directions = {
        name: tangent for name, tangent in zip(program.inputs, tangents, strict=True) if type(tangent) is not ad.Zero
    }
    tangent, sources = derived(program, "forward", tuple(directions), tuple(program.outputs))
    available = [*primals, *directions.values()]
    like = call.like(tangent, [primal.shape for primal in primals])
    changes = _bind(like, [available[source] for source in sources], dtype)
    return _bind(call, primals, dtype), changes


def _transpose(cotangents: Sequence[Any], *arguments: Any, call: Call, dtype: Any) -> list[Any]:
    # The program is linear in the undefined arguments, so that its derivative by them does not need their values.
    program = call.program
    linear = [ad.is_undefined_primal(argument) for argument in arguments]
    wrt = tuple(name for name, is_linear in zip(program.inputs, linear, strict=True) if is_linear)
    upstream = {
        name: given for name, given in zip(program.outputs, cotangents, strict=True) if type(given) is not ad.Zero
    }
    found: list[Any] = [None] * len(arguments)
    if upstream:
        derivative, sources = derived(program, "reverse", wrt, tuple(upstream))
        shapes = [
            argument.aval.shape if is_linear else argument.shape
            for argument, is_linear in zip(arguments, linear, strict=True)
        ]
        available = [*arguments, *upstream.values()]
        computed = iter(_bind(call.like(derivative, shapes), [available[source] for source in sources], dtype))
        found = [next(computed) if is_linear else None for is_linear in linear]
    return found


def _batch(arrays: Sequence[Any], dims: Sequence[Any], *, call: Call, dtype: Any) -> tuple[list[Any], list[Any]]:
    program = call.program
    first = [array if dim is None else jnp.moveaxis(array, dim, 0) for array, dim in zip(arrays, dims, strict=True)]
    names = tuple(name for name, dim in zip(program.inputs, dims, strict=True) if dim is not None)
    shapes = [array.shape if dim is None else array.shape[1:] for array, dim in zip(first, dims, strict=True)]
    count = next(array.shape[0] for array, dim in zip(first, dims, strict=True) if dim is not None)
    batched = program.batched(names)
    size = {name: count for name in batched.sizes if name not in program.sizes}
    results = _bind(call.like(batched, shapes, **size), first, dtype)
    ranks = zip(batched.outputs.values(), program.outputs.values(), strict=True)
    return results, [0 if len(after) > len(before) else None for after, before in ranks]


jax.tree_util.register_pytree_node(
    Arrays, lambda arrays: (tuple(arrays), arrays.names), lambda names, values: Arrays(names, values)
)
ad.primitive_jvps[_call] = _jvp
ad.primitive_transposes[_call] = _transpose
batching.primitive_batchers[_call] = _batch
mlir.register_lowering(_call, mlir.lower_fun(_on_host, multiple_results=True))
for name, handler, platform in ((_TARGET, xla_handler(), "cpu"), (_DEVICE_TARGET, xla_device_handler(), "CUDA")):
    jax.ffi.register_ffi_target(name, jax.ffi.pycapsule(ctypes.CFUNCTYPE(ctypes.c_void_p)(handler)), platform=platform)
mlir.register_lowering(_call, _lower, platform="cpu")
mlir.register_lowering(_call, _lower_on_device, platform="cuda")
_CACHES.append(xla_clear)
