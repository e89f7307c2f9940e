// Lines over time, drawn by uPlot, which is loaded when the first chart is shown. Screen readers are told the latest values.
import { useEffect, useRef } from "preact/hooks";
import { theme } from "../app/theme.ts";
import { useWidth } from "./basics.tsx";

export interface Line {
  label: string;
  color: string; // a custom property of the style
  values: (number | null)[];
  isFilled?: boolean;
  dash?: number[];
}

const COUNTS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7]; // between two marks

const LENGTHS = [1, 10, 100, 1e3, 10e3, 60e3, 600e3, 3600e3, 21600e3, 86400e3, 604800e3]; // round ones, from a millisecond to a week

function latestOf(lines: Line[], format: (v: number) => string): string {
  return lines.map((l) => {
    const last = l.values.filter((v) => v !== null).at(-1);
    return `${l.label}: ${last === undefined || last === null ? "none" : format(last)}`;
  }).join(", ");
}

export function Chart({ times, lines, height = 150, isWhole = false, isLog = false, format, name }: {
  times: number[]; lines: Line[]; height?: number; isWhole?: boolean /* its values are counts */; isLog?: boolean /* they are durations of any length */; format: (v: number) => string; name: string;
}) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const latest = useRef({ times, lines });
  latest.current = { times, lines };
  const chart = useRef<{ setData: (data: never) => void } | null>(null);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  useEffect(() => {
    const element = ref.current;
    if (!element || width === 0) return;
    let isGone = false;
    let made: { destroy: () => void } | undefined;
    const draw = async () => {
      const { default: Plot } = await import("uplot");
      if (isGone) return;
      made?.destroy();
      const style = getComputedStyle(element);
      const color = (variable: string) => style.getPropertyValue(variable).trim();
      const axis = { stroke: color("--muted"), font: `11px ${color("--font")}`, grid: { stroke: color("--line"), width: 1 }, ticks: { show: false } };
      const plot = new Plot({
        width, height, padding: [8, 4, 0, 0],
        legend: { show: false }, cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
        scales: { x: { range: (_u, min, max) => [Math.min(min, max - 600), max] }, y: isLog ? { distr: 3, range: (_u, min, max) => [LENGTHS.filter((l) => l < min).at(-1) ?? 1, LENGTHS.find((l) => l > max) ?? max] } : { range: (_u, _min, max) => [0, Math.max(max * 1.15, isWhole ? 4 : 1)] } },
        axes: [
          { ...axis, size: 24, values: (_u, ticks) => ticks.map((t) => new Date(t * 1000).toTimeString().slice(0, 5)) },
          { ...axis, size: 52, space: 36, ...(isLog ? { splits: (_u: unknown, _n: number, min: number, max: number) => LENGTHS.filter((l) => l >= min && l <= max), filter: (_u: unknown, splits: number[]) => splits } : {}), ...(isWhole ? { incrs: COUNTS } : {}), values: (_u, ticks) => ticks.map(format) },
        ],
        series: [{}, ...lines.map((l) => ({
          label: l.label, stroke: color(l.color), width: 1.5, spanGaps: false, points: { show: false },
          ...(l.dash ? { dash: l.dash } : {}), ...(l.isFilled ? { fill: `${color(l.color)}22` } : {}),
        }))],
        hooks: { setCursor: [(u) => tell(element, u.cursor.idx ?? null)] },
      }, [latest.current.times.map((t) => t / 1000), ...latest.current.lines.map((l) => l.values)] as never, element);
      made = plot;
      chart.current = plot;
    };
    const tell = (host: HTMLElement, n: number | null) => {
      const tip = host.parentElement?.querySelector(".chart-tip");
      if (!tip) return;
      const time = n === null ? undefined : latest.current.times[n];
      tip.textContent = time === undefined ? "" : `${new Date(time).toTimeString().slice(0, 8)}  ${latest.current.lines.map((l) => `${l.label} ${l.values[n as number] === null ? "–" : format(l.values[n as number] as number)}`).join("  ")}`;
    };
    void draw();
    dark.addEventListener("change", draw);
    return () => {
      isGone = true;
      made?.destroy();
      chart.current = null;
      dark.removeEventListener("change", draw);
    };
  }, [width, height, lines.length, theme.value]);
  useEffect(() => {
    chart.current?.setData([times.map((t) => t / 1000), ...lines.map((l) => l.values)] as never);
  });
  return (
    <figure class="chart">
      <figcaption class="legend">
        {lines.map((l) => <span key={l.label}><i class={l.dash ? "dashed" : ""} style={{ color: `var(${l.color})` }} />{l.label}</span>)}
        <span class="chart-tip" />
      </figcaption>
      <div ref={ref} class="chart-plot" role="img" aria-label={`${name}. ${latestOf(lines, format)}`} style={{ height }} />
    </figure>
  );
}
