"""Programs as functions of PyTorch's tensors.

>>> import gradix as gx
>>> import torch
>>> smooth = gx.torch.function(gx.compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]"))
>>> x = torch.arange(5.0, requires_grad=True)
>>> w = torch.tensor([0.5, 0.5], requires_grad=True)
>>> smooth(x, w).sum().backward()
>>> x.grad, w.grad
(tensor([0.5000, 1.0000, 1.0000, 1.0000, 0.5000]), tensor([ 6., 10.]))
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, library
from torch.autograd import forward_ad
from torch.utils._python_dispatch import _get_current_dispatch_mode
from torch.utils._pytree import register_pytree_node

from ._arrays import Arrays
from ._errors import ArgumentError, DtypeError
from ._program import Backend, Program
from ._transform import Call, Transformed, bind, derived

__all__ = ["Function", "function"]


def function(program: Program, *, backend: Backend | None = None, threads: int | None = None) -> Function:
    """A program as a function of tensors.

    It takes part in autograd, to any order; works under `torch.func.grad` and `torch.func.vmap`, where a batch is one call
    of a program with one more index; and in modules and `torch.compile`, as one opaque operator. Tensors have the
    type float64 or float32 (or are converted to it), and are read where they lie, on the CPU whatever their strides. Those of
    the first GPU are computed with there, on PyTorch's current stream, and nobody waits. Arguments are given
    by place or by name, scalars also as numbers; a size that follows from no shape is given by name.

    Args:
        program: The program.
        backend: What computes, if not what the program was compiled for; see `gradix.compile`.
        threads: How many threads compute, if not as many as the program was compiled for.

    Returns:
        A function that returns a tensor, or several as `gradix.Arrays`.
    """
    return Function(program, backend, threads)


class Function(Transformed):
    """A program as a function of tensors. Made by `function`."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Computes the results: a tensor, or several as `gradix.Arrays`."""
        values, sizes = bind(self._names, self._free, args, named)
        given = _tensors(self._names, values) or [torch.empty(0, dtype=torch.float64)]
        if given[0].device.type == "cuda" and self._backend not in ("auto", "cuda"):
            raise ArgumentError(
                f"tensors on {given[0].device} are computed with there, and 'backend' is {self._backend!r}"
            )
        tensors = _apply(Call(self._text, tuple(sizes.items()), self._backend, self._threads), given)
        return tensors[0] if len(self._results) == 1 else Arrays(self._results, tensors)


def _tensors(names: Sequence[str], values: Sequence[Any]) -> list[Tensor]:
    """Tensors of one type."""
    types = [value.dtype for value in values if isinstance(value, Tensor)]
    dtype = torch.float64
    if types:
        dtype = types[0]
        for other in types[1:]:
            dtype = torch.promote_types(dtype, other)
        if not dtype.is_floating_point and not dtype.is_complex:
            dtype = torch.get_default_dtype()
        if dtype in (torch.float16, torch.bfloat16):
            dtype = torch.float32
    if dtype not in (torch.float32, torch.float64):
        name = next(name for name, value in zip(names, values, strict=True) if isinstance(value, Tensor))
        raise DtypeError(f"{name!r} and the others have elements of type {dtype}, but float64 or float32 is expected")
    device = _device(names, values)
    return [_tensor(name, value, dtype, device) for name, value in zip(names, values, strict=True)]


def _device(names: Sequence[str], values: Sequence[Any]) -> torch.device | None:
    """The GPU that all tensors are on, if they are on one; those without dimensions may also be on the CPU."""
    tensors = [(name, value) for name, value in zip(names, values, strict=True) if isinstance(value, Tensor)]
    elsewhere = [(name, value.device) for name, value in tensors if value.device.type not in ("cpu", "meta")]
    if not elsewhere:
        return None
    name, found = elsewhere[0]
    if found.type != "cuda" or found.index not in (0, None):
        raise ArgumentError(f"{name!r} is on the device {found}, but a tensor on the CPU or on cuda:0 is expected")
    for name, value in tensors:
        if value.device != found and value.dim() > 0:
            raise ArgumentError(f"{name!r} is on the device {value.device}, and others are on {found}")
    return found


