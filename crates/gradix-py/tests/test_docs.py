"""Every example in the documentation runs."""

import doctest
import importlib
import re

import pytest
from programs import ROOT

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PAGES = ["README.md", "crates/gradix-py/README.md", "docs/python.md", "docs/loops.md"]


@pytest.mark.parametrize("name", ["", "._arrays", "._errors", "._notebook", "._program", ".jax", ".torch"])
def test_docstrings(name):
    if name in (".jax", ".torch"):
        pytest.importorskip(name[1:])
    module = importlib.import_module(f"gradix{name}")
    if name == ".jax":
        import jax

        jax.config.update("jax_enable_x64", False)
    try:
        assert doctest.testmod(module, optionflags=FLAGS).failed == 0
    finally:
        if name == ".jax":
            jax.config.update("jax_enable_x64", True)


@pytest.mark.parametrize("page", PAGES)
def test_pages(page):
    """Blocks are run one after the other, with the names of those before; where there are prompts, what comes out is compared."""
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert blocks, "a page about Python has some"
    if any("import torch" in block for block in blocks):
        try:
            import torch  # noqa: F401
        except ImportError:
            blocks = [block for block in blocks if "torch" not in block]
    names: dict[str, object] = {}
    for block in blocks:
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
            runner = doctest.DocTestRunner(optionflags=FLAGS)
            runner.run(test, clear_globs=False)
            names = test.globs
            assert runner.failures == 0, block
        else:
            exec(compile(block, page, "exec"), names)


def test_every_public_name_has_words():
    import gradix as gx

    for name in gx.__all__:
        assert name == "__version__" or getattr(gx, name).__doc__, name
    for name, member in vars(gx.Program).items():
        assert name.startswith("_") or member.__doc__, name
