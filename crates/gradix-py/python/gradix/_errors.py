"""The exceptions and the warning of gradix: one family."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Diagnostic(NamedTuple):
    """One thing that is wrong. Lines and columns count from 1; they are None where no text is at fault."""

    code: str
    """A stable name, such as ``unknown-name``; the documentation lists them all."""
    message: str
    line: int | None
    column: int | None
    end_line: int | None
    end_column: int | None
    hints: tuple[str, ...]


class GradixError(Exception):
    """What all exceptions of gradix have in common.

    The text of the exception is for people: all that is wrong, the lines of the program with the places marked, and
    hints. `line`, `column`, `end_line`, `end_column` and `code` are those of the first diagnostic.
    """

    diagnostics: tuple[Diagnostic, ...] = ()
    """Everything that is wrong."""
    source: str | None = None
    """The text of the program at fault."""

    @property
    def code(self) -> str | None:
        """A stable name of what is wrong."""
        return self.diagnostics[0].code if self.diagnostics else None

    @property
    def line(self) -> int | None:
        """The line of the program, counted from 1."""
        return self.diagnostics[0].line if self.diagnostics else None

    @property
    def column(self) -> int | None:
        """The column, in characters counted from 1."""
        return self.diagnostics[0].column if self.diagnostics else None

    @property
    def end_line(self) -> int | None:
        """The line where the place that is marked ends."""
        return self.diagnostics[0].end_line if self.diagnostics else None

    @property
    def end_column(self) -> int | None:
        """The column behind the place that is marked."""
        return self.diagnostics[0].end_column if self.diagnostics else None

    @property
    def hints(self) -> tuple[str, ...]:
        """Ways out."""
        return self.diagnostics[0].hints if self.diagnostics else ()

    @classmethod
    def _from(
        cls,
        text: str,
        records: list[tuple[str, str, tuple[int, int, int, int] | None, list[str]]],
        source: str,
    ) -> GradixError:
        error = cls(text)
        for code, message, place, hints in records:
            line, column, end_line, end_column = place or (None, None, None, None)
            found = Diagnostic(code, message, line, column, end_line, end_column, tuple(hints))
            error.diagnostics = (*error.diagnostics, found)
        error.source = source
        return error


class SourceError(GradixError, ValueError):
    """The text of a program is wrong: its syntax, a name, a range, a subscript that leaves its array."""


class ArgumentError(GradixError, TypeError):
    """An argument is missing, unknown, given twice, or can't be an argument."""


class ShapeError(GradixError, ValueError):
    """An array's shape does not fit."""


class DtypeError(GradixError, TypeError):
    """An array's elements are not numbers that gradix can compute with."""


class RunError(GradixError, RuntimeError):
    """A computation could not be done, for example for lack of memory."""


class InternalError(GradixError, RuntimeError):
    """A defect of gradix."""


class GradixWarning(UserWarning):
    """A computation was done, but not in the way that was asked for."""


def in_the_family(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, whose exceptions for arguments of a wrong kind are of the family."""

    @functools.wraps(function)
    def guarded(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except (GradixError, OSError):
            raise
        except MemoryError as error:
            raise RunError(f"there is not enough memory: {error}") from error
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise ArgumentError(str(error)) from error

    return guarded


def warn(message: str) -> None:
    """Warns at the place that called a method of `Program`."""
    warnings.warn(message, GradixWarning, stacklevel=3)