def _tensor(name: str, value: Any, dtype: torch.dtype, device: torch.device | None) -> Tensor:
    if not isinstance(value, Tensor):
        try:
            return torch.as_tensor(value, dtype=dtype, device=device)
        except (RuntimeError, TypeError, ValueError) as error:
            raise ArgumentError(f"{name!r} can't be made a tensor: {error}") from error
    if value.layout is not torch.strided:
        raise ArgumentError(f"{name!r} has the layout {value.layout}, but a strided tensor is expected")
    return value.to(dtype) if device is None else value.to(device, dtype)


# One operator for all programs: the text is an argument, and so derivatives of any order and batches are calls of the same
# operator. A program without arguments gets one tensor nevertheless, of the type that its results are to have.


@library.custom_op("gradix::call", mutates_args=(), device_types=("cpu", "cuda"))
def _operator(tensors: Sequence[Tensor], text: str, sizes: str, backend: str, threads: int) -> list[Tensor]:
    return _compute(_described(text, sizes, backend, threads), tensors)


def _compute(call: Call, tensors: Sequence[Tensor]) -> list[Tensor]:
    arguments = [tensor.detach().resolve_neg() for tensor in tensors[: len(call.program.inputs)]]
    shapes = call.shapes([tensor.shape for tensor in arguments])
    device = tensors[0].device
    results = [torch.empty(shape, dtype=tensors[0].dtype, device=device) for shape in shapes]
    dtype = "float32" if tensors[0].dtype == torch.float32 else "float64"
    if device.type == "cuda":
        dense = [tensor.contiguous() for tensor in arguments]
        given, made = ([(list(t.shape), t.data_ptr()) for t in all_of] for all_of in (dense, results))
        call.run_on_device(given, made, dtype, torch.cuda.current_stream(device).cuda_stream)
        return results
    call.run([tensor.numpy() for tensor in arguments], [result.numpy() for result in results], dtype)
    return results


@_operator.register_fake
def _fake(tensors: Sequence[Tensor], text: str, sizes: str, backend: str, threads: int) -> list[Tensor]:
    call = _described(text, sizes, backend, threads)
    shapes = call.shapes(_shapes(tensors[: len(call.program.inputs)]))
    return [tensors[0].new_empty(shape) for shape in shapes]


# Operators have no rules for `torch.func`; functions of autograd have, but are not opaque to `torch.compile`. So the operator
# has a rule for the compiler, and everybody else gets a function.


def _apply(call: Call, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
    description = _description(call)
    if torch.compiler.is_compiling():
        if forward_ad._current_level >= 0:
            # An operator would lose the tangents.
            torch._dynamo.graph_break()
        return _operator(tensors, *description)
    return _Function.apply(*description, *tensors)


def _is_plain(tensor: Tensor) -> bool:
    """Whether a tensor has memory of its own."""
    return type(tensor) in (Tensor, torch.nn.Parameter) and tensor.device.type in ("cpu", "cuda")


def _is_traced() -> bool:
    """Whether somebody watches what operators do."""
    return _get_current_dispatch_mode() is not None


class _Function(torch.autograd.Function):
    @staticmethod
    def forward(text: str, sizes: str, backend: str, threads: int, *tensors: Tensor) -> tuple[Tensor, ...]:
        # The operator knows what to do with tensors that are no numbers; for others it is a long way.
        if all(_is_plain(tensor) for tensor in tensors) and not _is_traced():
            return tuple(_compute(_described(text, sizes, backend, threads), tensors))
        return tuple(_operator(tensors, text, sizes, backend, threads))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.description = inputs[:4]
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*inputs[4:])
        ctx.save_for_forward(*inputs[4:])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        call = _described(*ctx.description)
        return None, None, None, None, *_pull_back(call, ctx.saved_tensors, gradients, ctx.needs_input_grad[4:])

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> tuple[Tensor, ...]:
        return tuple(_push_forward(_described(*ctx.description), ctx.saved_tensors, tangents[4:]))

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], *given: Any) -> tuple[Any, Any]:
        return _batch(_described(*given[:4]), info.batch_size, in_dims[4:], given[4:])


