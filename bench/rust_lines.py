"""How long the code of the compiler's back half is: lines of its parts, and of each function. Tests don't count.

A small reader of Rust: comments, strings and characters are blanked out first, so that braces can be counted.
"""

import re
from dataclasses import dataclass
from pathlib import Path

# A part is a folder, or a file of that name; a tree may lack some of them.
PARTS = {
    "compile": "crates/gradix/src/compile",
    "arrange": "crates/gradix/src/arrange",
    "schedule": "crates/gradix/src/schedule",
    "lower": "crates/gradix/src/lower",
    "nest": "crates/gradix/src/nest",
    "emit": "crates/gradix/src/emit",
    "target": "crates/gradix/src/target",
    "vm": "crates/gradix-run/src/vm",
}

TOKENS = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
    | (?P<literal>
        b?r(?P<hashes>\#*)".*?"(?P=hashes)
        | "(?:\\.|[^"\\])*"
        | '(?:\\u\{\w+\}|\\x\w\w|\\.|[^\\'\n])'
    )""",
    re.DOTALL | re.VERBOSE,
)
TEST = re.compile(r"#\[cfg\(test\)\]")
TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
FUNCTION = re.compile(r"\bfn\s+(\w+)")
OPENING, CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class Function:
    name: str
    file: str
    line: int
    # From `fn` to its closing brace, both included.
    lines: int


@dataclass(frozen=True)
class Counts:
    # As `wc -l` counts, without tests.
    lines: int = 0
    # Of these, those with something on them.
    not_blank: int = 0
    # Of these, those with something besides a comment.
    code: int = 0

    def __add__(self, other):
        return Counts(self.lines + other.lines, self.not_blank + other.not_blank, self.code + other.code)


@dataclass(frozen=True)
class Tree:
    path: Path
    parts: dict
    functions: list


def count(path):
    """The lines of every part of a source tree, and all functions, the longest first."""
    parts, functions = {}, []
    for part, place in PARTS.items():
        parts[part] = Counts()
        for file in files(path / place):
            text = without_tests(file.read_text())
            parts[part] += counts(text)
            functions += find_functions(text, str(file.relative_to(path)))
    return Tree(path, parts, sorted(functions, key=lambda each: (-each.lines, each.file, each.line)))


def files(place):
    """The Rust files of a part, without those that are modules of tests."""
    found = sorted(place.rglob("*.rs")) + [file for file in [place.with_suffix(".rs")] if file.exists()]
    tests = {file.parent / name for file in found for name in TEST_FILE.findall(file.read_text())}
    return [file for file in found if file.with_suffix("") not in tests and file.parent not in tests]


def without_tests(text):
    """The text without whatever `#[cfg(test)]` stands before."""
    while True:
        blank = blanked(text)
        test = TEST.search(blank)
        if not test:
            return text
        text = text[: test.start()].rstrip(" \n") + "\n" + text[end_of_item(blank, test.end()) :].lstrip("\n")


def counts(text):
    lines = text.splitlines()
    code = blanked(text, keep="literal").splitlines()
    return Counts(len(lines), sum(map(bool, map(str.strip, lines))), sum(map(bool, map(str.strip, code))))


def find_functions(text, file):
    blank = blanked(text)
    found = []
    for match in FUNCTION.finditer(blank):
        end = end_of_item(blank, match.end())
        # One without a body is a promise of a trait.
        if blank[end - 1] == "}":
            line = 1 + blank.count("\n", 0, match.start())
            found.append(Function(match[1], file, line, 1 + blank.count("\n", match.start(), end)))
    return found


def end_of_item(blank, start):
    """Where the item ends that goes on at `start`: behind its block, or behind its semicolon.

    >>> text = "fn f(x: [u8; 3]) -> u8 { if x { 1 } else { 2 } } fn g();"
    >>> text[: end_of_item(text, 0)], end_of_item(text, 50) == len(text)
    ('fn f(x: [u8; 3]) -> u8 { if x { 1 } else { 2 } }', True)
    """
    depth = 0
    for place in range(start, len(blank)):
        if blank[place] in OPENING:
            depth += 1
        elif blank[place] in CLOSING:
            depth -= 1
            if depth == 0 and blank[place] == "}":
                return place + 1
        elif blank[place] == ";" and depth == 0:
            return place + 1
    return len(blank)


def blanked(text, keep=None):
    """The text with spaces in place of comments, and of strings and characters unless they are to be kept.

    >>> blanked('let c = "}"; // {')
    'let c =    ;     '
    """
    def blank(match):
        return match[0] if keep and match[keep] else re.sub(r"[^\n]", " ", match[0])

    return TOKENS.sub(blank, text)
