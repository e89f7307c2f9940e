// What a timeline shows of a task: a row for each step, and on it what was when. Drawn by timeline.tsx.
import type { Attempt, Step, Task } from "../../api/types.ts";
import { time } from "../../ui/format.ts";
import type { View } from "../../ui/scale.ts";

export interface Bar {
  kind: "attempt" | "wait" | "lost" | "rest"; // lost: between a failure and the next try; rest: a step that waits by itself
  from: number;
  to: number;
  state: "open" | "completed" | "failed" | "timed_out" | "not_sent" | "late" | "waiting";
  isUndo: boolean;
  inDoubt: boolean;
  title: string;
  attempt?: Attempt;
}

export interface Row {
  step: Step;
  bars: Bar[];
  deadlines: number[]; // complete-by of what is open
  beats: number[];
}

export interface Timeline {
  rows: Row[];
  whole: View; // as far as one can look
  first: View; // what is shown at first: from the submission until now, or the end
  complete: number | null; // complete-by of the task
  paused: number | null;
  lostMs: number; // of attempts that failed, and of the waits after them
}

const defined = (list: (number | null)[]): number[] => list.filter((t): t is number => t !== null);

export function timelineOf(task: Task, now: number): Timeline {
  const begin = time(task.submitted_at) ?? now;
  const hasEnded = ["processed", "compensated", "error"].includes(task.state);
  const end = hasEnded ? (time(task.ended_at) ?? now) : now;
  const rows = task.steps.map((step) => rowOf(step, task, now, end));
  const bars = rows.flatMap((r) => r.bars);
  const times = [begin, end, ...bars.flatMap((b) => [b.from, b.to]), ...rows.flatMap((r) => r.deadlines), ...defined([time(task.complete_by), time(task.not_before)])];
  const last = Math.max(end, ...bars.filter((b) => b.kind !== "rest" && b.to <= now).map((b) => b.to));
  return {
    rows, whole: padded(Math.min(...times), Math.max(...times, task.state === "error" ? now : end)), first: padded(begin, last), complete: time(task.complete_by),
    paused: hasEnded ? null : time(task.paused_at), lostMs: lost(bars, now),
  };
}

function padded(from: number, to: number): View {
  const pad = Math.max((to - from) * 0.02, 5);
  return { from: from - pad, to: to + pad };
}

function lost(bars: Bar[], now: number): number {
  return bars.reduce((sum, b) => {
    const isLost = b.kind === "lost" || (b.kind === "attempt" && (b.state === "failed" || b.state === "timed_out"));
    return sum + (isLost ? Math.max(0, Math.min(b.to, now) - b.from) : 0);
  }, 0);
}

function rowOf(step: Step, task: Task, now: number, end: number): Row {
  const bars: Bar[] = [];
  const beats: number[] = [];
  const attempts = [...step.attempts].sort((a, b) => (time(a.started_at) ?? 0) - (time(b.started_at) ?? 0));
  attempts.forEach((attempt, n) => {
    const from = time(attempt.started_at) as number;
    const to = time(attempt.ended_at) ?? now;
    const isUndo = attempt.direction === "undo";
    bars.push({
      kind: "attempt", from, to, state: attempt.outcome, isUndo, attempt,
      inDoubt: attempt.effect === "unknown" && attempt.outcome !== "open" && attempt.attempt > (step.resolved ?? 0),
      title: `${isUndo ? "undo, " : ""}attempt ${attempt.attempt}: ${attempt.outcome.replace("_", " ")}`,
    });
    const beat = time(attempt.heartbeat_at);
    if (beat !== null) beats.push(beat);
    const next = attempts[n + 1];
    if (next && next.direction === attempt.direction && ["failed", "timed_out"].includes(attempt.outcome)) {
      bars.push({ kind: "lost", from: to, to: time(next.started_at) as number, state: "waiting", isUndo, inDoubt: false, title: "wait before the next attempt" });
    }
  });
  const last = attempts.at(-1);
  const until = time(step.wait_until);
  const begun = time(step.begun_at);
  if (last && until !== null && step.state === "waiting") {
    bars.push({ kind: "lost", from: time(last.ended_at) ?? now, to: until, state: "waiting", isUndo: last.direction === "undo", inDoubt: false, title: "wait before the next attempt" });
  }
  if (begun !== null && attempts.length === 0) {
    const isOpen = step.state === "waiting" || step.state === "running";
    const to = isOpen ? (until ?? Math.max(now, begun)) : Math.min(nextStart(task, begun) ?? end, end);
    bars.push({ kind: "rest", from: begun, to: Math.max(to, begun), state: isOpen ? "waiting" : "completed", isUndo: false, inDoubt: false, title: restTitle(step) });
  }
  const deadline = time(step.complete_by);
  return { step, bars, beats, deadlines: deadline !== null ? [deadline] : [] };
}

function restTitle(step: Step): string {
  switch (step.kind) {
    case "wait": return "waits for a time";
    case "signal": return `waits for the signal ${(step.signals ?? []).join(" or ")}`;
    case "approve": return "waits for people to decide";
    case "task": return `its child ${step.child?.id ?? ""}`;
    default: return "works through its items";
  }
}

// A step without attempts has no end on record: it ended before the next one began.
function nextStart(task: Task, after: number): number | null {
  const starts = task.steps.flatMap((s) => defined([time(s.begun_at), ...s.attempts.map((a) => time(a.started_at))])).filter((t) => t > after);
  return starts.length > 0 ? Math.min(...starts) : null;
}
