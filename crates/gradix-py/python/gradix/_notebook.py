"""What notebooks show: pictures and explanations."""

from __future__ import annotations

import html
import os


class Picture:
    """A picture in the format SVG. A notebook shows it; elsewhere it can be saved."""

    def __init__(self, svg: str) -> None:
        self.svg = svg
        """The picture's text."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the picture to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def __repr__(self) -> str:
        return f"<gradix.{type(self).__name__}>"

    def _repr_svg_(self) -> str | None:
        return self.svg or None

    def _repr_html_(self) -> str:
        return f'<div style="overflow-x: auto">{self.svg}</div>'


class Explanation(Picture):
    """The integer algebra behind a derivative: in words and matrices, and as pictures where there are one to three indices."""

    def __init__(self, text: str, svg: str) -> None:
        super().__init__(svg)
        self.text = text
        """The matrices, the solved index sets and the contributions to the derivative."""

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"{super()._repr_html_()}<pre>{html.escape(self.text)}</pre>"
