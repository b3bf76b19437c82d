"""Mistakes: one family of exceptions, with places and hints; never anything else."""

import importlib.util
import inspect
import pickle
import random
import subprocess
import sys
import threading

import numpy as np
import pytest
from programs import RBF, arrays

import gradix as gx


def test_all_exceptions_are_of_one_family():
    kinds = [kind for _, kind in inspect.getmembers(gx, inspect.isclass) if issubclass(kind, Exception)]
    kinds = [kind for kind in kinds if not issubclass(kind, Warning)]
    assert len(kinds) == 7 and all(issubclass(kind, gx.GradixError) for kind in kinds)
    assert issubclass(gx.ShapeError, ValueError) and issubclass(gx.DtypeError, TypeError)


def test_mistakes_in_the_text_are_marked():
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("input x[N]\ny[i] = z[i] + 1\n")
    error = caught.value
    assert (error.line, error.column, error.end_line, error.end_column) == (2, 8, 2, 9)
    assert error.code == "unknown-name" and error.source == "input x[N]\ny[i] = z[i] + 1\n"
    assert "2 | y[i] = z[i] + 1" in str(error) and "^" in str(error)
    assert len(error.diagnostics) == 1 and error.diagnostics[0].message in str(error)


def test_columns_are_counted_in_characters():
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("input θ[N]; y[i] = θ[i] + ω")
    assert caught.value.column == 27


def test_all_mistakes_are_told_at_once():
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("y = a\nz = b")
    assert [diagnostic.line for diagnostic in caught.value.diagnostics] == [1, 2]


def test_a_file_is_named(tmp_path):
    path = tmp_path / "wrong.gx"
    path.write_text("y = +")
    with pytest.raises(gx.SourceError, match=r"wrong\.gx:1:\d"):
        gx.compile(path)
    with pytest.raises(FileNotFoundError):
        gx.compile(tmp_path / "missing.gx")


def test_a_subscript_that_leaves_its_array_is_marked_when_sizes_are_known():
    program = gx.compile("input x[N], y[M]; z[i in 0..M] = x[i] * y[i]")
    with pytest.raises(gx.ShapeError) as caught:
        program(np.ones(2), np.ones(3))
    assert caught.value.code == "out-of-bounds" and caught.value.line == 1 and "x[i]" in str(caught.value)


