"""A program among the arrays of a framework that differentiates and batches by itself.

A call is a program's text, its sizes, and arrays. Every transformation of a call is a call again, of another text: the
derivative of a program, its tangent and its batch are programs. So one operation is enough, to any order.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ._errors import ArgumentError
from ._program import _CACHES, Backend, Program, _compiled


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

    def at(self, shapes: Sequence[Sequence[int]]) -> Call:
        """The same call with all its sizes."""
        return self.like(self.program, shapes)

    def like(self, program: Program, shapes: Sequence[Sequence[int]], **more: int) -> Call:
        """A call of a program that was made from this one, at the sizes that this one has for arrays of these shapes."""
        sizes = self.program.shapes(*shapes, **dict(self.sizes))[0] | more
        return Call(program.text, tuple((name, sizes[name]) for name in program.sizes), self.backend, self.threads)


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
    extra = program._plan("grad" if mode == "reverse" else "jvp", wrt, of).extra
    derivative = program.derivative(wrt, of=of, mode=mode)
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
            sizes[name] = int(value)
        else:
            raise ArgumentError(f"the program has no argument or size {name!r}; there is {', '.join(names)}")
    for name in names:
        if name not in given:
            raise ArgumentError(f"the argument {name!r} is not given")
    return [given[name] for name in names], sizes
