"""The measurements of a run as text, as docs/benchmarks.md, and as plots."""

import json

import drawing
import workloads
from peers import PEERS

COLUMNS = {"gradix": "gradix", **{name: title for name, (title, _) in PEERS.items()}}
FRAMEWORKS = ("jax", "jax-best", "torch", "torch-compile", "numba", "numpy")
COLOURS = {
    "gradix": "#d1495b", "hand": "#222222", "jax": "#2e6f95", "jax-best": "#7fb2d1", "torch": "#e8a33d",
    "torch-compile": "#b5651d", "numba": "#5b8e7d", "numpy": "#b8b8b8",
}
TYPES = ("f64", "f32")
WHATS = ("gradient", "value")


# The name of the files, the title, and what it is about.
PAGES = {
    "workloads": ("benchmarks", "Benchmarks",
                  "Ten workloads, the function and its gradient by all arguments, side by side with other ways to compute them. "
                  "`make bench` writes this page; the programs are in [bench/workloads](../bench/workloads), the peers in "
                  "[bench/peers](../bench/peers) and [bench/hand](../bench/hand)."),
    "loops": ("benchmarks-loops", "Loops over time, measured",
              "Eight recurrences, the function and its gradient by all arguments, beside C written by hand "
              "([bench/hand](../bench/hand), `l1.c` to `l8.c`) and JAX, as one would write it and in the best way that we know "
              "([bench/peers](../bench/peers/loops_with_jax.py)). `make bench-loops` writes this page; the programs are in "
              "[bench/loops](../bench/loops) and [examples](../examples)."),
}


def write(run, folder, extra=""):
    folder.mkdir(parents=True, exist_ok=True)
    name = PAGES[run["suite"]][0]
    (folder / f"{name}.md").write_text(markdown(run) + extra)
    (folder / f"{name}.json").write_text(json.dumps(run, indent=1) + "\n")
    plot(run, folder / name)


def written(suite, folder):
    """The run that stands in a folder, or nothing."""
    file = folder / f"{PAGES[suite][0]}.json"
    return json.loads(file.read_text()) if file.exists() else None


def merged(earlier, run):
    """One run of both, which must have been made in the same way: what the later one measured takes the place of the same."""
    if earlier is None:
        return run
    for name in ("suite", "threads", "repeats", "small", "backend", "reference"):
        if earlier[name] != run[name]:
            raise SystemExit(f"the run to add to has {name} {earlier[name]}, not {run[name]}")
    if earlier["machine"]["cpu"] != run["machine"]["cpu"]:
        raise SystemExit(f"the run to add to was made on another machine: {earlier['machine']['cpu']}")
    order = [each.id for each in workloads.load(run["small"], run["suite"])]

    def both(what, key):
        known = {key(entry) for entry in run[what]}
        entries = [entry for entry in earlier.get(what, []) if key(entry) not in known] + run[what]
        return sorted(entries, key=lambda entry: order.index(entry["workload"]))

    load = max(earlier["machine"]["load"], run["machine"]["load"])
    return {
        **run, "machine": {**run["machine"], "load": load}, "peers": {**earlier["peers"], **run["peers"]},
        "times": both("times", lambda entry: (entry["workload"], entry["dtype"], entry["what"], entry["peer"])),
        "steps": both("steps", lambda entry: entry["workload"]),
    }


def text(run):
    """All tables, for the terminal."""
    parts = []
    for dtype, what in measured(run):
        rows = table(run, dtype, what)
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(cell.ljust(width) if not index else cell.rjust(width)
                           for index, (cell, width) in enumerate(zip(row, widths))) for row in rows]
        parts.append(f"{what}, {dtype}, milliseconds\n" + "\n".join(lines))
    return "\n\n".join([*parts, f"gradix: {gradix_text(run)}"])


def progress(run, workload, dtype):
    entries = [entry for entry in run["times"] if (entry["workload"], entry["dtype"]) == (workload.id, dtype)]
    words = [f"{entry['peer']} {milliseconds(entry)}" for entry in entries
             if entry["what"] == "gradient" and "median" in entry]
    wrong = [f"{entry['peer']} {entry['what']} is off by {entry['error']:.1e}" for entry in entries
             if not entry.get("agrees", True)]
    return f"{workload.id} {dtype} gradient: " + ", ".join(words + wrong)


def markdown(run):
    machine = run["machine"]
    name, title, about = PAGES[run["suite"]]
    parts = [
        "# " + title,
        about,
        f"![Times]({name}.svg)",
        "## How it was measured",
        machine_text(machine) + f" All programs use {run['threads']} threads on the same cores; times are medians over "
        f"{run['repeats']} interleaved rounds after warm-up, in milliseconds. The time of a gradient includes what it "
        "needs of the function; the derivative of the loss by the result is given." + busy(machine),
        "\n".join(["- gradix: " + gradix_text(run)]
                  + [f"- {each['title']}: {each['version']}" for each in run["peers"].values()]),
        "The last columns are ratios of times: above 1, gradix is the faster one. "
        "'–' stands for what a peer doesn't offer or what is not installed.",
    ]
    for dtype, what in measured(run):
        rows = table(run, dtype, what)
        lines = [rows[0], ["---"] + ["---:"] * (len(rows[0]) - 1), *rows[1:]]
        parts.append(f"## {what.capitalize()}, {dtype}")
        parts.append("\n".join("| " + " | ".join(row) + " |" for row in lines))
    parts += ["## Agreement", agreement_text(run), agreement_table(run)]
    return "\n\n".join(parts) + "\n"


