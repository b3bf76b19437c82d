"""The elementary functions of emitted C beside glibc's vector library (libmvec), alternating, on one thread and in the cache.

    python3 bench/functions.py [f64|f32] [FUNCTION …]

libmvec promises 4 ulp, emitted C 2. Functions without a vector version there are left out.
"""

import pathlib
import subprocess
import sys
import tempfile

FUNCTIONS = (
    "exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc cbrt pow"
)
POSITIVE = (0.1, 50)
RANGES = {
    "acos": (-0.9, 0.9),
    "acosh": (1.1, 9),
    "asin": (-0.9, 0.9),
    "atanh": (-0.9, 0.9),
    "log": POSITIVE,
    "log10": POSITIVE,
    "log1p": POSITIVE,
    "log2": POSITIVE,
    "pow": (0.1, 4),
}
ELEMENTS = 4096

MAIN = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#define COUNT %(elements)d
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
static %(real)s x[COUNT], w[COUNT], y[COUNT], z[COUNT];
#define SHORTEST(best, call) \
    do { double t = now(); for (int k = 0; k < 20; k++) call; t = now() - t; if (t < best) best = t; } while (0)
%(declarations)s
int main(void) {
%(calls)s
    return 0;
}
"""

CALL = r"""
    for (long i = 0; i < COUNT; i++) {
        x[i] = %(low)s + (%(high)s - (%(low)s)) * (rand() / (double)RAND_MAX);
        w[i] = 6 * (rand() / (double)RAND_MAX) - 3;
    }
    {
        own_%(name)s_sizes sizes = {.N = COUNT};
        own_%(name)s_inputs in = {.x = x%(more)s};
        own_%(name)s_outputs out = {.y = y};
        double own = 1e9, other = 1e9;
        for (int r = 0; r < 60; r++) {
            SHORTEST(own, own_%(name)s_run(&sizes, &in, &out, NULL));
            SHORTEST(other, other_%(name)s(x, w, z, COUNT));
        }
        printf("%(name)-8s %%8.3f %%8.3f %%8.2f\n", own / 20 / COUNT * 1e9, other / 20 / COUNT * 1e9, other / own);
    }
"""


def main(dtype="f64", *names):
    names = names or FUNCTIONS.split()
    real, suffix = ("double", "") if dtype == "f64" else ("float", "f")
    gradix = pathlib.Path(__file__).parent.parent / "target/release/gradix"
    declarations, calls, objects = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)

        def compiled(source, *options):
            output = source.with_suffix(".o")
            subprocess.run(["gcc", "-O3", "-march=native", *options, "-c", source, "-o", output], check=True)
            objects.append(output)

        for name in names:
            two = name == "pow"
            program = folder / f"{name}.gx"
            program.write_text("input x[N], w[N]\ny[i] = x[i]^w[i]\n" if two else f"input x[N]\ny[i] = {name}(x[i])\n")
            emit = [gradix, "emit", "--values", "--dtype", dtype, "--name", f"own_{name}", program]
            subprocess.run([*emit, "-o", folder / f"{name}.c"], check=True)
            subprocess.run([*emit, "--header", "-o", folder / f"own_{name}.h"], check=True)
            compiled(folder / f"{name}.c")
            arguments = f"const {real} *restrict x, const {real} *restrict w, {real} *restrict y, long n"
            call = f"{name}{suffix}(x[i]{', w[i]' if two else ''})"
            other = folder / f"other_{name}.c"
            other.write_text(
                f"#include <math.h>\nvoid other_{name}({arguments}) {{\n    (void)w;\n"
                f"    for (long i = 0; i < n; i++) y[i] = {call};\n}}\n"
            )
            compiled(other, "-ffast-math", "-mprefer-vector-width=512")
            declarations.append(f'#include "own_{name}.h"\nvoid other_{name}({arguments});')
            low, high = RANGES.get(name, (-4, 4))
            calls.append(CALL % {"name": name, "low": low, "high": high, "more": ", .w = w" if two else ""})
        text = {"elements": ELEMENTS, "real": real, "declarations": "\n".join(declarations), "calls": "".join(calls)}
        (folder / "main.c").write_text(MAIN % text)
        compiled(folder / "main.c")
        subprocess.run(["gcc", *objects, "-lmvec", "-lm", "-o", folder / "main"], check=True)
        print(f"{dtype:8}   gradix  libmvec    ratio   (ns for an element; a ratio above 1 says that gradix is faster)")
        sys.stdout.flush()
        subprocess.run([folder / "main"], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
