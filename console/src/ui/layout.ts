// Where the steps of a workflow are drawn: from left to right, each to the right of those it waits for. Up to SMALL steps
// dagre finds the places; more are put in columns by their depth, which takes time in proportion to their number.
import dagre from "@dagrejs/dagre";

export interface Box {
  name: string;
  x: number; // of its middle
  y: number;
}

export interface Layout {
  boxes: Map<string, Box>;
  edges: { from: string; to: string; points: { x: number; y: number }[] }[];
  width: number;
  height: number;
}

export interface Graph {
  names: string[];
  edges: [string, string][];
}

export const BOX = { width: 164, height: 46 };
export const GAP = { column: 44, row: 18 };
const SMALL = 150;

export function layout(graph: Graph): Layout {
  return graph.names.length <= SMALL ? byDagre(graph) : byDepth(graph);
}

function byDagre({ names, edges }: Graph): Layout {
  const g = new dagre.graphlib.Graph();
  g.setGraph({ rankdir: "LR", ranksep: GAP.column, nodesep: GAP.row, edgesep: 10, marginx: 2, marginy: 2 });
  g.setDefaultEdgeLabel(() => ({}));
  for (const name of names) g.setNode(name, { ...BOX });
  for (const [from, to] of edges) g.setEdge(from, to);
  dagre.layout(g);
  const boxes = new Map(names.map((name) => [name, { name, x: g.node(name).x, y: g.node(name).y }]));
  const { width = 0, height = 0 } = g.graph();
  return { boxes, edges: edges.map(([from, to]) => ({ from, to, points: levelled(g.edge(from, to).points, boxes.get(from) as Box, boxes.get(to) as Box) })), width, height };
}

// From the middle of the right side to the middle of the left side. Lines that pass no column need nothing in between.
function levelled(points: { x: number; y: number }[], from: Box, to: Box) {
  const between = points.length > 3 ? points.slice(1, -1) : [];
  return [{ x: from.x + BOX.width / 2, y: from.y }, ...between, { x: to.x - BOX.width / 2, y: to.y }];
}

export function byDepth({ names, edges }: Graph): Layout {
  const before = new Map<string, string[]>(names.map((n) => [n, []]));
  for (const [from, to] of edges) before.get(to)?.push(from);
  const depth = new Map<string, number>();
  for (const name of inOrder(names, edges)) {
    depth.set(name, Math.max(-1, ...(before.get(name) ?? []).map((b) => depth.get(b) ?? -1)) + 1);
  }
  const columns: string[][] = [];
  for (const name of names) (columns[depth.get(name) ?? 0] ??= []).push(name);
  const row = new Map<string, number>();
  for (const column of columns) {
    // Each near the middle of those it waits for, so that few lines cross.
    const wish = new Map(column.map((name, n) => {
      const rows = (before.get(name) ?? []).map((b) => row.get(b) ?? 0);
      return [name, rows.length > 0 ? rows.reduce((a, b) => a + b, 0) / rows.length : n];
    }));
    column.sort((a, b) => (wish.get(a) as number) - (wish.get(b) as number));
    column.forEach((name, n) => row.set(name, n));
  }
  const wide = BOX.width + GAP.column;
  const high = BOX.height + GAP.row;
  const tallest = Math.max(...columns.map((c) => c.length));
  const boxes = new Map<string, Box>();
  columns.forEach((column, x) => column.forEach((name, y) => boxes.set(name, {
    name, x: x * wide + BOX.width / 2 + 2, y: (y + (tallest - column.length) / 2) * high + BOX.height / 2 + 2,
  })));
  return {
    boxes,
    edges: edges.map(([from, to]) => {
      const a = boxes.get(from) as Box;
      const b = boxes.get(to) as Box;
      return { from, to, points: [{ x: a.x + BOX.width / 2, y: a.y }, { x: b.x - BOX.width / 2, y: b.y }] };
    }),
    width: columns.length * wide - GAP.column + 4,
    height: tallest * high - GAP.row + 4,
  };
}

// Steps after those they wait for. A definition has no circle; steps of one would come last.
export function inOrder(names: string[], edges: [string, string][]): string[] {
  const open = new Map<string, number>(names.map((n) => [n, 0]));
  const next = new Map<string, string[]>();
  for (const [from, to] of edges) {
    open.set(to, (open.get(to) ?? 0) + 1);
    next.set(from, [...(next.get(from) ?? []), to]);
  }
  const found = names.filter((n) => open.get(n) === 0);
  for (let i = 0; i < found.length; i += 1) {
    for (const to of next.get(found[i] as string) ?? []) {
      const left = (open.get(to) as number) - 1;
      open.set(to, left);
      if (left === 0) found.push(to);
    }
  }
  const seen = new Set(found);
  return [...found, ...names.filter((n) => !seen.has(n))];
}

// The graph of a definition: without `after`, a step follows the one before it in the text.
export function graphOf(steps: { name: string; after?: string[] | null }[]): Graph {
  const edges: [string, string][] = [];
  steps.forEach((step, n) => {
    const before = step.after ?? (n > 0 ? [(steps[n - 1] as { name: string }).name] : []);
    for (const name of before) edges.push([name, step.name]);
  });
  return { names: steps.map((s) => s.name), edges };
}

// A line that leaves to the right and arrives from the left.
export function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  let path = `M${first.x} ${first.y}`;
  let last = first;
  for (const p of rest) {
    const middle = (last.x + p.x) / 2;
    path += `C${middle} ${last.y} ${middle} ${p.y} ${p.x} ${p.y}`;
    last = p;
  }
  return path;
}
