"""Results as a table for people."""

import statistics

# Heading, where the value is, digits behind the point.
COLUMNS = [
    ("tasks/s", "tasks_per_s", 0), ("changes/s", "changes_per_s", 0),
    ("p50 ms", "p50_ms", 2), ("p99 ms", "p99_ms", 2), ("p99.9 ms", "p999_ms", 2),
    ("CPU server", "server_cpu_s_per_1000", 3), ("agents", "agents_cpu_s_per_1000", 3),
    ("database", "database_cpu_s_per_1000", 3),
    ("MiB idle", "idle_mib", 1), ("peak", "peak_mib", 1),
    ("KB/task", "kb_per_task", 1), ("syncs/task", "syncs_per_task", 3),
    ("of store", "ratios.changes_to_store", 2), ("of HTTP", "ratios.tasks_to_http", 2), ("of disk", "ratios.syncs_to_disk", 2),
    ("CPU/store", "ratios.cpu_to_store", 1), ("CPU/HTTP", "ratios.cpu_to_http", 1), ("p50/disk", "ratios.p50_to_disk", 1),
]

LEGEND = """CPU: seconds for 1000 tasks. KB written and fdatasyncs by server or database. Of store: state changes a second, by those of the bare store in
the same batches. Of HTTP: tasks a second, by submissions a second that a bare server of the same library takes. Of disk: fdatasyncs a second,
by those of the bare disk. CPU/store: CPU of server and database, by that of the bare store and the database. CPU/HTTP: the server's, by that of bare HTTP for as many requests.
p50/disk, one in flight: the median, by the time that its fdatasyncs take."""


def value_of(result, path):
    if path == "kb_per_task":
        return result["bytes_per_task"] / 1000
    for part in path.split("."):
        result = result.get(part, {}) if isinstance(result, dict) else {}
    return result if isinstance(result, (int, float)) else None


def medians(results):
    """By scenario, in the order of their first appearance: the median of each column."""
    by_name = {}
    for r in results:
        by_name.setdefault(r["scenario"], []).append(r)
    found = {}
    for name, rounds in by_name.items():
        values = {path: [v for v in (value_of(r, path) for r in rounds) if v is not None] for _, path, _ in COLUMNS}
        found[name] = {path: statistics.median(v) if v else None for path, v in values.items()}
    return found


def text_of(results):
    rows = [["scenario"] + [heading for heading, _, _ in COLUMNS]]
    for name, values in medians(results).items():
        rows.append([name] + ["-" if values[path] is None else f"{values[path]:.{digits}f}" for _, path, digits in COLUMNS])
    used = [i for i in range(len(rows[0])) if i == 0 or any(row[i] != "-" for row in rows[1:])]
    widths = {i: max(len(row[i]) for row in rows) for i in used}
    lines = ["  ".join(row[i].ljust(widths[i]) if i == 0 else row[i].rjust(widths[i]) for i in used) for row in rows]
    return "\n".join(lines) + "\n\n" + LEGEND
