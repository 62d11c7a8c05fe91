#!/usr/bin/env python3
"""`table.py RESULTS`: medians of a run of `ops/bench-peers` as a table, then a JSON line for each
metric with the ratio of ours to the best peer."""
import collections
import json
import statistics
import sys

# Metric, sessions or None, unit, whether more is better, and what is aimed at: a bound on the ratio
# to the best peer ("x") or on the value itself ("=").
ROWS = [
    ("steps_per_s", 64, "1/s", True, None),
    ("steps_per_s", 512, "1/s", True, ("x", 4)),
    ("single_ms_per_step", None, "ms", False, ("x", 0.5)),
    ("enqueue_to_first_step_p50", None, "ms", False, ("x", 1)),
    ("enqueue_to_first_step_p99", None, "ms", False, None),
    ("cpu_ms_per_step", 64, "ms", False, ("x", 1)),
    ("cpu_ms_per_step", 512, "ms", False, ("x", 1)),
    ("peak_pss", 512, "MiB", False, None),
    ("control_signal_p50", None, "ms", False, None),
    ("control_cancel_p50", None, "ms", False, None),
    ("cold_first_session_done", None, "ms", False, None),
    ("recover_worker_kill", 64, "s", False, ("=", 3)),
    ("recover_worker_kill_again", 64, "steps", False, None),
    ("recover_server_kill", 64, "s", False, None),
    ("recover_server_kill_again", 64, "steps", False, None),
    ("takeover_sigkill", None, "s", False, ("=", 1)),
    ("takeover_sigkill_again", None, "steps", False, ("=", 0)),
    ("takeover_sigstop", None, "s", False, ("=", 10)),
    ("takeover_sigstop_again", None, "steps", False, ("=", 0)),
    ("io_scale_1_to_2", None, "x", True, ("=", 1.8)),
    ("control_backlog_p99", None, "ms", False, ("=", 250)),
    ("stored_bytes_per_step", None, "B", False, ("=", 500)),
]
# Measured for one size, whatever it is.
ANY_SIZE = ("recover_", "stored_", "takeover_", "io_", "control_")
OURS = "stepfleet"


def read(path):
    """-> {(metric, sessions): {(peer, variant): [value, ...]}} and the systems in order of appearance."""
    found, systems = collections.defaultdict(lambda: collections.defaultdict(list)), []
    with open(path) as lines:
        for record in map(json.loads, filter(str.strip, lines)):
            system = (record["peer"], record["variant"])
            if system not in systems:
                systems.append(system)
            metric = record["metric"]
            sessions = None if metric.startswith(ANY_SIZE) else record.get("sessions")
            for name, value in values(metric, record):
                if isinstance(value, (int, float)):
                    found[name, sessions][system].append(value)
    return found, systems


def values(metric, record):
    yield metric, record["value"]
    if metric == "peak_rss":
        yield "peak_pss", record.get("pss")
    for count in ("dup", "executed_again"):
        if metric.startswith(("recover_", "takeover_")) and count in record:
            yield metric + "_again", record[count]


def text(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"


def compare(row, medians):
    """The JSON line of a row, or None if we have no value."""
    metric, sessions, unit, more, aim = row
    ours = {variant: value for (peer, variant), value in medians.items() if peer == OURS}
    peers = {f"{variant}": value for (peer, variant), value in medians.items() if peer != OURS}
    if not ours:
        return None
    line = {"metric": metric, "sessions": sessions, "unit": unit, "ours": ours, "peers": peers}
    if peers:
        best = (max if more else min)(peers, key=peers.get)
        line["best_peer"] = best
        if peers[best]:
            line["ratio"] = {variant: float(f"{value / peers[best]:.3g}") for variant, value in ours.items()}
    if aim:
        kind, bound = aim
        judged = line.get("ratio", {}) if kind == "x" else ours
        line["aim"] = f"{'ratio ' if kind == 'x' else ''}{'>=' if more else '<='} {bound}"
        line["met"] = {variant: value >= bound if more else value <= bound for variant, value in judged.items()}
    return line


def main(path):
    found, systems = read(path)
    lines, rows = [], [["median", *(variant for _, variant in systems), "ours / best", "aim", "met"]]
    for row in ROWS:
        metric, sessions, unit, _, _ = row
        key = (metric, None if metric.startswith(ANY_SIZE) else sessions)
        medians = {system: statistics.median(values) for system, values in found.get(key, {}).items()}
        line = compare(row, medians)
        if line is None:
            continue
        lines.append(line)
        met = ["yes" if good else "no" for good in line.get("met", {}).values()]
        rows.append([f"{metric}{f' S={sessions}' if sessions else ''}, {unit}",
                     *(text(medians.get(system)) for system in systems),
                     " ".join(text(ratio) for ratio in line.get("ratio", {}).values()) or "-",
                     line.get("aim", ""), "/".join(met)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |")
    for line in lines:
        print(json.dumps(line))


main(sys.argv[1])
