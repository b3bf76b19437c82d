"""What compare.py measured, as a summary for the terminal and as tables in Markdown.

Ratios are before / after: above 1, after is faster, or shorter.
"""

import math
import statistics

WHATS = ("value", "gradient")
SIDES = ("before", "after")
# Below this ratio a line is listed as slower; a quiet machine repeats itself within some 5 %.
SLOWER_RATIO = 0.9
WORST_SHOWN = 10
LONGEST_SHOWN = 10
# What a function may have at most by the rules of the house.
FUNCTION_LINES = 60


def progress(case, number, count, seconds):
    left = seconds / number * (count - number) / 60
    ratios = ", ".join(f"{what} {case.ratio(what):.2f}" if case.ratio(what) else f"{what} –" for what in WHATS)
    return f"{number} of {count}, {left:.0f} min left: {title(case)}: {ratios}"


def times_summary(cases, load):
    """The means, the worst lines and those that are slower."""
    measured = ranked(cases)
    if not measured:
        return "\n\n".join(["nothing could be measured on both sides", *failures_text(cases)])
    slower = [line for line in measured if line[0] < SLOWER_RATIO]
    parts = [
        busy(load) + "before / after, above 1 is faster now",
        "\n".join(plain(means(cases))),
        f"the {min(WORST_SHOWN, len(measured))} lowest of {len(measured)}:\n"
        + "\n".join(plain([line_cells(line) for line in measured[:WORST_SHOWN]])),
        f"{len(slower)} below {SLOWER_RATIO}" + (":" if slower else ""),
    ]
    if slower:
        parts[-1] += "\n" + "\n".join(plain([line_cells(line) for line in slower]))
    return "\n\n".join(parts + failures_text(cases))


def times(cases, load, options):
    measured = ranked(cases)
    parts = [
        "# Two versions side by side",
        f"{busy(load)}Before: `{options.binaries['before']}`, after: `{options.binaries['after']}`; "
        f"{options.threads} threads. Times are the shortest of {options.rounds} interleaved rounds, or of more where "
        "after came out slower, in milliseconds. The ratio is before / after: above 1, after is faster.",
        "## Means", "Geometric means of the ratios. The first result is that of value and gradient together at these "
        "sizes, within `gradix bench`: cold with nothing compiled before, warm with everything compiled.",
        table(means(cases)),
        f"## The {WORST_SHOWN} lowest", table([HEAD, *(line_cells(line) for line in measured[:WORST_SHOWN])]),
        f"## Below {SLOWER_RATIO}",
        table([HEAD, *(line_cells(line) for line in measured if line[0] < SLOWER_RATIO)]),
    ]
    for backend in dict.fromkeys(case.backend for case in cases):
        lines = [(case.ratio(what), case, what) for case in cases if case.backend == backend for what in WHATS]
        parts += [f"## All on {backend}", table([HEAD, *(line_cells(line) for line in lines)])]
    chosen = {case.program.name: sizes(case.program) for case in cases}
    parts += ["## Sizes", table([["program", "sizes"], *map(list, chosen.items())]), *failures_text(cases)]
    return "\n\n".join(parts) + "\n"


HEAD = ["program", "backend", "type", "", "before", "after", "ratio"]


def ranked(cases):
    """(ratio, case, what) of everything that was measured on both sides, the lowest ratio first."""
    lines = [(case.ratio(what), case, what) for case in cases for what in WHATS if case.ratio(what)]
    return sorted(lines, key=lambda line: line[0])


def line_cells(line):
    found, case, what = line
    shortest = [min(case.seconds[side, what], default=None) for side in SIDES]
    return [case.program.name, case.backend, case.dtype, what, *map(milliseconds, shortest), ratio(found)]


def means(cases):
    """Rows: geometric means for each backend and for all; one column each for values, gradients and both."""
    rows = [["", *WHATS, "both", "first result, cold", "first result, warm"]]
    backends = list(dict.fromkeys(case.backend for case in cases))
    for backend in [*backends, None]:
        chosen = [case for case in cases if backend in (None, case.backend)]
        columns = [[case.ratio(what) for case in chosen if case.ratio(what)] for what in WHATS]
        cold, warm = first_ratios(chosen)
        rows.append([backend or "all", *(ratio(mean(each)) for each in (*columns, sum(columns, []), cold, warm))])
    return rows


def first_ratios(cases):
    """Ratios of the times to the first results. Only a native kernel is compiled, in the first round."""
    whole = [case for case in cases if all(case.first[side] for side in SIDES)]
    cold = [case.first["before"][0] / case.first["after"][0] for case in whole if case.backend == "native"]
    later = [[min(case.first[side][case.backend == "native" :], default=None) for side in SIDES] for case in whole]
    return cold, [before / after for before, after in later if before and after]


