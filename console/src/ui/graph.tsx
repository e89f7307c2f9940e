// A graph that scrolls, of which only what is in view is drawn. The whole of one that is large is drawn as a plan: one path
// for all boxes of a state, and none that can be read; a click on it leads to the place.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Panel, useWidth } from "./basics.tsx";
import { Icon } from "./icons.tsx";
import { BOX, curve } from "./layout.ts";

export interface DrawnNode {
  key: string;
  x: number; // of its middle
  y: number;
  state: string;
}

export interface DrawnLine {
  points: { x: number; y: number }[];
  kind: string; // its class
}

interface Area {
  left: number;
  right: number;
  top: number;
  bottom: number;
}

const SMALLEST = 0.7; // of text that can be read
const PLAN = 0.45; // below it, a plan
const TILE = 500; // drawn by parts of this size, so that not every pixel that is scrolled draws anew
const HIGH = 520;

// The parts of the graph in view, in its own measure.
function useArea(ref: { current: HTMLDivElement | null }, scale: number): Area {
  const [area, setArea] = useState<Area>(() => ({ left: -TILE, top: -TILE, right: innerWidth + TILE, bottom: HIGH + TILE }));
  useEffect(() => {
    const host = ref.current;
    if (!host) return;
    let asked = 0;
    const look = () => {
      asked = 0;
      const down = (at: number) => Math.floor(at / scale / TILE) * TILE - BOX.width;
      const up = (at: number) => Math.ceil(at / scale / TILE) * TILE + BOX.width;
      const next = {
        left: down(host.scrollLeft), right: up(host.scrollLeft + host.clientWidth), top: down(host.scrollTop), bottom: up(host.scrollTop + host.clientHeight),
      };
      setArea((was) => (was.left === next.left && was.right === next.right && was.top === next.top && was.bottom === next.bottom ? was : next));
    };
    const ask = () => { asked ||= requestAnimationFrame(look); };
    look();
    host.addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", ask);
    return () => { cancelAnimationFrame(asked); host.removeEventListener("scroll", ask); removeEventListener("resize", ask); };
  }, [scale]);
  return area;
}

const box = ({ x, y }: { x: number; y: number }) => `M${x - BOX.width / 2} ${y - BOX.height / 2}h${BOX.width}v${BOX.height}h${-BOX.width}z`;

// Where a line ends: lines leave and arrive level, so its head points to the side from which it comes.
function head(points: { x: number; y: number }[]): string {
  const last = points.at(-1);
  const first = points[0];
  if (!last || !first) return "";
  const by = last.x >= first.x ? -5 : 5;
  return `M${last.x + by} ${last.y - 4}L${last.x} ${last.y}L${last.x + by} ${last.y + 4}`;
}

function byKind<T>(list: T[], kindOf: (one: T) => string): [string, T[]][] {
  const found = new Map<string, T[]>();
  for (const one of list) {
    const kind = kindOf(one);
    const those = found.get(kind);
    if (those) those.push(one);
    else found.set(kind, [one]);
  }
  return [...found];
}

export function GraphPanel({ width, height, nodes, lines, draw, lane, children }: {
  width: number; height: number; nodes: DrawnNode[]; lines: DrawnLine[]; draw: (node: DrawnNode) => ComponentChildren; lane?: ComponentChildren; children?: ComponentChildren;
}) {
  const [ref, wide] = useWidth<HTMLDivElement>();
  const [whole, setWhole] = useState(false);
  const goal = useRef<{ x: number; y: number } | null>(null);
  const fit = wide > 0 ? Math.min(1, (wide - 2) / width) : 1;
  const scale = whole ? Math.min(fit, HIGH / height) : Math.max(fit, SMALLEST);
  const isPlan = whole && scale < PLAN;
  const area = useArea(ref, scale);
  useEffect(() => {
    const to = goal.current;
    goal.current = null;
    if (to && !whole) ref.current?.scrollTo(to.x * scale - wide / 2, to.y * scale - HIGH / 2);
  }, [whole]);
  const isSeen = (n: DrawnNode) => n.x > area.left && n.x < area.right && n.y > area.top && n.y < area.bottom;
  const lineSeen = ({ points }: DrawnLine) => {
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    return Math.max(...xs) > area.left && Math.min(...xs) < area.right && Math.max(...ys) > area.top && Math.min(...ys) < area.bottom;
  };
  const go = (e: MouseEvent) => {
    const { left, top } = (e.currentTarget as Element).getBoundingClientRect();
    goal.current = { x: (e.clientX - left) / scale, y: (e.clientY - top) / scale };
    setWhole(false);
  };
  return (
    <Panel title="Steps" class="graph-panel" aside={fit < SMALLEST && <button type="button" class="button quiet" aria-pressed={whole} onClick={() => setWhole(!whole)}><Icon name="fit" /><span>{whole ? "Readable size" : "Whole graph"}</span></button>}>
      <div ref={ref} class="graph-scroll" tabIndex={0} role="group" aria-label="Graph of the steps">
        <div class="graph-space" style={{ width: width * scale, height: height * scale }}>
          <div class={`graph ${isPlan ? "plan" : ""}`} style={{ width, height, transform: `scale(${scale})` }} onClick={isPlan ? go : undefined}>
            <svg width={width} height={height} aria-hidden="true">
              {byKind(isPlan ? lines : lines.filter(lineSeen), (l) => l.kind).map(([kind, those]) => (
                <g key={kind} class={`edge ${kind}`}>
                  <path d={those.map((l) => curve(l.points)).join("")} />
                  {!isPlan && <path class="edge-head" d={those.map((l) => head(l.points)).join("")} />}
                </g>
              ))}
              {isPlan && byKind(nodes, (n) => n.state).map(([state, those]) => <path key={state} class={`plan-boxes s-${state}`} d={those.map(box).join("")} />)}
            </svg>
            {lane}
            {!isPlan && nodes.filter((n) => whole || isSeen(n)).map(draw)}
          </div>
        </div>
      </div>
      {children}
    </Panel>
  );
}