def _remember(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    tensors, *ctx.description = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, gradients: Sequence[Tensor | None]) -> tuple[Any, ...]:
    found = _pull_back(_described(*ctx.description), ctx.saved_tensors, gradients, ctx.needs_input_grad[0])
    return found, None, None, None, None


_operator.register_autograd(_backward, setup_context=_remember)
# Autograd asks for the signature at every call.
_Function.forward.__signature__ = inspect.signature(_Function.forward)  # type: ignore[attr-defined]
register_pytree_node(
    Arrays,
    lambda arrays: (list(arrays), arrays.names),
    lambda values, names: Arrays(names, values),
    serialized_type_name="gradix.Arrays",
)


def _pull_back(
    call: Call, tensors: Sequence[Tensor], gradients: Sequence[Tensor | None], wanted: Sequence[bool]
) -> list[Tensor | None]:
    """The derivatives of a loss by those tensors that want one, from its derivatives by the results."""
    program, arguments = call.program, tensors[: len(call.program.inputs)]
    wrt = tuple(name for name, is_wanted in zip(program.inputs, wanted, strict=False) if is_wanted)
    upstream = {name: given for name, given in zip(program.outputs, gradients, strict=True) if given is not None}
    if not wrt or not upstream:
        return [None] * len(tensors)
    derivative, sources = derived(program, "reverse", wrt, tuple(upstream))
    available = [*arguments, *upstream.values()]
    given = [available[source] for source in sources] or [tensors[0].detach()]
    computed = iter(_apply(call.like(derivative, _shapes(arguments)), given))
    return [next(computed) if is_wanted else None for is_wanted in wanted]


def _push_forward(call: Call, tensors: Sequence[Tensor], tangents: Sequence[Tensor | None]) -> Sequence[Tensor]:
    """How the results change, from how the tensors do."""
    program, arguments = call.program, tensors[: len(call.program.inputs)]
    directions = {name: given for name, given in zip(program.inputs, tangents, strict=False) if given is not None}
    tangent, sources = derived(program, "forward", tuple(directions), tuple(program.outputs))
    available = [*arguments, *directions.values()]
    given = [available[source] for source in sources] or [tensors[0].detach()]
    return _apply(call.like(tangent, _shapes(arguments)), given)


def _batch(call: Call, size: int, dims: Sequence[int | None], tensors: Sequence[Tensor]) -> tuple[Any, Any]:
    """The results for a whole batch, and where its dimension is."""
    program = call.program
    first = [tensor if dim is None else tensor.movedim(dim, 0) for tensor, dim in zip(tensors, dims, strict=True)]
    names = [name for name, dim in zip(program.inputs, dims, strict=False) if dim is not None]
    shapes = [shape if dim is None else shape[1:] for shape, dim in zip(_shapes(first), dims, strict=True)]
    batched = program.batched(names)
    sizes = {name: size for name in batched.sizes if name not in program.sizes}
    results = _apply(call.like(batched, shapes[: len(program.inputs)], **sizes), first)
    ranks = zip(batched.outputs.values(), program.outputs.values(), strict=True)
    return tuple(results), tuple(0 if len(after) > len(before) else None for after, before in ranks)


def _description(call: Call) -> tuple[str, str, str, int]:
    """A call as the operator takes it."""
    return call.text, ",".join(f"{name}={size}" for name, size in call.sizes), call.backend, call.threads


def _described(text: str, sizes: str, backend: str, threads: int) -> Call:
    pairs = (pair.split("=") for pair in sizes.split(",") if pair)
    return Call(text, tuple((name, int(size)) for name, size in pairs), cast(Backend, backend), threads)


def _shapes(tensors: Sequence[Tensor]) -> list[list[int]]:
    return [[int(extent) for extent in tensor.shape] for tensor in tensors]
