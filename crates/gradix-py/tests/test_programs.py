"""Programs as objects: cached, pickled, shared between threads."""

import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from programs import RBF, arrays

import gradix as gx


def test_the_same_text_is_compiled_once():
    assert gx.compile(RBF) is gx.compile(RBF)
    assert gx.compile(RBF) is not gx.compile(RBF, threads=1)
    assert gx.compile(RBF).derivative("x") is gx.compile(RBF).derivative("x")


def test_a_derivative_for_a_framework_is_derived_once():
    from gradix._transform import derived

    class Counted:
        def __init__(self, function):
            self.function, self.asked = function, []

        def __getattr__(self, name):
            self.asked.append(name)
            return getattr(self.function, name)

    gx.clear_cache()
    program = gx.compile("input x[N], w[N]; y = sum[i] w[i] * x[i]; z = 3")
    program._function = counted = Counted(program._function)
    derivative, sources = derived(program, "reverse", ("x",), ("y", "z"))
    assert counted.asked == ["derive"]
    assert list(derivative.inputs) == ["w", "dy"] and sources == (1, 2)
    tangent, sources = derived(program, "forward", ("w",), ("y",))
    assert list(tangent.inputs) == ["x", "w_dot"] and sources == (0, 2)
    gx.clear_cache()


def test_the_cache_can_be_cleared():
    program = gx.compile(RBF)
    gx.clear_cache()
    again = gx.compile(RBF)
    assert again is not program
    x, z, w = arrays([(5, 3), (4, 3), (4,)])
    assert_array_equal(again(x, z, w), program(x, z, w))


def test_programs_can_be_pickled():
    for program in [
        gx.compile(RBF),
        gx.compile(RBF, sizes={"D": 3}, backend="vm", threads=2),
        gx.compile(RBF).derivative(),
    ]:
        again = pickle.loads(pickle.dumps(program))
        assert again is program and str(again) == str(program)
    results = gx.Arrays(["x", "y"], [np.ones(2), 3.0])
    again = pickle.loads(pickle.dumps(results))
    assert again.names == ("x", "y") and again.y == 3.0


def test_programs_go_to_other_processes(tmp_path):
    script = tmp_path / "several.py"
    script.write_text(
        """
import multiprocessing
import numpy as np
import gradix as gx

def run(given):
    program, x = given
    return program(x)

if __name__ == "__main__":
    program = gx.compile("input x[N]; y[i] = x[i]^2")
    x = np.arange(100_000.0)
    expected = program(x)
    for method in ["spawn", "fork"]:
        with multiprocessing.get_context(method).Pool(2) as pool:
            assert all((result == expected).all() for result in pool.map(run, [(program, x)] * 4))
    print("done")
"""
    )
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert run.stdout == "done\n", run.stderr


def test_a_program_can_be_called_from_several_threads():
    program = gx.compile(RBF)
    cases = []
    for size in [3, 50, 200, 400]:
        x, z, w, dy = arrays([(size, 3), (size // 2, 3), (size // 2,), (size,)], seed=size)
        cases += [((x, z, w), dy), ((np.asfortranarray(x), z[:, ::-1], w), dy)]
        cases.append(((x.astype(np.float32), z.astype(np.float32), w.astype(np.float32)), dy.astype(np.float32)))
    expected = [program.value_and_grad(*args, dy=dy) for args, dy in cases]

    def work(number):
        place = number % len(cases)
        args, dy = cases[place]
        return place, program.value_and_grad(*args, dy=dy, threads=1 + number % 2)

    with ThreadPoolExecutor(8) as pool:
        for place, (y, g) in pool.map(work, range(400)):
            assert y.tobytes() == expected[place][0].tobytes()
            assert all(a.tobytes() == b.tobytes() for a, b in zip(g, expected[place][1], strict=True))


def test_other_threads_run_meanwhile():
    program = gx.compile(RBF)
    x, z, w = arrays([(6000, 8), (6000, 8), (6000,)])
    program(x, z, w, threads=1)
    times: list[float] = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            times.append(time.perf_counter())
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    start = time.perf_counter()
    while time.perf_counter() - start < 0.5:
        program(x, z, w, threads=1)
    done.set()
    ticking.join()
    during = sum(start < moment < start + 0.5 for moment in times)
    one = time.perf_counter()
    program(x, z, w, threads=1)
    calls = 0.5 / (time.perf_counter() - one)
    assert during > 4 * calls, f"{during} ticks in about {calls:.0f} calls"


def test_importing_gradix_imports_none_of_the_large_packages():
    script = (
        "import sys, gradix; print([name for name in ('numpy', 'jax', 'torch', 'matplotlib') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_version_is_that_of_the_package():
    from importlib.metadata import version

    assert gx.__version__ == version("gradix")


def test_arrays_are_tuples_with_names():
    g = gx.Arrays(["x", "count"], [1.0, 2.0])
    assert g == (1.0, 2.0) and g.x == 1.0 and g["count"] == 2.0 and g.as_dict() == {"x": 1.0, "count": 2.0}
    assert "x" in dir(g) and g[:1] == (1.0,)
    a, b = g
    assert (a, b) == (1.0, 2.0)
    for wrong in (lambda: g["q"], lambda: g.q):
        try:
            wrong()
        except (KeyError, AttributeError):
            continue
        raise AssertionError("there is no q")


@pytest.mark.parametrize("backend", ["vm", "native", "interp"])
def test_ctrl_c_stops_a_call(backend):
    """Much work, and a signal once it has begun."""
    code = """
import sys, numpy as np, gradix as gx
p = gx.compile("input x[N]; y[i] = sum[j] exp(sin(x[i] * x[j]))", backend=sys.argv[1])
p(np.ones(8))
try:
    print("begun", flush=True)
    p(np.ones(300000))
except KeyboardInterrupt:
    print("stopped", flush=True)
    assert np.isfinite(p(np.ones(8))).all()
"""
    process = subprocess.Popen([sys.executable, "-c", code, backend], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        time.sleep(2)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("stopped\n", None)
        assert process.returncode == 0
    finally:
        process.kill()


def test_ctrl_c_stops_a_check():
    code = """
import gradix as gx
p = gx.compile("input x[N]; y[i] = sum[j, k, l] exp(sin(x[i] * x[j]) * x[k] + x[l])")
try:
    print("begun", flush=True)
    p.check(sizes={"N": 60})
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begun\n"
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60) == ("stopped\n", None)
    finally:
        process.kill()


def test_what_was_not_checked_is_said():
    never = gx.compile("input x[N]; y[i] = if x[i] > 5 then x[i]^2 else 0")
    assert [(row.verdict, row.passed) for row in never.check()] == [("not checked", True)]
    assert [(row.verdict, row.passed) for row in never.check(strict=True)] == [("not checked", False)]
    delay = gx.compile("param T; input x[T]; y[i in 0..T] = if i >= 8 then x[i - 8]^2 else 0")
    assert [(row.verdict, row.shape) for row in delay.check()] == [("ok", (12,))]
    assert [(row.verdict, row.shape) for row in delay.check(sizes={"T": 3})] == [("not checked", (3,))]