def first_summary(rows, load):
    parts = [busy(load) + "seconds of whole processes to the first results, before / after, above 1 is faster now",
             "\n".join(plain(first_means(rows)))]
    if not first_lines(rows):
        return "\n\n".join(["nothing could be measured on both sides", *first_failures(rows)])
    lowest = sorted(first_lines(rows), key=lambda line: line[0])[:WORST_SHOWN]
    parts.append(f"the {len(lowest)} lowest:\n" + "\n".join(plain([cells for _, cells in lowest])))
    return "\n\n".join(parts + first_failures(rows))


def first(rows, load, options):
    parts = [
        "# Time to the first result, two versions side by side",
        f"{busy(load)}Before: `{options.binaries['before']}`, after: `{options.binaries['after']}`; "
        f"{options.threads} threads. `gradix eval --grad` at small sizes, the whole process: medians of "
        f"{options.rounds} interleaved rounds, in milliseconds. Cold: nothing compiled before; warm: everything "
        "compiled. The ratio is before / after: above 1, after is faster.",
        table(first_means(rows)), table([HEAD, *(cells for _, cells in first_lines(rows))]),
    ]
    return "\n\n".join(parts + first_failures(rows)) + "\n"


def first_failures(rows):
    return failures_of((f"{row['program']} on {row['backend']} in {row['dtype']}", row["failures"]) for row in rows)


def first_lines(rows):
    """(ratio, cells) for every state of every row that was measured on both sides."""
    found = []
    for row in rows:
        for state in ("cold", "warm"):
            if all(row[state][side] for side in SIDES):
                before, after = (statistics.median(row[state][side]) for side in SIDES)
                cells = [row["program"], row["backend"], row["dtype"], state, milliseconds(before), milliseconds(after)]
                found.append((before / after, [*cells, ratio(before / after)]))
    return found


def first_means(rows):
    """The median ratio and the geometric mean for each backend and state."""
    found = [["backend", "", "median ratio", "geometric mean"]]
    lines = first_lines(rows)
    for backend, state in dict.fromkeys((cells[1], cells[3]) for _, cells in lines):
        ratios = [each for each, cells in lines if (cells[1], cells[3]) == (backend, state)]
        found.append([backend, state, ratio(statistics.median(ratios)), ratio(mean(ratios))])
    return found


def lines(before, after):
    """Lines of two source trees, and their functions, as Markdown."""
    kinds = ("lines", "not_blank", "code")
    rows = [["", *(f"{kind.replace('_', ' ')} {side}" for kind in kinds for side in SIDES)]]
    for part in before.parts:
        rows.append([part, *(str(getattr(tree.parts[part], kind)) for kind in kinds for tree in (before, after))])
    sums = [[sum(getattr(each, kind) for each in tree.parts.values()) for tree in (before, after)] for kind in kinds]
    rows.append(["all", *(str(each) for pair in sums for each in pair)])
    rows.append(["before / after", *(cell for was, now in sums for cell in ("", ratio(was / now if now else None)))])
    parts = ["# Lines of the back half, without tests",
             "Lines as `wc -l` counts, those that are not blank, and those that are not comments alone.", table(rows),
             "## Functions", "From `fn` to the closing brace.", table(function_rows(before, after))]
    for side, tree in zip(SIDES, (before, after)):
        longest = [[each.name, f"{each.file}:{each.line}", str(each.lines)] for each in tree.functions[:LONGEST_SHOWN]]
        parts += [f"## The longest {side}", table([["function", "file", "lines"], *longest])]
    return "\n\n".join(parts) + "\n"


def function_rows(before, after):
    lengths = [[each.lines for each in tree.functions] for tree in (before, after)]
    return [
        ["", *SIDES],
        ["functions", *(str(len(each)) for each in lengths)],
        ["median lines", *(f"{statistics.median(each or [0]):g}" for each in lengths)],
        ["mean lines", *(f"{statistics.mean(each or [0]):.1f}" for each in lengths)],
        [f"over {FUNCTION_LINES} lines", *(str(sum(n > FUNCTION_LINES for n in each)) for each in lengths)],
    ]


def failures_text(cases):
    return failures_of((title(case), case.failures) for case in cases)


def failures_of(found):
    """What could not be measured, and why, from pairs of a title and failures by side; nothing if there is none."""
    broken = [f"- {name}, {side}: {why}" for name, failures in found for side, why in failures.items()]
    return ["\n".join(["Could not be measured:", "", *broken])] if broken else []


def title(case):
    return f"{case.program.name} on {case.backend} in {case.dtype}"


def sizes(program):
    return " ".join(f"{name}={size}" for name, size in program.sizes.items())


def busy(load):
    """A warning if the machine had other work when the run began, or nothing."""
    if load < 0.5:
        return ""
    return f"The machine was busy (load {load:.1f} before the run): these times are not reliable. "


def mean(ratios):
    """The geometric mean."""
    return math.exp(statistics.mean(map(math.log, ratios))) if ratios else None


def milliseconds(seconds):
    return "–" if seconds is None else f"{1e3 * seconds:.4g}"


def ratio(value):
    return "–" if value is None else f"{value:.2f}"


def table(rows):
    """Rows of cells as Markdown, the head first."""
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) if len(rows) > 1 else "None."


def plain(rows):
    """Rows of cells as aligned lines."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows]
