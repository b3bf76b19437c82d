"""What notebooks show."""

import xml.etree.ElementTree as ElementTree

import pytest
from programs import NASTY, RBF

import gradix as gx


def test_a_program_shows_itself_and_its_derivatives_as_mathematics():
    shown = gx.compile(RBF)._repr_latex_()
    assert shown.startswith("$$\\begin{aligned}") and shown.endswith("\\end{aligned}$$")
    assert "y_{i} &= \\sum_{j}" in shown and "\\mathrm{d}x_{i,\\,d} &=" in shown and "align*" not in shown
    assert gx.compile(RBF).latex().startswith("\\begin{align*}") and "\\mathrm{d}x" not in gx.compile(RBF).latex()


def test_a_program_without_derivatives_shows_itself():
    shown = gx.compile("input x; y = trigamma(x)")._repr_latex_()
    assert "y &=" in shown


@pytest.mark.parametrize("name", [*NASTY, "rbf"])
def test_pictures_are_svg(name):
    program = gx.compile(RBF if name == "rbf" else NASTY[name][0])
    for picture in (program.draw(), program.draw(derivatives=False)):
        root = ElementTree.fromstring(picture._repr_svg_())
        assert root.tag == "{http://www.w3.org/2000/svg}svg" and len(list(root.iter())) > 5
    assert len(program.draw().svg) > len(program.draw(derivatives=False).svg)


def test_a_picture_can_be_saved(tmp_path):
    path = tmp_path / "graph.svg"
    gx.compile(RBF).draw().save(path)
    assert path.read_text(encoding="utf-8").startswith("<svg")


def test_an_explanation_has_words_and_pictures():
    program = gx.compile("input x[N], w[K]; y[i] = sum[k] x[2*i + 3*k] * w[k]")
    explanation = program.explain("x", sizes={"N": 20, "K": 3})
    assert "x[2*i + 3*k]" in str(explanation) and "Smith form" in explanation.text
    assert ElementTree.fromstring(explanation.svg).tag.endswith("svg")
    assert "<svg" in explanation._repr_html_() and "<pre>" in explanation._repr_html_()
    chosen = program.explain("x", at=[6], sizes={"N": 20, "K": 3})
    assert "x[6]" in chosen.svg


def test_one_index_is_drawn_beside_what_it_reads():
    explanation = gx.compile("input x[N]; y[i in 0..N//2] = x[2*i]").explain("x", at=4)
    assert "divisibility" in explanation.text
    assert "x[4]" in explanation.svg


def test_many_indices_are_explained_in_words():
    explanation = gx.compile("input x[A, B, C, D]; y[i, j, k, l] = x[l, k, j, i]").explain("x")
    assert explanation.svg == ""
    assert explanation._repr_svg_() is None
    assert "Smith form" in explanation.text
