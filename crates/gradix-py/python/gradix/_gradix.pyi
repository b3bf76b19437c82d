"""The compiled part of gradix."""

from collections.abc import Sequence
from typing import Any, final

__all__ = ["DeviceArray", "Function", "Plan", "__version__", "xla_clear", "xla_device_handler", "xla_handler"]

__version__: str

def xla_handler() -> int:
    """The address of the function that XLA calls."""

def xla_device_handler() -> int:
    """The address of the function that XLA calls for arrays on a GPU."""

def xla_clear() -> int:
    """Forgets the programs that XLA has called, and tells how many there were."""

@final
class DeviceArray:
    """An array on a GPU, dense and in C order, which frameworks read by `__cuda_array_interface__`."""

    def __new__(cls, shape: Sequence[int], dtype: str, value: float | None, /) -> DeviceArray: ...
    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Where it is, for frameworks."""
    @property
    def shape(self) -> tuple[int, ...]:
        """How long it is in each dimension."""

@final
class Function:
    """A program in index notation."""

    def __new__(
        cls, text: str, name: str, sizes: Sequence[tuple[str, int]], backend: str, threads: int | None, /
    ) -> Function: ...
    @property
    def text(self) -> str:
        """The program in canonical form."""
    @property
    def inputs(self) -> list[tuple[str, list[str]]]:
        """The arguments, with their extents."""
    @property
    def outputs(self) -> list[tuple[str, list[str]]]:
        """The results, with their extents."""
    @property
    def sizes(self) -> list[str]:
        """The sizes that calls may give, or that follow from the shapes of arrays."""
    def plan(self, what: str, wrt: Sequence[str] | None, of: Sequence[str] | None, /) -> Plan:
        """How to compute the results (`value`), derivatives (`grad`, `jvp`, `jacobian`, `hessian`) or both (`value_and_grad`)."""
    def derive(
        self, mode: str, wrt: Sequence[str] | None, of: Sequence[str] | None, inline: bool, verify: bool, /
    ) -> tuple[str, list[str]]:
        """The text of a derivative, held to the function by enumeration if `verify` asks for it, and the names of what it
        takes besides the arguments: tangents, or upstream derivatives, also those that it does not depend on.
        """
    def batch(self, names: Sequence[str], /) -> str:
        """The program for a batch: the arguments named get one more dimension, the first."""
    def latex(self, derivatives: bool, /) -> str:
        """The program, and with `derivatives` those too, in the language of LaTeX."""
    def draw(self, derivatives: bool, /) -> str:
        """The computation graph as SVG, with or without that of the derivatives."""
    def explain(
        self, wrt: Sequence[str] | None, at: Sequence[int] | None, sizes: Sequence[tuple[str, int]], /
    ) -> tuple[str, str]:
        """The algebra behind the derivatives as text, and lattices as SVG, which is empty if there is nothing to draw."""
    def check(
        self, order: int, seed: int, tolerance: float | None, sizes: Sequence[tuple[str, int]], /
    ) -> list[tuple[str, str, list[int], float, int, str]]:
        """Compares the derivatives with numeric differentiation, on random arrays. For each derivative: its name, its
        argument, its shape, the largest error, how many elements could not be measured, and the verdict.
        """

@final
class Plan:
    """What one call computes. Made by `Function.plan`."""

    @property
    def results(self) -> list[str]:
        """The names of the results."""
    @property
    def extra(self) -> list[str]:
        """The names of what is given besides the arguments: tangents, or upstream derivatives."""
    def run(
        self,
        args: tuple[Any, ...],
        named: dict[str, Any],
        out: Any | None,
        threads: int | None,
        backend: str | None,
        dtype: Any | None,
        /,
    ) -> tuple[Any, ...]:
        """Computes the results."""
    @property
    def slots(self) -> list[str]:
        """The names of all that is given, in order."""
    @property
    def arguments(self) -> int:
        """How many of them are arguments."""
    @property
    def scalars(self) -> list[str]:
        """The names of upstream derivatives of results without dimensions, which are 1 unless given."""
    def run_on_device(
        self,
        shapes: Sequence[Sequence[int]],
        addresses: Sequence[int],
        sizes: Sequence[tuple[str, int]],
        results: Sequence[int],
        dtype: str,
        stream: int,
        /,
    ) -> None:
        """Starts the computation on a stream of the GPU: of arrays in C order, by their shapes and addresses, one for each
        slot, into those of the results.
        """
    def shapes(
        self, shapes: Sequence[Sequence[int]], sizes: Sequence[tuple[str, int]], /
    ) -> tuple[list[tuple[str, int]], list[list[int]]]:
        """The sizes and the shapes of the results for arrays of these shapes, one for each argument."""
