"""A program among the arrays of a framework that differentiates and batches by itself.

A call is a program's text, its sizes, and arrays. Every transformation of a call is a call again, of another text: the
derivative of a program, its tangent and its batch are programs. So one operation is enough, to any order.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, SupportsIndex

from ._device import find_compiler
from ._errors import ArgumentError
from ._program import _CACHES, Backend, Program, _compiled, compile


class Call(NamedTuple):
    """What is called, apart from the arrays. It can be hashed."""

    text: str
    """The program."""
    sizes: tuple[tuple[str, int], ...]
    """Sizes by name; those that are missing follow from the shapes of the arrays."""
    backend: Backend
    threads: int
    """0 is one for each core."""

    @property
    def program(self) -> Program:
        """The program itself."""
        return _compiled(self.text, "program", (), self.backend, self.threads or None)

    def shapes(self, shapes: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
        """The shapes of the results."""
        return list(self.program.shapes(*shapes, **dict(self.sizes))[1].values())

    def run(self, arrays: Sequence[Any], out: Sequence[Any] | None, dtype: str) -> tuple[Any, ...]:
        """The results for arrays of NumPy."""
        named: dict[str, Any] = dict(self.sizes)
        return self.program._value.run(tuple(arrays), named, out, self.threads or None, self.backend, dtype)

    def run_on_device(
        self, arrays: Sequence[tuple[list[int], int]], results: Sequence[tuple[list[int], int]], dtype: str, stream: int
    ) -> None:
        """Starts the computation on a stream of the GPU, for shapes and addresses of arrays in C order that stay where they
        are until the stream has come so far.
        """
        find_compiler()
        shapes, addresses = [shape for shape, _ in arrays], [address for _, address in arrays]
        places = [address for _, address in results]
        self.program._value.run_on_device(shapes, addresses, self.sizes, places, dtype, stream)

    def at(self, shapes: Sequence[Sequence[int]]) -> Call:
        """The same call with all its sizes."""
        return self.like(self.program, shapes)

    def like(self, program: Program, shapes: Sequence[Sequence[int]], **more: int) -> Call:
        """A call of a program that was made from this one, at the sizes that this one has for arrays of these shapes."""
        sizes = self.program.shapes(*shapes, **dict(self.sizes))[0] | more
        return Call(program.text, tuple((name, sizes[name]) for name in program.sizes), self.backend, self.threads)


class Transformed:
    """A program as a function of a framework's arrays; what `torch.function` and `jax.function` have in common."""

    def __init__(self, program: Program, backend: Backend | None, threads: int | None) -> None:
        if not isinstance(program, Program):
            raise ArgumentError(f"a program is expected, made by gradix.compile, and {program!r} is given")
        chosen = compile(
            program.source, sizes=dict(program._sizes), backend=backend or program._backend, threads=threads
        )
        self.program = program
        """The program."""
        self._names, self._results, self._free = tuple(program.inputs), tuple(program.outputs), program.sizes
        self._text, self._backend = program.text, chosen._backend
        self._threads = threads or program._threads or 0
        self.__name__ = "_".join(self._results)
        self.__doc__ = f"{program!r}"

    def __repr__(self) -> str:
        return repr(self.program).replace("gradix.Program", f"{type(self).__module__}.{type(self).__name__}", 1)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.program, self._backend, self._threads or None)


class Derived(NamedTuple):
    """A program that was derived from another one."""

    program: Program
    sources: tuple[int, ...]
    """For each of its inputs, the place among the arguments, followed by tangents or upstream derivatives."""


@functools.lru_cache(maxsize=1024)
def derived(
    program: Program, mode: Literal["reverse", "forward"], wrt: tuple[str, ...], of: tuple[str, ...]
) -> Derived:
    """The derivative by some arguments of some results."""
    derivative, extra = program._derived(mode, wrt, of)
    known = [*program.inputs, *extra]
    return Derived(derivative, tuple(known.index(name) for name in derivative.inputs))


_CACHES.append(derived.cache_clear)


def bind(
    names: Sequence[str], free: Sequence[str], args: Sequence[Any], named: Mapping[str, Any]
) -> tuple[list[Any], dict[str, int]]:
    """The arguments in order, and sizes by name, from what a call was given."""
    if len(args) > len(names):
        raise ArgumentError(f"{len(args)} arguments are given, but there are {len(names)}: {', '.join(names)}")
    given = dict(zip(names, args, strict=False))
    sizes: dict[str, int] = {}
    for name, value in named.items():
        if name in given:
            raise ArgumentError(f"{name!r} is given twice, by place and by name")
        if name in names:
            given[name] = value
        elif name in free:
            if not isinstance(value, SupportsIndex):
                raise ArgumentError(f"the size {name!r} is a whole number, and {value!r} is given")
            sizes[name] = operator.index(value)
        else:
            raise ArgumentError(f"the program has no argument or size {name!r}; there is {', '.join(names)}")
    for name in names:
        if name not in given:
            raise ArgumentError(f"the argument {name!r} is not given")
    return [given[name] for name in names], sizes
