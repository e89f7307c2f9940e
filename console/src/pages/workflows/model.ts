// How the tasks of a workflow do: shares of their states, and what their steps took, from a sample of them.
import type { Step, Task, TaskSummary } from "../../api/types.ts";
import { time } from "../../ui/format.ts";

export function quantile(values: number[], share: number): number | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] as number;
}

const ORDER = ["processed", "compensated", "error", "processing", "compensating", "pending"] as const;

export interface Ends {
  total: number;
  states: { state: (typeof ORDER)[number]; n: number }[];
  half: number | null; // ms from submission to end: half of those that ended took no longer
  most: number | null; // 95 of 100
}

export function ends(tasks: TaskSummary[]): Ends {
  const took = tasks.filter((t) => ["processed", "compensated"].includes(t.state))
    .map((t) => (time(t.ended_at) ?? NaN) - Math.max(time(t.submitted_at) ?? NaN, time(t.not_before) ?? 0)).filter((ms) => ms >= 0);
  return {
    total: tasks.length,
    states: ORDER.map((state) => ({ state, n: tasks.filter((t) => t.state === state).length })).filter(({ n }) => n > 0),
    half: quantile(took, 0.5),
    most: quantile(took, 0.95),
  };
}

export interface StepFigures {
  name: string;
  agent: string | null;
  tasks: number; // in which it was begun
  half: number | null; // ms from its first attempt to the end of its last one, forward
  most: number | null;
  attempts: number; // that ended
  failures: number; // of these
  failed: number; // tasks in which it failed for good, or is in doubt
  undone: number;
  codes: [code: string, n: number][]; // of errors, the most frequent first
}

const forward = (s: Step) => s.attempts.filter((a) => a.direction === "forward");

function lengthOf(step: Step): number | null {
  const attempts = forward(step).filter((a) => a.outcome !== "not_sent");
  const begin = time(attempts[0]?.started_at ?? step.begun_at);
  const last = attempts.at(-1);
  if (begin === null || !last || last.outcome === "open") return null;
  const end = time(last.ended_at);
  return end === null ? null : Math.max(0, end - begin);
}

export function stepFigures(tasks: Task[]): StepFigures[] {
  const by = new Map<string, Step[]>();
  for (const task of tasks) for (const step of task.steps) by.set(step.name, [...(by.get(step.name) ?? []), step]);
  return [...by].map(([name, steps]) => {
    const begun = steps.filter((s) => s.attempts.length > 0 || s.begun_at);
    const lengths = begun.map(lengthOf).filter((ms) => ms !== null);
    const ended = begun.flatMap(forward).filter((a) => !["open", "not_sent"].includes(a.outcome));
    const bad = ended.filter((a) => a.outcome === "failed" || a.outcome === "timed_out");
    const codes = new Map<string, number>();
    for (const a of bad) {
      const code = a.error?.code ?? a.outcome;
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    return {
      name, agent: steps.find((s) => s.agent)?.agent ?? null, tasks: begun.length,
      half: quantile(lengths, 0.5), most: quantile(lengths, 0.95), attempts: ended.length, failures: bad.length,
      failed: begun.filter((s) => s.in_doubt || (s.state === "failed" && s.attempts.at(-1)?.direction !== "undo")).length,
      undone: begun.filter((s) => s.attempts.some((a) => a.direction === "undo")).length,
      codes: [...codes].sort((a, b) => b[1] - a[1]),
    };
  });
}

export type By = "slow" | "failing";

export function sorted(figures: StepFigures[], by: By): StepFigures[] {
  const share = (f: StepFigures) => (f.attempts === 0 ? 0 : f.failures / f.attempts);
  return [...figures].sort((a, b) => (by === "slow" ? (b.half ?? -1) - (a.half ?? -1) : share(b) - share(a) || b.failed - a.failed));
}

export const percent = (n: number, of: number) => (of === 0 ? "–" : n === 0 ? "0 %" : n * 100 < of ? "< 1 %" : `${Math.round((n / of) * 100)} %`);
