"""How the time of loops grows with the number of steps, and what it takes to compile them: a table and a plot."""

import os
import tempfile
import time

import drawing
import gradix_command

# What the steps of each loop are called; of soft-DTW and Cholesky, work grows with the square and the cube.
STEPS = {"L1": ("N",), "L2": ("N",), "L3": ("T",), "L4": ("T",), "L5": ("T",), "L6": ("T",), "L7": ("N",), "L8": ("N",)}
FACTORS = (0.25, 0.5, 1, 2, 4)


def measure(chosen, dtype, options):
    """For each loop and number of steps: seconds of value and gradient, and of everything from an empty cache on."""
    rows = []
    for workload in chosen:
        for factor in FACTORS:
            sizes = {name: int(size * factor) if name in STEPS[workload.id] else size
                     for name, size in workload.sizes.items()}
            try:
                found = gradix_command.bench(options.gradix, workload.file, sizes, dtype, options.backend, options.threads,
                                             extra=("--seconds", "0.1"))
                rows.append({"workload": workload.id, "name": workload.name, "steps": sizes[STEPS[workload.id][0]],
                             "value": found["value"]["min_s"], "gradient": found["gradient"]["min_s"],
                             "compile": compile_seconds(workload, sizes, dtype, options)})
            except gradix_command.NotAvailable as error:
                print(f"{workload.id} with {sizes}: not available: {error}")
    return rows


def compile_seconds(workload, sizes, dtype, options):
    """From the text to the loaded code of the gradient: the first run with an empty cache less the best of two with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        os.environ["GRADIX_CACHE"] = cache
        command = [options.gradix, "eval", str(workload.file), *gradix_command.params(sizes), "--random", "1", "--grad",
                   "--dtype", dtype, "--backend", options.backend, "--quiet", "-o", os.path.join(cache, "out.npz")]
        times = []
        for _ in range(3):
            start = time.perf_counter()
            gradix_command.run(command, timeout=300)
            times.append(time.perf_counter() - start)
    del os.environ["GRADIX_CACHE"]
    return max(0.0, times[0] - min(times[1:]))


def markdown(rows):
    lines = ["", "## Time over steps", "", "![Time over steps](benchmarks-loops-steps.svg)", "",
             "Milliseconds for value and gradient, and seconds to compile both with an empty cache. Soft-DTW and Cholesky grow in "
             "one index (of two, and of three) or in all of them.", "",
             "| | steps | value | gradient | to compile |", "| --- | ---: | ---: | ---: | ---: |"]
    lines += [f"| {row['workload']} {row['name']} | {row['steps']} | {1e3 * row['value']:.3f} | {1e3 * row['gradient']:.3f} | "
              f"{row['compile']:.2f} |" for row in rows]
    return "\n".join(lines) + "\n"


def plot(rows, folder):
    figure, axes = drawing.pyplot().subplots(1, 2, figsize=(12, 4.6))
    for axis, what in zip(axes, ("value", "gradient")):
        for name in dict.fromkeys(row["workload"] for row in rows):
            own = [row for row in rows if row["workload"] == name]
            middle = own[len(own) // 2]
            axis.plot([row["steps"] / middle["steps"] for row in own], [1e3 * row[what] for row in own], marker="o",
                      markersize=4, label=f"{name} {middle['name']}")
        drawing.logarithmic(axis, xlabel="steps, relative to the table", ylabel="milliseconds", title=what)
    drawing.save(figure, folder / "benchmarks-loops-steps.svg")
