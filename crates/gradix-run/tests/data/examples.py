"""Fills `examples.txt` with the results of examples/reference.py. Needs NumPy.

    python3 crates/gradix-run/tests/data/examples.py

The inputs and their shapes are read from `examples.txt`, and their elements are computed by `element`.
"""

import math
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[4]
DATA = pathlib.Path(__file__).with_name("examples.txt")
sys.path.insert(0, str(ROOT / "examples"))

import reference  # noqa: E402


def element(number, position):
    """The element at a (row-major) position, from 0, of an example's input with this number, from 1."""
    return math.sin(12.9898 * (position + 1) + 78.233 * number)


def array(number, shape):
    return np.array([element(number, p) for p in range(math.prod(shape))]).reshape(shape)


def line(kind, name, shape):
    return " ".join([" ", kind, name, *map(str, shape)])


def filled(lines):
    name, shapes = None, []

    def results():
        inputs = {input: array(n, shape) for n, (input, shape) in enumerate(shapes, 1)}
        for result, value in reference.EXAMPLES[name](inputs).items():
            yield line("result", result, value.shape)
            yield " ".join("%.12g" % v for v in value.flat)

    for text in lines:
        words = text.split()
        if text.startswith("  input "):
            shapes.append((words[1], tuple(map(int, words[2:]))))
            yield text
        elif text.startswith("#"):
            yield text
        elif len(words) == 1 and words[0] in reference.EXAMPLES:
            if name:
                yield from results()
            name, shapes = words[0], []
            yield text
    yield from results()


DATA.write_text("\n".join(filled(DATA.read_text().splitlines())) + "\n")
