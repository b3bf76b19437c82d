"""gradix itself, through its command line: `gradix bench` for times, `gradix eval` for results."""

import json
import re
import subprocess


class NotAvailable(Exception):
    """The command does not exist, does not know the backend, or failed."""


def bench(binary, file, sizes, dtype, backend, threads, extra=(), timeout=600):
    """What `gradix bench` measures: {"value": {"median_s": …, "min_s": …, "peak_bytes": …}, "gradient": …}."""
    output = run([binary, "bench", str(file), *params(sizes), "--dtype", dtype, "--backend", backend,
                  "--threads", str(threads), "--json", *extra], timeout)
    try:
        lines = [json.loads(line) for line in output.splitlines() if line.strip()]
        found = {line["what"]: line for line in lines if line["backend"] == backend and line["dtype"] == dtype}
    except (ValueError, KeyError, TypeError) as error:
        raise NotAvailable(f"unexpected output of gradix bench: {error}") from error
    if not {"value", "gradient"} <= found.keys():
        raise NotAvailable("gradix bench reported no value or no gradient")
    return found


def evaluate(binary, file, sizes, dtype, backend, threads, data, target, timeout=600):
    """Writes the results and derivatives for the arrays in `data` to `target`, both .npz."""
    run([binary, "eval", str(file), *params(sizes), "--input", str(data), "--grad", "--dtype", dtype,
         "--backend", backend, "--threads", str(threads), "-o", str(target), "--quiet"], timeout)


def default_sizes(binary, file, timeout=60):
    """The sizes that gradix chooses by itself: small, and such that every condition on them holds."""
    command = [binary, "eval", str(file), "--random", "1", "--backend", "vm"]
    note = next((line for line in complete(command, timeout).stderr.splitlines() if line.startswith("sizes: ")), "")
    return {name: int(size) for name, size in re.findall(r"(\w+) = (\d+)", note)}


def params(sizes):
    return [word for name, size in sizes.items() for word in ("--param", f"{name}={size}")]


def run(command, timeout):
    return complete(command, timeout).stdout


def complete(command, timeout):
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotAvailable(str(error)) from error
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if line.strip()), "no message")
        raise NotAvailable(first.strip())
    return done