def gradix_text(run):
    own = [entry for entry in run["times"] if entry["peer"] == "gradix"]
    missing = [entry["missing"] for entry in own if "median" not in entry and "missing" in entry]
    if any("median" in entry for entry in own):
        return run["backend"] + " backend" + (f"; not everywhere available: {missing[0]}" if missing else "")
    return "not available" + (f": {missing[0]}" if missing else "")


def machine_text(machine):
    peaks = [f"{machine[dtype]['gflops']:.0f} GF/s in {dtype}" for dtype in TYPES if machine.get(dtype)]
    memory = f" and {machine['f64']['gbytes']:.0f} GB/s from memory" if machine.get("f64") else ""
    vectors = machine.get("vectors", "unknown vectors")
    return f"{machine['cpu']}, {machine['cores']} cores, {vectors}; measured at most {', '.join(peaks)}{memory}."


def busy(machine):
    """A warning if the machine had other work when the run began, or nothing."""
    if machine["load"] < 0.5:
        return ""
    return f" The machine was busy (load {machine['load']:.1f} before the run): these times are not reliable."


def agreement_text(run):
    limits = ", ".join(f"{limit:g} in {dtype}" for dtype, limit in run["tolerance"].items())
    return (f"Every result is compared with that of {PEERS[run['reference']][0]} in f64: the largest error of an array, relative to its largest "
            f"element, has to stay below {limits}" + own_limits(run) + ". The largest over all workloads:")


def own_limits(run):
    """What holds for workloads that lose more, and those that one type can't do."""
    every = workloads.load(run["small"], run["suite"])
    limits = [f"{limit:g} in {dtype} for {each.name}" for each in every for dtype, limit in each.tolerance.items()]
    missing = [f"{each.name} overflows in {dtype}" for each in every for dtype in TYPES if dtype not in each.dtypes]
    return "".join(f" ({text})" for text in [", ".join(limits + missing)] if text)


def agreement_table(run):
    lines = ["| | " + " | ".join(TYPES) + " |", "| --- | ---: | ---: |"]
    for name, title in COLUMNS.items():
        errors = {dtype: [entry["error"] for entry in run["times"]
                          if (entry["peer"], entry["dtype"]) == (name, dtype) and "error" in entry] for dtype in TYPES}
        if any(errors.values()):
            cells = [f"{max(errors[dtype]):.1e}" if errors[dtype] else "–" for dtype in TYPES]
            lines.append(f"| {title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measured(run):
    """The pairs of type and quantity that the run has."""
    return [(dtype, what) for dtype in TYPES for what in WHATS
            if any((entry["dtype"], entry["what"]) == (dtype, what) for entry in run["times"])]


def table(run, dtype, what):
    """Rows of cells, the head first."""
    names = ["gradix", *run["peers"]]
    rows = [["", *(COLUMNS[name] for name in names), "best framework / gradix", "hand-written C / gradix"]]
    for workload in workloads.load(run["small"], run["suite"]):
        entries = entries_of(run, workload.id, dtype, what)
        if entries:
            cells = [milliseconds(entries.get(name, {})) for name in names]
            frameworks = [entries[name]["median"] for name in FRAMEWORKS if "median" in entries.get(name, {})]
            own = entries.get("gradix", {}).get("median")
            hand = entries.get("hand", {}).get("median")
            rows.append([f"{workload.id} {workload.name}", *cells,
                         ratio(min(frameworks, default=None), own), ratio(hand, own)])
    return rows


def entries_of(run, workload, dtype, what):
    return {entry["peer"]: entry for entry in run["times"]
            if (entry["workload"], entry["dtype"], entry["what"]) == (workload, dtype, what)}


def milliseconds(entry):
    if "median" not in entry:
        return "–"
    time = 1e3 * entry["median"]
    digits = 0 if time >= 100 else 1 if time >= 10 else 2 if time >= 1 else 3
    return f"{time:.{digits}f}" + ("" if entry.get("agrees", True) else " (wrong)")


def ratio(other, own):
    return f"{other / own:.2g}" if other and own else "–"


def plot(run, stem):
    plt = drawing.pyplot()
    panels = measured(run)
    figure, axes = plt.subplots(len(panels), 1, figsize=(13, 3.4 * len(panels)), squeeze=False)
    for axis, (dtype, what) in zip(axes[:, 0], panels):
        bars(axis, run, dtype, what)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="upper center", ncol=len(labels), frameon=False, bbox_to_anchor=(0.5, 1.0))
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.12 / len(panels)))
    figure.savefig(stem.with_suffix(".svg"), metadata={"Date": None})
    figure.savefig(stem.with_suffix(".png"), dpi=110)
    plt.close(figure)


def bars(axis, run, dtype, what):
    shown = [name for name in COLUMNS if any(entry["peer"] == name and "median" in entry for entry in run["times"])]
    present = [each for each in workloads.load(run["small"], run["suite"]) if entries_of(run, each.id, dtype, what)]
    width = 0.84 / max(1, len(shown))
    for place, name in enumerate(shown):
        found = [(row, entries_of(run, each.id, dtype, what).get(name, {}).get("median"))
                 for row, each in enumerate(present)]
        found = [(row, 1e3 * time) for row, time in found if time]
        offset = (place - (len(shown) - 1) / 2) * width
        axis.bar([row + offset for row, _ in found], [time for _, time in found], width * 0.92,
                 label=COLUMNS[name], color=COLOURS[name], zorder=2)
    axis.set_yscale("log")
    axis.set_xticks(range(len(present)), [f"{each.id}\n{each.name}" for each in present])
    axis.set_xlim(-0.5, len(present) - 0.5)
    axis.set_ylabel("milliseconds")
    axis.set_title(f"{what}, {dtype}", loc="left", fontsize=11, fontweight="bold")
    axis.grid(axis="y", color="#dddddd", linewidth=0.7, zorder=0)
    axis.tick_params(which="both", length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
