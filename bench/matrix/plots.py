"""Results as pictures (SVG), with nothing but the standard library."""

import html
import math

from table import medians

COLORS = ["#2a6fb0", "#e08a2c", "#4c9a52", "#b5404a"]
FONT = 'font-family="DejaVu Sans, Helvetica, Arial, sans-serif"'
LEFT, RIGHT, TOP, LINE = 170, 90, 76, 24


class Picture:
    def __init__(self, title, subtitle, width, height):
        self.width, self.height = width, height
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" {FONT}>',
                      f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
        self.text(16, 26, title, size=17, weight="bold")
        self.text(16, 46, subtitle, size=12, color="#555555")

    def text(self, x, y, text, size=12, anchor="start", color="#222222", weight="normal"):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{color}" '
                          f'font-weight="{weight}">{html.escape(text)}</text>')

    def box(self, x, y, width, height, color):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0):.1f}" height="{height:.1f}" fill="{color}"/>')

    def line(self, points, color, width=1.0, dash=""):
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"'
                          + (f' stroke-dasharray="{dash}"' if dash else "") + "/>")

    def dot(self, x, y, color):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{color}"/>')

    def legend(self, names, y):
        x = LEFT
        for name, color in zip(names, COLORS):
            self.box(x, y - 10, 12, 12, color)
            self.text(x + 18, y, name)
            x += 34 + 7.2 * len(name)

    def save(self, path):
        with open(path, "w") as f:
            f.write("\n".join(self.parts + ["</svg>", ""]))


def short(v):
    if v >= 10000:
        return f"{v / 1000:.0f}k"
    return f"{v:.0f}" if v >= 100 else f"{v:.1f}" if v >= 10 else f"{v:.2f}" if v >= 0.1 else f"{v:.3f}"


def steps_of(most, count=5):
    """Round numbers from 0 to `most`, some `count` of them."""
    size = 10 ** math.floor(math.log10(most / count))
    size *= next(k for k in (1, 2, 5, 10) if size * k * count >= most)
    return [size * i for i in range(int(most / size) + 1)]


def bars(path, title, subtitle, names, rows, mark=None):
    """Horizontal bars, stacked. rows: (label, [values]); `mark`: a value to draw a line at."""
    rows = [(label, [v or 0 for v in values]) for label, values in rows]
    most = max([sum(values) for _, values in rows] + [mark or 0, 1e-9])
    width, height = 900, TOP + LINE * len(rows) + 40
    p = Picture(title, subtitle, width, height)
    scale = (width - LEFT - RIGHT) / most
    if len(names) > 1:
        p.legend(names, 66)
    for v in steps_of(most):
        p.line([(LEFT + v * scale, TOP - 2), (LEFT + v * scale, height - 32)], "#dddddd")
        p.text(LEFT + v * scale, height - 16, short(v) if v else "0", size=11, anchor="middle", color="#555555")
    for i, (label, values) in enumerate(rows):
        x, y = LEFT, TOP + i * LINE
        p.text(LEFT - 8, y + 15, label, anchor="end")
        for v, color in zip(values, COLORS):
            p.box(x, y + 3, v * scale, LINE - 8, color)
            x += v * scale
        p.text(x + 6, y + 15, short(sum(values)), size=11)
    if mark:
        p.line([(LEFT + mark * scale, TOP - 2), (LEFT + mark * scale, height - 32)], COLORS[3], 1.5, "5,4")
    p.save(path)


def curves(path, title, subtitle, names, points, unit):
    """Lines over a logarithmic axis. points: (x, label, [values])."""
    width, height, bottom = 900, 460, 400
    values = [v for _, _, vs in points for v in vs if v and v > 0]
    if not values:
        return
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 1e-9)
    right = max(x for x, _, _ in points)
    p = Picture(title, subtitle, width, height)
    p.legend(names, 66)

    def at(x, v):
        return (80 + (x / right) * (width - 130), bottom - (math.log10(v) - low) / max(high - low, 1) * (bottom - TOP - 14))

    for decade in range(low, high + 1):
        for k in (1, 2, 5) if decade < high else (1,):
            v = k * 10**decade
            y = at(0, v)[1]
            p.line([(80, y), (width - 50, y)], "#dddddd" if k == 1 else "#f0f0f0")
            p.text(74, y + 4, f"{v:g} {unit}", size=11, anchor="end", color="#555555")
    for x, label, _ in points:
        p.line([(at(x, values[0])[0], bottom), (at(x, values[0])[0], bottom + 5)], "#555555")
        p.text(at(x, values[0])[0], bottom + 20, f"{x:.0f}", size=11, anchor="middle", color="#555555")
        p.text(at(x, values[0])[0], bottom + 36, label, size=11, anchor="middle", color="#555555")
    for i in range(len(names)):
        line = [at(x, vs[i]) for x, _, vs in points if vs[i] and vs[i] > 0]
        p.line(line, COLORS[i], 2)
        for x, y in line:
            p.dot(x, y, COLORS[i])
    p.text(80, bottom + 54, "tasks a second that come, at random moments", size=11, color="#555555")
    p.save(path)


def draw(results, folder):
    """All pictures that there is something for; the names of their files."""
    found = medians(results)
    drawn = []

    def put(name, what, *args, **more):
        what(f"{folder}/{name}.svg", *args, **more)
        drawn.append(f"{name}.svg")

    rows = [(name, [v["tasks_per_s"]]) for name, v in found.items() if not name.startswith("open")]
    if rows:
        put("throughput", bars, "Tasks a second", "from submission to the end of each, closed loop", ["tasks"], rows)
    cpu = ["server_cpu_s_per_1000", "agents_cpu_s_per_1000", "database_cpu_s_per_1000"]
    put("cpu", bars, "CPU seconds for 1000 tasks", "of server, agents and database apart", ["server", "agents", "database"],
        [(name, [v[c] for c in cpu]) for name, v in found.items()])
    rows = [(name, [v["ratios.changes_to_store"]]) for name, v in found.items() if v["ratios.changes_to_store"]]
    if rows:
        put("store", bars, "State changes a second, by those of the bare store",
            "the same rows in the same batches; the line stands at one half", ["ratio"], rows, mark=0.5)
    put("memory", bars, "Resident memory of the server at its peak, MiB", "of the largest, where there are several", ["peak"],
        [(name, [v["peak_mib"]]) for name, v in found.items()])
    rates = {r["scenario"]: r["rate"] for r in results if r["scenario"].startswith("open")}
    points = sorted((rates[name], name, [v["p50_ms"], v["p99_ms"], v["p999_ms"]]) for name, v in found.items() if name in rates)
    if points:
        put("latency", curves, "Latency under load, from the moment when a task was due to its end",
            "open loop: what waits is counted", ["p50", "p99", "p99.9"], points, "ms")
    return drawn
