"""The measurements of the survey as a page: one table, worst first, and a plot."""

import platform
import statistics
from pathlib import Path

import bound

WHATS = ("value", "gradient")
# What is asked of every program; the table says how many fall short.
LEAST_FRACTION = 0.25
MOST_RATIO = 1.5
HEAD = ["program", "sizes", "", "value", "gradient", "of bound", "", "bound by", "", "gradient : value", "in operations", "JAX : gradix", "",
        "memory", "first, cold", "warm", "JAX"]
UNDER = ["", "", "type", "ms", "ms", "value", "gradient", "value", "gradient", "in time", "", "value", "gradient", "MiB", "s", "s", "s"]


def line(name, dtype, row, peaks):
    """One program on one line, while it is measured."""
    if "error" in row:
        return f"{name} {dtype}: {row['error']}"
    fractions = ", ".join(f"{what} {row[what]['min_s'] * 1e3:.3f} ms, {100 * fraction(row[what], peaks):.0f} % of bound"
                          for what in WHATS)
    return f"{name} {dtype}: {fractions}; JAX {row['jax'].get('error') or jax_ratios(row)}"


def fraction(measured, peaks):
    return bound.bound(measured, peaks)[0] / measured["min_s"]


def jax_ratios(row):
    if "error" in row["jax"]:
        return ["–", "–"]
    return [f"{row['jax'][what]['min_s'] / row[what]['min_s']:.2f}" for what in WHATS]


def worst(row, peaks):
    return min(fraction(row[what], peaks) for what in WHATS)


def cells(name, dtype, row, peaks):
    fractions = [f"{100 * fraction(row[what], peaks):.0f} %" for what in WHATS]
    limits = [bound.bound(row[what], peaks)[1] for what in WHATS]
    sizes = ", ".join(f"{size}={value}" for size, value in row["sizes"].items())
    seconds = [row[what]["min_s"] for what in WHATS]
    weights = [bound.weight(row[what], peaks) for what in WHATS]
    memory = max(row[what]["peak_bytes"] or 0 for what in WHATS) / 2**20
    first = [sum(row[what][state] for what in WHATS) for state in ("cold_s", "warm_s")]
    jax = "–" if "error" in row["jax"] else f"{sum(row['jax'][what]['first_s'] for what in WHATS):.2f}"
    operations = f"{weights[1] / weights[0]:.1f}" if weights[0] else "–"
    return [name, sizes, dtype, *(f"{1e3 * each:.3f}" for each in seconds), *fractions, *limits,
            f"{seconds[1] / seconds[0]:.1f}", operations, *jax_ratios(row), f"{memory:.1f}",
            *(f"{each:.2f}" for each in first), jax]


def write(kept, missing, target):
    """The page and, where Matplotlib is there, its plot beside it."""
    measured = {key: row for key, row in kept["rows"].items() if "error" not in row}
    split = {key: key.rsplit(" ", 1) for key in measured}
    order = sorted(measured, key=lambda key: worst(measured[key], kept["peaks"][split[key][1]]))
    table = [cells(*split[key], measured[key], kept["peaks"][split[key][1]]) for key in order]
    failed = [f"- `{key}`: {row['error']}" for key, row in kept["rows"].items() if "error" in row]
    plot = draw([(key, measured[key], kept["peaks"][split[key][1]]) for key in order], target.with_suffix(".svg"))
    target.write_text("\n".join([
        *introduction(kept), *summary(order, measured, split, kept), *unmeasured(missing), "",
        *([f"![Fractions of the bound]({plot.name})", ""] if plot else []),
        *(f"| {' | '.join(row)} |" for row in (HEAD, ["---"] * len(HEAD), UNDER, *table)),
        *(["", "Not measured:", "", *failed] if failed else []), ""]))


def introduction(kept):
    peaks = kept["peaks"]
    kinds = sorted({kind for found in peaks.values() for kind in found} - {"bytes", bound.SIMPLE})
    rate = lambda dtype, kind: f"{peaks[dtype][kind] / 1e9:.2f}" if kind in peaks[dtype] else "–"
    lines = [
        "# The survey", "",
        f"Every example and every program of the benchmarks, measured on {kept['date']} with `make survey` on {kept['threads']} cores of a "
        f"shared {platform.machine()} machine; shortest times, backend `native`. The *bound* is what a program takes at the least: its "
        "operations after rewriting, each kind at its own peak, or the bytes of arguments and results at the bandwidth of "
        "memory, whichever is more. Where arrays fit into caches, bytes can be faster than that. Operations of recurrences "
        "run one after the other, which the bound knows nothing of. JAX is `jit` on the same cores, in the same run.", "",
        "| " + " | ".join(["peak, 10⁹ a second", *peaks]) + " |", "| --- " * (1 + len(peaks)) + "|",
        *("| " + " | ".join([name, *(rate(dtype, kind) for dtype in peaks)]) + " |"
          for name, kind in [("additions and multiplications", bound.SIMPLE), ("bytes", "bytes"), *((f"`{kind}`", kind) for kind in kinds)]),
        ""]
    return lines


def unmeasured(missing):
    """A line on what the table does not have."""
    return [f"- **Not measured yet**: {len(missing)} of the rows ({', '.join(missing)})."] if missing else []


def summary(order, measured, split, kept):
    """How many reach what is asked of all."""
    def per(what, number):
        return [number(measured[key][what], kept["peaks"][split[key][1]]) for key in order]

    lines = []
    for what in WHATS:
        found = per(what, fraction)
        short = sum(each < LEAST_FRACTION for each in found)
        lines.append(f"- **{what}**: median {100 * statistics.median(found):.0f} % of the bound; {short} of {len(found)} below "
                     f"{100 * LEAST_FRACTION:.0f} %.")
    ratios = [excess(measured[key], kept["peaks"][split[key][1]]) for key in order]
    ratios = [each for each in ratios if each]
    lines.append(f"- **gradient : value**: in time beside operations, median {statistics.median(ratios):.2f}; "
                 f"{sum(each > MOST_RATIO for each in ratios)} of {len(ratios)} above {MOST_RATIO}.")
    for what in WHATS:
        slower = [key for key in order if "error" not in measured[key]["jax"]
                  and measured[key]["jax"][what]["min_s"] < measured[key][what]["min_s"]]
        timed = sum("error" not in measured[key]["jax"] for key in order)
        lines.append(f"- **{what} beside JAX**: slower on {len(slower)} of {timed}" + (f" ({', '.join(slower)})" if slower else "") + ".")
    first = [sum(measured[key][what]["cold_s"] for what in WHATS) for key in order]
    lines.append(f"- **first results, cold**: median {statistics.median(first):.2f} s, {sum(each > 0.5 for each in first)} of {len(first)} above 0.5 s.")
    return lines


def excess(row, peaks):
    """The ratio of gradient to value in time beside that in operations."""
    value, gradient = (bound.weight(row[what], peaks) for what in WHATS)
    return row["gradient"]["min_s"] / row["value"]["min_s"] / (gradient / value) if value and gradient else None


def draw(rows, target):
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "survey"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, max(2, 0.16 * len(rows))))
    for what, mark in zip(WHATS, "o|"):
        axes.plot([max(fraction(row[what], peaks), 1e-3) for _, row, peaks in rows], range(len(rows)), mark, markersize=4, label=what)
    axes.axvline(LEAST_FRACTION, color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(rows)), [name for name, *_ in rows], fontsize=5)
    axes.set_ylim(len(rows), -1)
    axes.set_xlabel("fraction of the bound")
    axes.legend()
    figure.savefig(target, bbox_inches="tight", metadata={"Date": None})
    return Path(target)