# For each mistake: the arguments, the exception, and what its text has to name: the argument, what was expected, what given.
X, Z, W, DY = arrays([(5, 3), (4, 3), (4,), (5,)])
MISTAKES = {
    "missing": (lambda p: p(X, Z), gx.ArgumentError, ["'w'", "not given"]),
    "too many": (lambda p: p(X, Z, W, W), gx.ArgumentError, ["4 arguments", "x, z, w"]),
    "unknown": (lambda p: p(X, Z, W, q=1), gx.ArgumentError, ["'q'", "x, z, w"]),
    "twice": (lambda p: p(X, Z, W, x=X), gx.ArgumentError, ["'x'", "twice"]),
    "not an array": (lambda p: p(X, Z, object()), gx.DtypeError, ["'w'", "object"]),
    "ragged": (lambda p: p(X, Z, [[1.0], [2.0, 3.0]]), gx.ArgumentError, ["'w'"]),
    "text": (lambda p: p(X, Z, "text"), gx.DtypeError, ["'w'", "float64"]),
    "complex": (lambda p: p(X, Z, W + 1j), gx.DtypeError, ["'w'", "complex128", "float64"]),
    "long double": (lambda p: p(X, Z, W.astype(np.longdouble)), gx.DtypeError, ["'w'", "float64"]),
    "dates": (lambda p: p(X, Z, np.zeros(4, "M8[s]")), gx.DtypeError, ["'w'", "datetime64"]),
    "huge number": (lambda p: gx.compile("input t; y = t")(10**400), gx.DtypeError, ["'t'", "too large"]),
    "none": (lambda p: p(X, Z, None), gx.ArgumentError, ["'w'", "None"]),
    "upstream by place": (lambda p: p.grad(X, Z, W, DY), gx.ArgumentError, ["4 arguments", "dy"]),
    "option by name": (lambda p: gx.compile("input out; y = out")(out=X), gx.GradixError, ["'out'", "place"]),
    "masked": (lambda p: p(X, Z, np.ma.array(W, mask=W > 0)), gx.ArgumentError, ["'w'", "masked"]),
    "compiled backends": (lambda p: gx.compile(RBF, backend=[]), gx.ArgumentError, ["'backend'"]),
    "broadcast": (
        lambda p: gx.compile("input x[N, M]; y = sum[i, j] x[i, j]")(
            np.broadcast_to(1.0, (10**9, 10**9)), backend="interp"
        ),
        gx.RunError,
        ["memory"],
    ),
    "list of sizes": (lambda p: gx.compile(RBF, sizes=[("N", 3)]), gx.ArgumentError, ["sizes"]),
    "numbered size": (lambda p: gx.compile(RBF, sizes={3: 3}), gx.ArgumentError, ["3"]),
    "large size": (lambda p: gx.compile(RBF, sizes={"N": 2**70}), gx.GradixError, [""]),
    "surrogate": (lambda p: gx.compile("y = \ud800"), gx.GradixError, ["surrogate"]),
    "wrt numbers": (lambda p: p.grad(X, Z, W, dy=DY, wrt=[0]), gx.ArgumentError, ["[0]"]),
    "no mode": (lambda p: p.derivative(mode=None), gx.ArgumentError, ["mode"]),
    "no tangents": (lambda p: p.jvp((X, Z, W), None), gx.ArgumentError, [""]),
    "tangent twice": (lambda p: p.jvp((X, Z, W), (X, Z, W), x_dot=X), gx.ArgumentError, ["'x_dot'", "twice"]),
    "number for a shape": (lambda p: p.shapes(3, 2, 1), gx.ArgumentError, [""]),
    "negative shape": (lambda p: p.shapes((-3, 3), (2, 3), (2,)), gx.ArgumentError, [""]),
    "negative seed": (lambda p: p.check(seed=-1), gx.ArgumentError, [""]),
    "tolerance": (lambda p: p.check(tolerance=float("nan")), gx.ArgumentError, ["'tolerance'"]),
    "unknown checked size": (lambda p: p.check(sizes={"Q": 3}), gx.ArgumentError, ["'Q'", "N"]),
    "element text": (lambda p: p.explain("x", at="a"), gx.ArgumentError, [""]),
    "unknown size, nothing drawn": (
        lambda p: gx.compile("input x[A, B, C, D]; y[i, j, k, l] = x[l, k, j, i]").explain("x", sizes={"Q": 3}),
        gx.ArgumentError,
        ["'Q'"],
    ),
    "unknown batch": (lambda p: p.batched("q"), gx.ArgumentError, ["'q'"]),
    "batched result": (lambda p: p.batched("y"), gx.ArgumentError, ["'y'"]),
    "hessian memory": (
        lambda p: gx.compile("input x[N]; y = sum[i] x[i]^2").hessian(np.broadcast_to(1.0, (1 << 40,))),
        gx.RunError,
        ["memory"],
    ),
    "converted memory": (
        lambda p: gx.compile("input x[N], t[M]; y = sum[i, j] x[i] * t[j]")(
            np.broadcast_to(np.float32(1), (1 << 46,)), W
        ),
        gx.RunError,
        ["memory"],
    ),
    "no text": (lambda p: gx.compile(123), gx.ArgumentError, ["123"]),
    "compiled backend": (lambda p: gx.compile(RBF, backend="opencl"), gx.ArgumentError, ["'opencl'", "native"]),
    "compiled threads": (lambda p: gx.compile(RBF, threads=0), gx.ArgumentError, ["'threads'", "0"]),
    "compiled size": (lambda p: gx.compile(RBF, sizes={"N": "a"}), gx.ArgumentError, ["'N'", "'a'"]),
    "threads text": (lambda p: p(X, Z, W, threads="two"), gx.ArgumentError, ["'threads'", "'two'"]),
    "backend number": (lambda p: p(X, Z, W, backend=3), gx.ArgumentError, ["'backend'", "3"]),
    "dtype text": (lambda p: p(X, Z, W, dtype="real"), gx.DtypeError, ["'real'", "float64"]),
    "wrt number": (lambda p: p.grad(X, Z, W, dy=DY, wrt=3), gx.ArgumentError, ["3"]),
    "fixed size": (
        lambda p: gx.compile(RBF, sizes={"D": 2})(X, Z, W),
        gx.ShapeError,
        ["'x'", "length 3", "extent is 2"],
    ),
    "unknown shown size": (lambda p: p.explain(sizes={"Q": 3}), gx.ArgumentError, ["'Q'"]),
    "dimensions": (lambda p: p(X, W, W), gx.ShapeError, ["'z'", "2 dimensions", "1"]),
    "number for an array": (lambda p: p(X, 3.0, W), gx.ShapeError, ["'z'", "2 dimensions"]),
    "array for a number": (lambda p: gx.compile("input t; y = t")(W), gx.ShapeError, ["'t'", "scalar"]),
    "extents": (lambda p: p(X, Z[:, :2], W), gx.ShapeError, ["'z'", "length 2", "is 3"]),
    "no upstream": (lambda p: p.grad(X, Z, W), gx.ArgumentError, ["'dy'", "'y'"]),
    "wrong upstream": (lambda p: p.grad(X, Z, W, dy=DY[:2]), gx.ShapeError, ["'dy'", "(2,)", "(5,)"]),
    "wrong tangent": (lambda p: p.jvp((X, Z, W), (X, W, None)), gx.ShapeError, ["'z_dot'", "(4,)", "(4, 3)"]),
    "unknown wrt": (lambda p: p.grad(X, Z, W, dy=DY, wrt="q"), gx.ArgumentError, ["'q'", "x, z, w"]),
    "unknown of": (lambda p: p.grad(X, Z, W, dy=DY, of="q"), gx.ArgumentError, ["'q'", "y"]),
    "unknown tangent": (lambda p: p.jvp((X, Z, W), {"q": X}), gx.ArgumentError, ["'q'"]),
    "too many tangents": (lambda p: p.jvp((X, Z, W), (X, Z, W, W)), gx.ArgumentError, ["4 tangents"]),
    "hessian": (lambda p: p.hessian(X, Z, W), gx.ArgumentError, ["'y'", "scalar"]),
    "mode": (lambda p: p.derivative(mode="sideways"), gx.ArgumentError, ["sideways", "reverse"]),
    "backend": (lambda p: p(X, Z, W, backend="gpu"), gx.ArgumentError, ["'gpu'", "'backend'", "native"]),
    "threads": (lambda p: p(X, Z, W, threads=0), gx.ArgumentError, ["'threads'", "0"]),
    "dtype": (lambda p: p(X, Z, W, dtype="int32"), gx.DtypeError, ["int32", "float64"]),
    "out type": (lambda p: p(X, Z, W, out=np.empty(5, np.float32)), gx.DtypeError, ["'y'", "float32", "float64"]),
    "out shape": (lambda p: p(X, Z, W, out=np.empty(4)), gx.ShapeError, ["'y'", "(4,)", "(5,)"]),
    "out order": (lambda p: p(X, Z, W, out=[np.empty(5)] * 2), gx.ArgumentError, ["2 arrays", "1 results"]),
    "out name": (lambda p: p(X, Z, W, out={"q": np.empty(5)}), gx.ArgumentError, ["'q'", "y"]),
    "out list": (lambda p: p(X, Z, W, out=[[0.0] * 5]), gx.ArgumentError, ["'y'", "array"]),
    "out nothing": (lambda p: p(X, Z, W, out=3), gx.ArgumentError, ["'out'"]),
    "read only": (lambda p: p(X, Z, W, out=np.broadcast_to(0.0, 5)), gx.ArgumentError, ["'y'", "written"]),
    "size": (lambda p: gx.compile("param N; y[i in 0..N] = i")(), gx.ArgumentError, ["'N'"]),
    "size text": (lambda p: gx.compile("param N; y[i in 0..N] = i")(N="a"), gx.ArgumentError, ["'N'", "'a'"]),
    "size bound": (lambda p: gx.compile("param N >= 2; y[i in 0..N] = i")(N=1), gx.ShapeError, ["N >= 2"]),
    "sizes differ": (lambda p: gx.compile("input x[N], y[M]; z[i] = x[i] * y[i]")(W, DY), gx.ShapeError, ["x", "y"]),
    "unknown size": (lambda p: gx.compile("input x[N]; y[i] = x[i]", sizes={"Q": 3}), gx.SourceError, ["'Q'"]),
    "memory": (lambda p: gx.compile("param N; y[i in 0..N, j in 0..N] = i")(N=10**7), gx.RunError, ["memory"]),
    "huge size": (lambda p: gx.compile("param N; y[i in 0..N] = i")(N=10**18), gx.RunError, ["memory"]),
    "negative size": (lambda p: gx.compile("param N; y[i in 0..N] = i")(N=-1), gx.ShapeError, ["N"]),
    "element": (lambda p: p.explain("x", at=[100, 0]), gx.ArgumentError, ["100"]),
    "order": (lambda p: p.check(order=3), gx.ArgumentError, ["3"]),
    "no derivative": (lambda p: gx.compile("input x; y = trigamma(x)").grad(1.0), gx.GradixError, ["trigamma"]),
    "shapes": (lambda p: p.shapes((3,)), gx.ArgumentError, ["1 shapes", "3"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_say_what_is_wrong(name):
    call, kind, words = MISTAKES[name]
    with pytest.raises(gx.GradixError) as caught:
        call(gx.compile(RBF))
    assert isinstance(caught.value, kind), caught.value
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_a_program_works_after_mistakes():
    program = gx.compile(RBF)
    expected = program(X, Z, W)
    for call, _, _ in MISTAKES.values():
        with pytest.raises(gx.GradixError):
            call(program)
    assert program(X, Z, W).tobytes() == expected.tobytes()


def test_texts_that_make_no_sense_are_refused_without_harm():
    words = "input param output x y N i j [ ] ( ) + - * / // % ^ = == < 0 1 2.5 1e9 sum max if then else , ; .. in and σ # é"
    pieces = [*words.split(), "\n", "\0"]
    source = random.Random(1)
    for _ in range(3000):
        text = " ".join(source.choice(pieces) for _ in range(source.randrange(30)))
        try:
            gx.compile(text)
        except gx.GradixError as error:
            assert str(error)


def test_deep_and_long_texts_are_refused_without_harm():
    for text in [
        "(" * 100_000,
        "y = " + "-" * 100_000 + "1",
        "y = " + "1 + " * 100_000 + "1",
        "x" * 5_000_000,
        "y = 1;" * 50_000,
    ]:
        try:
            gx.compile(text)
        except gx.GradixError as error:
            assert len(str(error)) < 10_000_000


def test_errors_in_several_threads_do_not_block_each_other():
    program, large = gx.compile("input x[N]; y = sum[i] x[i]^2", backend="vm"), np.broadcast_to(1.0, (1 << 40,))

    def mistakes():
        for _ in range(300):
            with pytest.raises(gx.RunError):
                program.hessian(large)

    threads = [threading.Thread(target=mistakes, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)


def test_exceptions_can_be_pickled():
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("y = z")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and again.line == 1 and type(again) is gx.SourceError


def test_a_backend_that_is_not_there_is_replaced_with_a_warning():
    script = """
import os, warnings
os.environ["CC"] = "no-such-compiler"
import gradix as gx
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert gx.compile("input x; y = 2 * x")(3.0, backend="native") == 6.0
assert len(caught) == 1 and caught[0].category is gx.GradixWarning, caught
assert "no-such-compiler" in str(caught[0].message), caught[0].message
print(os.path.basename(caught[0].filename))
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == "<string>"


def test_hints_about_sizes_are_in_the_words_of_python():
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("input x[N]; y[i in 0..M] = x[M*i]; param M")
    assert "--param" not in str(caught.value)
    with pytest.raises(gx.SourceError) as caught:
        gx.compile("param M; input x[N]; y[i in 0..M] = x[M*i]")
    assert caught.value.hints == ("fix the size, as in 'param M = 5' (in Python: compile(..., sizes={'M': 5}))",)
    assert "sizes={'M': 5}" in str(caught.value)


def test_a_program_without_arguments_has_no_derivative():
    program = gx.compile("y = 3")
    assert program() == 3.0 and program.check() is not None
    with pytest.raises(gx.SourceError, match="nothing to differentiate by") as caught:
        program.derivative()
    assert caught.value.line == 1


def test_the_package_lists_what_it_imports_on_demand():
    installed = {name for name in ("torch", "jax") if importlib.util.find_spec(name)}
    assert "compile" in dir(gx) and {"torch", "jax"} & set(dir(gx)) == installed
