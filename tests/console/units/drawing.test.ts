import assert from "node:assert/strict";
import test from "node:test";
import { at, label, marks, MIN_SPAN, pan, stepOf, timeAt, zoom } from "../src/ui/scale.ts";
import { BOX, byDepth, graphOf, inOrder, layout, type Graph } from "../src/ui/layout.ts";
import { rangeOf } from "../src/ui/window.tsx";

const DAY = 86_400_000;
const WHOLE = { from: 1_000_000, to: 1_000_000 + 30 * DAY };

test("time and pixel belong to each other", () => {
  const view = { from: 500, to: 1500 };
  assert.equal(at(view, 200, 1000), 100);
  for (const x of [0, 17, 200]) assert.ok(Math.abs(at(view, 200, timeAt(view, 200, x)) - x) < 1e-9);
});

test("marks are round, in the view, and not too close, from milliseconds to months", () => {
  for (const span of [10, 250, 5000, 60_000, 3_600_000, DAY, 40 * DAY]) {
    const view = { from: 1_769_850_000_123, to: 1_769_850_000_123 + span };
    const step = stepOf(view, 800);
    const found = marks(view, 800, 0);
    assert.ok(found.length >= 1 && found.length <= 9, `${span}: ${found.length}`);
    for (const t of found) {
      assert.ok(t >= view.from && t <= view.to);
      assert.equal(t % step, 0);
      assert.ok(label(t, step).length > 0);
    }
  }
});

test("days are marked at midnight of the reader's zone", () => {
  const found = marks({ from: 0, to: 3 * DAY }, 300, -330);
  assert.ok(found.every((t) => (t + 330 * 60e3) % DAY === 0), String(found));
});

test("a zoom keeps the time under the pointer, and stays within the whole", () => {
  const around = WHOLE.from + 10 * DAY;
  const near = zoom(WHOLE, 0.1, around, WHOLE);
  assert.ok(Math.abs(at(near, 900, around) - at(WHOLE, 900, around)) < 1e-6);
  let view = WHOLE;
  for (let n = 0; n < 60; n += 1) view = zoom(view, 0.5, around, WHOLE);
  assert.ok(Math.abs(view.to - view.from - MIN_SPAN) < 0.01, "not narrower than can be read");
  for (let n = 0; n < 60; n += 1) view = zoom(view, 2, around, WHOLE);
  assert.ok(Math.abs(view.from - WHOLE.from) < 1 && Math.abs(view.to - WHOLE.to) < 1);
});

test("a view is not moved beyond the whole", () => {
  const view = { from: WHOLE.from + DAY, to: WHOLE.from + 2 * DAY };
  assert.equal(pan(view, -5 * DAY, WHOLE).from, WHOLE.from);
  const last = pan(view, 500 * DAY, WHOLE);
  assert.equal(last.to, WHOLE.to);
  assert.equal(last.to - last.from, DAY);
});

test("without `after` a step follows the one before it", () => {
  assert.deepEqual(graphOf([{ name: "a" }, { name: "b" }, { name: "c", after: ["a"] }, { name: "d", after: [] }]).edges, [["a", "b"], ["a", "c"]]);
});

function random(seed: number): () => number {
  return () => (seed = (seed * 48271) % 2147483647) / 2147483647;
}

function someGraph(n: number, seed: number): Graph {
  const chance = random(seed);
  const names = Array.from({ length: n }, (_, i) => `s${i}`);
  const edges = names.flatMap((name, i) => (i === 0 ? [] : [[`s${Math.floor(chance() * i)}`, name] as [string, string]]));
  return { names, edges };
}

test("no box covers another, and each is to the right of those it waits for", () => {
  for (const n of [1, 2, 9, 40, 151, 1000]) {
    const graph = someGraph(n, n);
    const { boxes, width, height } = layout(graph);
    assert.equal(boxes.size, n);
    for (const [from, to] of graph.edges) assert.ok((boxes.get(from)?.x ?? 0) + BOX.width <= (boxes.get(to)?.x ?? 0), `${from} ${to}`);
    const list = [...boxes.values()].sort((a, b) => a.x - b.x);
    for (let i = 0; i < list.length; i += 1) {
      const a = list[i] as { x: number; y: number };
      assert.ok(a.x >= BOX.width / 2 - 1 && a.x <= width && a.y >= 0 && a.y <= height);
      for (let j = i + 1; j < list.length && (list[j] as { x: number }).x < a.x + BOX.width; j += 1) {
        assert.ok(Math.abs((list[j] as { y: number }).y - a.y) >= BOX.height, `${n}: boxes overlap`);
      }
    }
  }
});

test("a thousand steps in a row are laid out without deep recursion", () => {
  const names = Array.from({ length: 1000 }, (_, i) => `s${i}`);
  const graph = graphOf(names.map((name) => ({ name })));
  assert.equal(byDepth(graph).boxes.get("s999")?.y, byDepth(graph).boxes.get("s0")?.y);
  assert.deepEqual(inOrder(names, graph.edges), names);
});

test("the rows in view, and some around them", () => {
  assert.deepEqual(rangeOf(0, 450, 45, 10_000), { first: 0, last: 18 });
  assert.deepEqual(rangeOf(45_000, 450, 45, 10_000), { first: 992, last: 1018 });
  assert.deepEqual(rangeOf(1e9, 450, 45, 100), { first: 100, last: 100 });
});
