"""Several arrays with names."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class Arrays(tuple[Any, ...]):
    """Arrays in order, each with a name: ``g[0]``, ``g["x"]`` and ``g.x`` are the same.

    A name that is used already, such as ``count`` or ``names``, is reached in brackets only.

    >>> g = Arrays(["x", "w"], [1.0, 2.0])
    >>> g.x, g["w"], list(g)
    (1.0, 2.0, [1.0, 2.0])
    >>> g
    Arrays(x=1.0, w=2.0)
    """

    names: tuple[str, ...]
    """The names, in order."""

    def __new__(cls, names: Iterable[str], values: Iterable[Any]) -> Arrays:
        """Values with their names."""
        arrays = super().__new__(cls, values)
        arrays.names = tuple(names)
        return arrays

    def __getitem__(self, key: Any) -> Any:
        """The value at a place or of a name."""
        if isinstance(key, str):
            try:
                return super().__getitem__(self.names.index(key))
            except ValueError:
                raise KeyError(key) from None
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        """Whether there is this name, or this value."""
        return key in self.names if isinstance(key, str) else super().__contains__(key)

    def __getattr__(self, name: str) -> Any:
        if name != "names" and name in self.names:
            return self[name]
        raise AttributeError(f"there is no {name!r}; there is {', '.join(self.__dict__.get('names', ()))}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.names]

    def as_dict(self) -> dict[str, Any]:
        """The values by name."""
        return dict(zip(self.names, self, strict=True))

    def __repr__(self) -> str:
        return f"Arrays({', '.join(f'{name}={value!r}' for name, value in self.as_dict().items())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Arrays, (self.names, tuple(self))
