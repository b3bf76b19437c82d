"""Programs: compiled, called, derived."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, SupportsIndex, cast, get_args

from ._arrays import Arrays
from ._errors import ArgumentError, GradixError, in_the_family
from ._gradix import Function, Plan
from ._notebook import Explanation, Picture

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, DTypeLike

    Array = np.ndarray[Any, np.dtype[np.floating[Any]]]
    Out = Array | Sequence[Array | None] | Mapping[str, Array]

Backend = Literal["auto", "native", "vm", "interp", "cuda"]
Mode = Literal["reverse", "forward", "jacobian", "hessian"]
Names = str | Iterable[str] | None
Chosen = tuple[str, ...] | None

# Why the methods of `Program` that compute spell out the same options, each for itself. Arguments of a program have names
# that nobody knows before (`**named: ArrayLike`), and a signature has one `**`: `Unpack` of a `TypedDict` can't stand
# beside it before dictionaries with `extra_items` (PEP 728) are known to type checkers. An object for the options would
# make every call longer (`grad(x, options=Options(wrt="w"))`), and a decorator or a stub that is made from one list would
# hide the signatures from `help`, from Jupyter, and from editors that read the source.


@in_the_family
def compile(
    source: str | os.PathLike[str],
    *,
    sizes: Mapping[str, int] | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
) -> Program:
    """Makes a function of a program in index notation.

    Args:
        source: The text of a program, or the path of a file with one (a `pathlib.Path`, or a string that ends in ``.gx``).
        sizes: Sizes to fix, by name. All others follow from the shapes of arrays, or are given in calls.
        backend: What computes: ``"native"`` is the machine's C compiler, ``"vm"`` needs nothing, ``"interp"`` is the slow
            reference that the others are held to, ``"cuda"`` is a GPU, and ``"auto"`` the fastest that there is for arrays
            in the memory of the host. Arrays on a GPU are computed with there in any case.
        threads: How many threads compute; one for each core if it is None.

    Returns:
        The program. The same text and options give the same object; code is made when it is first needed, kept on disk, and
        found there by other processes.

    Raises:
        SourceError: The text is wrong. The exception's text marks the place.

    >>> import gradix as gx
    >>> import numpy as np
    >>> blur = gx.compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]")
    >>> blur(np.arange(5.0), np.array([0.5, 0.5]))
    array([0.5, 1.5, 2.5, 3.5])
    >>> gx.compile("input x[N]; y[i] = x[i + 1] + x[i, i]")
    Traceback (most recent call last):
    gradix.SourceError: error[subscript-count]: 'x' has 1 dimension, but 2 subscripts are given
    ...
    """
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"a program is a text or the path of a file, and {source!r} is given")
    if not isinstance(backend, str):
        raise ArgumentError(f"'backend' is a name, and {backend!r} is given")
    if not isinstance(threads, SupportsIndex | None):
        raise ArgumentError(f"'threads' is a whole number of at least 1, and {threads!r} is given")
    threads = threads if threads is None else operator.index(threads)
    name = "program"
    if not isinstance(source, str) or (source.endswith(".gx") and "\n" not in source):
        name = os.fspath(source)
        with open(source, encoding="utf-8") as file:
            source = file.read()
    return _compiled(source, name, tuple(sorted(_sizes(sizes))), backend, threads)


@functools.lru_cache(maxsize=1024)
def _compiled(
    source: str, name: str, sizes: tuple[tuple[str, int], ...], backend: Backend, threads: int | None
) -> Program:
    return Program(source, name, sizes, backend, threads)


def clear_cache() -> None:
    """Forgets compiled programs, and frees the memory of those that nothing else refers to.

    A program keeps memory for intermediate values from one call to the next. Code on disk stays.
    """
    _compiled.cache_clear()
    for forget in _CACHES:
        forget()


_CACHES: list[Callable[[], object]] = []
"""What else refers to programs, for `clear_cache`."""


class Comparison(NamedTuple):
    """A derivative beside its numeric value; see `Program.check`."""

    derivative: str
    argument: str
    shape: tuple[int, ...]
    error: float
    """The largest error, relative to the larger of the element and the mean magnitude of the derivative."""
    skipped: int
    """How many elements could not be measured, for example at a kink."""
    passed: bool
    """Whether all others agree, and, if the check is strict, something was compared."""
    verdict: str
    """`ok`, `failed`, or `not checked` if no element was measured, or all are 0 at the sizes and data that were tried."""


class Program:
    """A program in index notation, as a function of arrays that knows its derivatives. Made by `gradix.compile`.

    Arguments of calls are given by place, in the order of declaration, or by name:

    - Arrays of float64 or float32, of any strides and order, are read where they lie. Results have the same type;
      if both types occur, float64.
    - Other arrays, lists and whatever else NumPy can make an array of are converted, once in each call: whole numbers to
      the type of the others, and to float64 if there are none; float16 to float32. So are arrays that are not aligned
      or have the byte order of another machine, and float32 beside float64.
    - An array that is not in C order and has at most 16 KiB is copied, which takes at most 10 µs; so is one
      for which the reference interpreter computes.
    - A scalar argument can be a number.
    - Arrays on a GPU that have `__cuda_array_interface__` (CuPy's, PyTorch's and others) are computed with where they lie, on
      the stream of the first of them. Results are arrays of its framework.

    Sizes follow from the shapes of the arrays. One that does not, because no array has it as an extent, is given by name.

    Calls take these options:

    - ``out``: arrays for the results: one, or several as a sequence or by name. They are written in place if they are in
      C order and overlap no argument, and otherwise get a copy.
    - ``dtype``: the type to compute in, whatever the arrays are.
    - ``backend``, ``threads``: as for `compile`.

    An argument of the program that is called like an option is given by place.

    A program can be called from several threads at once, and lets other Python threads run meanwhile. It can be pickled.
    """

    __slots__ = (
        "__weakref__",
        "_backend",
        "_free",
        "_function",
        "_inputs",
        "_name",
        "_outputs",
        "_plans",
        "_sizes",
        "_source",
        "_text",
        "_threads",
        "_value",
    )

    def __init__(
        self, source: str, name: str, sizes: tuple[tuple[str, int], ...], backend: Backend, threads: int | None
    ) -> None:
        """Use `gradix.compile`."""
        self._source, self._name, self._sizes, self._backend, self._threads = source, name, sizes, backend, threads
        self._function = Function(source, name, sizes, backend, threads)
        self._value = self._function.plan("value", None, None)
        self._text = self._function.text
        self._inputs = {name: tuple(extents) for name, extents in self._function.inputs}
        self._outputs = {name: tuple(extents) for name, extents in self._function.outputs}
        self._free = tuple(self._function.sizes)
        self._plans: dict[tuple[str, Chosen, Chosen], Plan] = {}

    # What it is.

    @property
    def source(self) -> str:
        """The text that it was made from."""
        return self._source

    @property
    def text(self) -> str:
        """The program as it was written, in canonical form."""
        return self._text

    @property
    def inputs(self) -> dict[str, tuple[str, ...]]:
        """The arguments in order, with their extents.

        >>> compile("input x[N, 2*M], t; y[i] = t * sum[j] x[i, j]").inputs
        {'x': ('N', '2 * M'), 't': ()}
        """
        return dict(self._inputs)

    @property
    def outputs(self) -> dict[str, tuple[str, ...]]:
        """The results in order, with their extents."""
        return dict(self._outputs)

    @property
    def sizes(self) -> tuple[str, ...]:
        """The sizes that follow from the shapes of arrays or are given in calls."""
        return self._free

    # Values.

    def __call__(
        self,
        /,
        *args: ArrayLike,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **named: ArrayLike,
    ) -> Any:
        """Computes the results: an array, or several as `Arrays`.

        >>> import numpy as np
        >>> program = compile("input x[N]; total = sum[i] x[i]; double[i] = 2 * x[i]")
        >>> program(x=[1.0, 2.0])
        Arrays(total=np.float64(3.0), double=array([2., 4.]))
        """
        plan = self._value
        results = plan.run(args, named, out, threads, backend, dtype)
        return results[0] if len(results) == 1 else Arrays(plan.results, results)

    def value_and_grad(
        self,
        /,
        *args: ArrayLike,
        wrt: Names = None,
        of: Names = None,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **named: ArrayLike,
    ) -> tuple[Any, Arrays]:
        """The results and the derivatives of a loss by the arguments, computed together.

        Args:
            args: The arguments.
            wrt: The arguments to derive by, all if it is None.
            of: The results to derive, all if it is None; others are neither computed nor returned.
            out: Arrays for the results and then the derivatives (``dx`` by name).
            threads: As for `compile`.
            backend: As for `compile`.
            dtype: The type to compute in.
            named: Arguments, sizes, and for each result ``y`` the derivative ``dy`` of the loss by it. Of a scalar result it
                is 1 if it is not given.

        Returns:
            The results as of a call, and the derivatives by name of the argument.

        >>> import numpy as np
        >>> program = compile("input x[N], w[N]; y = sum[i] w[i] * x[i]^2")
        >>> y, g = program.value_and_grad([1.0, 2.0], w=[1.0, 3.0])
        >>> y, g.x, g["w"]
        (np.float64(13.0), array([ 2., 12.]), array([1., 4.]))
        """
        wrt, of = _names(wrt), _names(of)
        plan = self._plan("value_and_grad", wrt, of)
        values = plan.run(args, named, out, threads, backend, dtype)
        chosen = self._arguments(wrt)
        count = len(values) - len(chosen)
        results = values[0] if count == 1 else Arrays(plan.results[:count], values[:count])
        return results, Arrays(chosen, values[count:])

    def grad(
        self,
        /,
        *args: ArrayLike,
        wrt: Names = None,
        of: Names = None,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **named: ArrayLike,
    ) -> Arrays:
        """The derivatives of a loss by the arguments; see `value_and_grad`.

        >>> import numpy as np
        >>> double = compile("input x[N]; y[i in 0..N//2] = x[2*i]")
        >>> dx, = double.grad(np.arange(5.0), dy=np.array([1.0, 2.0]), wrt="x")
        >>> dx
        array([1., 0., 2., 0., 0.])
        """
        wrt, of = _names(wrt), _names(of)
        plan = self._plan("grad", wrt, of)
        values = plan.run(args, named, out, threads, backend, dtype)
        return Arrays(self._arguments(wrt), values)

    @in_the_family
    def jvp(
        self,
        /,
        primals: Sequence[ArrayLike] | Mapping[str, ArrayLike],
        tangents: Sequence[ArrayLike | None] | Mapping[str, ArrayLike],
        *,
        of: Names = None,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **sizes: int,
    ) -> Any:
        """How the results change when the arguments change in a direction.

        Args:
            primals: The arguments, in order or by name.
            tangents: For each argument how it changes; None, or none of that name, if it does not.
            of: The results to derive, all if it is None.
            out: Arrays for the tangents of the results.
            threads: As for `compile`.
            backend: As for `compile`.
            dtype: The type to compute in.
            sizes: Sizes by name.

        Returns:
            The tangent of the result, or those of several as `Arrays`.

        >>> compile("input x, y; f = x * y").jvp((2.0, 3.0), (1.0, None))
        np.float64(3.0)
        """
        inputs = list(self.inputs)
        if not isinstance(tangents, Mapping):
            if len(tangents) > len(inputs):
                raise ArgumentError(f"{len(tangents)} tangents are given, but there are {len(inputs)} arguments")
            tangents = {name: given for name, given in zip(inputs, tangents, strict=False) if given is not None}
        of = _names(of)
        plan = self._plan("jvp", tuple(tangents), of)
        if clash := [name for name in plan.extra if name in sizes]:
            raise ArgumentError(f"{clash[0]!r} is given twice, as a tangent and by name")
        named = dict(zip(plan.extra, tangents.values(), strict=True)) | sizes
        args: tuple[ArrayLike, ...] = ()
        if isinstance(primals, Mapping):
            named |= primals
        else:
            args = tuple(primals)
        values = plan.run(args, named, out, threads, backend, dtype)
        return values[0] if len(values) == 1 else Arrays(self._results(of), values)

    def jacobian(
        self,
        /,
        *args: ArrayLike,
        wrt: Names = None,
        of: Names = None,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **named: ArrayLike,
    ) -> Arrays:
        """All derivatives of every element of a result by every element of an argument.

        Returns:
            By name of the argument, an array with the dimensions of the result and then those of the argument; if there are
            several results, by name of the result first.

        >>> import numpy as np
        >>> compile("input x[N]; y[i in 0..N - 1] = x[i + 1] - x[i]").jacobian(np.ones(3)).x
        array([[-1.,  1.,  0.],
               [ 0., -1.,  1.]])
        """
        wrt, of = _names(wrt), _names(of)
        plan = self._plan("jacobian", wrt, of)
        values = plan.run(args, named, out, threads, backend, dtype)
        return _by_result(self._results(of), [self._arguments(wrt)], values)

    def hessian(
        self,
        /,
        *args: ArrayLike,
        wrt: Names = None,
        of: Names = None,
        out: Out | None = None,
        threads: int | None = None,
        backend: Backend | None = None,
        dtype: DTypeLike | None = None,
        **named: ArrayLike,
    ) -> Arrays:
        """All second derivatives of a scalar result.

        Returns:
            By names of the two arguments, an array with the dimensions of both; if there are several results, by name of the
            result first.

        >>> import numpy as np
        >>> compile("input x[N]; f = sum[i] x[i]^3").hessian(np.array([1.0, 2.0])).x.x
        array([[ 6.,  0.],
               [ 0., 12.]])
        """
        wrt, of = _names(wrt), _names(of)
        plan = self._plan("hessian", wrt, of)
        values = plan.run(args, named, out, threads, backend, dtype)
        return _by_result(self._results(of), [self._arguments(wrt)] * 2, values)

    @in_the_family
    def shapes(
        self, /, *shapes: Sequence[int], **named: Sequence[int] | int
    ) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        """The sizes and the shapes of the results, for arguments of some shapes, by place or by name.

        >>> compile("input x[N], w[K]; y[i] = sum[k] x[i + k] * w[k]").shapes((10,), w=(3,))
        ({'N': 10, 'K': 3}, {'y': (8,)})
        """
        by_name = {name: named.pop(name) for name in list(self._inputs)[len(shapes) :] if name in named}
        given: list[Any] = [*shapes, *by_name.values()]
        if len(given) != len(self._inputs):
            raise ArgumentError(f"{len(given)} shapes are given, but there are {len(self._inputs)} arguments")
        if unknown := [name for name in named if name not in self._free]:
            raise ArgumentError(f"the program has no argument or size {unknown[0]!r}")
        known, results = self._value.shapes(given, cast("list[tuple[str, int]]", list(named.items())))
        return dict(known), {name: tuple(shape) for name, shape in zip(self._outputs, results, strict=True)}

    # Derivatives as programs.

    @in_the_family
    def derivative(
        self,
        wrt: Names = None,
        *,
        of: Names = None,
        mode: Mode = "reverse",
        inline: bool = False,
        verify: bool = False,
    ) -> Program:
        """The derivative, a program like any other: it can be printed, called and derived again.

        Args:
            wrt: The arguments to derive by, all if it is None.
            of: The results to derive, all if it is None.
            mode: ``"reverse"`` takes the derivative ``dy`` of a loss by each result ``y`` and gives ``dx`` for each argument;
                ``"forward"`` takes a tangent ``x_dot`` for each argument and gives ``y_dot``; ``"jacobian"`` and
                ``"hessian"`` are all first derivatives, and all second ones of a scalar.
            inline: One expression for each derivative, without temporaries.
            verify: Hold every element to the function first, by enumeration at a few small sizes. A derivative that is
                wrong is an :class:`InternalError` with a report.

        >>> print(compile("input x[N, N]; f[i] = x[i, i]^3").derivative("x", verify=True))
        input x[N, N], df[N]
        dx[i, j in 0..N] = if i == j then 3 * df[i] * x[i, i]^2 else 0
        """
        if mode not in (known := get_args(Mode)):
            raise ArgumentError(f"'mode' is one of {', '.join(known)}, and {mode!r} is given")
        return self._derived(mode, _names(wrt), _names(of), inline, verify)[0]

    @in_the_family
    def batched(self, names: Names = None) -> Program:
        """The program for a whole batch: the arguments named (all if None) get one more dimension, the first, and so do
        the results that depend on them.

        >>> print(compile("input x[N], w[N]; y = sum[i] w[i] * x[i]").batched("x"))
        param N, B
        input x[B, N], w[N]
        y[b] = sum[i] w[i] * x[b, i]
        """
        text = self._function.batch(self._arguments(_names(names)))
        return _compiled(text, "batch", (), self._backend, self._threads)

    # What people look at.

    def latex(self, derivatives: bool = False) -> str:
        """The program as an ``align*`` of LaTeX, with or without its derivatives."""
        return self._function.latex(derivatives)

    def draw(self, derivatives: bool = True) -> Picture:
        """The computation graph: blue what the function is made of, red what its derivatives add.

        >>> compile("input x[N]; y = sum[i] sin(x[i])").draw().svg.startswith("<svg")
        True
        """
        return Picture(self._function.draw(derivatives))

    @in_the_family
    def explain(
        self,
        wrt: Names = None,
        *,
        at: SupportsIndex | Sequence[int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> Explanation:
        """The integer algebra behind the derivative by an argument: for every place that reads it, the matrices, the index
        sets, and pictures of the points that read one element.

        Args:
            wrt: The arguments, all if it is None.
            at: The element to draw; if it is None, one that most points read.
            sizes: Sizes for the pictures; those that are not given are chosen such that there is something to see.

        >>> print(compile("input x[N]; y[i in 0..N//2] = x[2*i]").explain("x"))  # doctest: +ELLIPSIS
        access 1: x[2*i]
        ...
        """
        place = None if at is None else [operator.index(at)] if isinstance(at, SupportsIndex) else list(at)
        text, svg = self._function.explain(_names(wrt), place, _sizes(sizes))
        return Explanation(text, svg)

    @in_the_family
    def check(
        self,
        *,
        order: int = 1,
        seed: int = 0,
        tolerance: float | None = None,
        sizes: Mapping[str, int] | None = None,
        strict: bool = False,
    ) -> tuple[Comparison, ...]:
        """Compares every derivative with numeric differentiation, on random arrays.

        Args:
            order: 2 compares the derivatives of the derivatives too.
            seed: Where the random numbers start.
            tolerance: The largest relative error that passes; if it is None, what numeric differentiation can tell apart.
            sizes: Sizes by name; those that are not given are chosen small.
            strict: Derivatives that could not be checked do not pass.

        >>> [row] = compile("input x[N]; y = sum[i] sin(x[i])").check()
        >>> row.derivative, row.argument, row.shape, row.passed
        ('dx', 'x', (3,), True)
        >>> [row] = compile("input x[N]; y[i] = if x[i] > 5 then x[i]^2 else 0").check(strict=True)
        >>> row.verdict, row.passed
        ('not checked', False)
        """
        if order not in (1, 2):
            raise ArgumentError(f"'order' is 1 or 2, and {order!r} is given")
        if tolerance is not None and not tolerance >= 0:
            raise ArgumentError(f"'tolerance' is a number of at least 0, and {tolerance!r} is given")
        passing = ("ok",) if strict else ("ok", "not checked")
        rows = self._function.check(order, seed, tolerance, _sizes(sizes))
        return tuple(
            Comparison(name, argument, tuple(shape), error, skipped, verdict in passing, verdict)
            for name, argument, shape, error, skipped, verdict in rows
        )

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def __repr__(self) -> str:
        def listed(tensors: dict[str, tuple[str, ...]]) -> str:
            extents = {name: f"[{', '.join(shape)}]" if shape else "" for name, shape in tensors.items()}
            return ", ".join(name + extent for name, extent in extents.items())

        arguments = listed(self.inputs)
        return f"<gradix.Program: {listed(self.outputs)}{' of ' if arguments else ''}{arguments}>"

    def _repr_latex_(self) -> str:
        try:
            text = self.latex(derivatives=True)
        except GradixError:
            # Not every program has derivatives.
            text = self.latex()
        return f"$${text.strip().replace('{align*}', '{aligned}')}$$"

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, (self._source, self._name, self._sizes, self._backend, self._threads)

    def _derived(
        self, mode: Mode, wrt: Chosen, of: Chosen, inline: bool = False, verify: bool = False
    ) -> tuple[Program, list[str]]:
        """The derivative, and the names of tangents or upstream derivatives."""
        text, extra = self._function.derive(mode, wrt, of, inline, verify)
        return _compiled(text, "derivative", (), self._backend, self._threads), extra

    def _plan(self, what: str, wrt: Chosen, of: Chosen) -> Plan:
        key = (what, wrt, of)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans.setdefault(key, self._function.plan(what, wrt, of))
        return plan

    def _arguments(self, wrt: Chosen) -> Sequence[str]:
        return tuple(self._inputs) if wrt is None else wrt

    def _results(self, of: Chosen) -> Sequence[str]:
        return tuple(self._outputs) if of is None else of


def _names(names: Names) -> tuple[str, ...] | None:
    """Names as a tuple, each once."""
    if names is None or isinstance(names, str):
        return names if names is None else (names,)
    chosen = tuple(dict.fromkeys(names)) if isinstance(names, Iterable) else (names,)
    if not all(isinstance(name, str) for name in chosen):
        raise ArgumentError(f"names are a string or several, and {names!r} is given")
    return chosen


def _sizes(sizes: Mapping[str, int] | None) -> list[tuple[str, int]]:
    if not isinstance(sizes, Mapping | None):
        raise ArgumentError(f"sizes are a mapping from names, and {sizes!r} is given")
    for name, size in (sizes or {}).items():
        if not isinstance(name, str) or not isinstance(size, SupportsIndex):
            raise ArgumentError(f"the size {name!r} is a whole number, and {size!r} is given")
    return [(name, operator.index(size)) for name, size in (sizes or {}).items()]


def _nested(levels: list[Sequence[str]], values: Sequence[Any]) -> Arrays:
    """Values in the order of all combinations of names, as arrays of arrays."""
    first, *rest = levels
    if not rest:
        return Arrays(first, values)
    step = len(values) // max(len(first), 1)
    return Arrays(first, [_nested(rest, values[place * step :][:step]) for place in range(len(first))])


def _by_result(results: Sequence[str], levels: list[Sequence[str]], values: Sequence[Any]) -> Arrays:
    """The same by name of the result first, unless there is one result only."""
    nested = _nested([results, *levels], values)
    return cast(Arrays, nested[0]) if len(results) == 1 else nested
