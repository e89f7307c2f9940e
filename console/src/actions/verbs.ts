// The verbs of operators: when each is offered, what it will do, what it takes, and the command line that does the same.
// Whether it is possible decides the server; a dry run asks it beforehand.
import type { Step, Task } from "../api/types.ts";
import { commandLine } from "../ui/shell.ts";

export type VerbName = "retry" | "correct" | "supply" | "resolve" | "skip" | "undo" | "cancel" | "pause" | "resume" | "close" | "reopen";

export interface Arguments {
  step?: string;
  from?: string;
  input?: unknown;
  output?: unknown;
  effect?: "none";
  attempt?: number;
}

export interface Verb {
  name: VerbName;
  label: string;
  step: "no" | "may" | "must";
  value?: "input" | "output" | "output?"; // what it takes: with ?, it may
  isFinal?: boolean; // it cannot be taken back: the button says so by its colour
  hint: string;
  says: (given: { task: Task | null; step?: string | undefined; from?: string | undefined }) => string;
}

const these = (task: Task | null) => (task ? "the task" : "each task");

export const VERBS: Verb[] = [
  {
    name: "retry", label: "Retry", step: "may", hint: "The cause of the failure is gone",
    says: ({ task, step, from }) =>
      from ? `Step ${from} and all steps after it restart with new inputs, tries and idempotency keys. Refused if one of them is running, is in doubt, or took effect and has an undo.`
        : step ? `Step ${step} gets new tries, in the direction of ${these(task)}. Its idempotency key stays the same.`
          : `All failed steps get new tries, in the direction of ${these(task)}. Their idempotency keys stay the same.`,
  },
  {
    name: "correct", label: "Correct input", step: "may", value: "input", hint: "The request of a step, or the task's input, is wrong",
    says: ({ step, task }) =>
      step ? `The input of step ${step} is replaced. Its next request has another idempotency key. Then retry. Refused while the step runs or is in doubt.`
        : `The input of ${these(task)} is replaced, for steps whose own input is not recorded yet. Then retry from a step.`,
  },
  {
    name: "supply", label: "Supply output", step: "must", value: "output", hint: "The step took effect, but its result was lost",
    says: ({ step, task }) => `Step ${step ?? "…"} counts as completed with this output, and ${these(task)} continues. If it is undone later, the step is compensated.`,
  },
  {
    name: "resolve", label: "Took no effect", step: "must", hint: "A step in doubt did not take effect",
    says: ({ step }) => `Step ${step ?? "…"} is no longer in doubt: you say that it took no effect. An undo will not compensate it. Refused while an effect may still come.`,
  },
  {
    name: "skip", label: "Skip step", step: "must", value: "output?", isFinal: true, hint: "The step is not needed, or was done by other means",
    says: ({ step, task }) => `${task ? "The task" : "Each task"} continues without step ${step ?? "…"}. A step that is in doubt stays in doubt, and a later undo includes it.`,
  },
  {
    name: "undo", label: "Undo task", step: "no", isFinal: true, hint: "The task is not wanted any more",
    says: ({ task }) => `Every step of ${these(task)} that took effect, or may have, is compensated in reverse order. Refused if a pivot completed or is in doubt.`,
  },
  {
    name: "cancel", label: "Cancel", step: "no", isFinal: true, hint: "The submitter does not want the task any more",
    says: ({ task }) => `${task ? "The task" : "Each task"} is undone. Refused after a pivot has completed, and for a task that is processed or in error.`,
  },
  {
    name: "pause", label: "Pause", step: "no", hint: "The task must wait",
    says: ({ task }) => `No further attempt of ${these(task)} starts; running ones may end. Its clocks stop until it is resumed.`,
  },
  {
    name: "resume", label: "Resume", step: "no", hint: "The pause is over",
    says: ({ task }) => `${task ? "The task" : "Each task"} continues where it stopped, and its clocks run again.`,
  },
  {
    name: "close", label: "Close", step: "no", hint: "The task is settled as it is",
    says: ({ task }) => `${task ? "The task" : "Each task"} stays in error as it is, and is not shown as open work any more. Nothing is called. Reopen reverses this.`,
  },
  {
    name: "reopen", label: "Reopen", step: "no", hint: "The task was closed too early",
    says: ({ task }) => `${task ? "The task" : "Each task"} is open again, in error, and can be retried, undone or closed.`,
  },
];

// The verb with the step that it is for, as buttons say it.
export function labelOf(name: VerbName, step?: string): string {
  if (!step) return verb(name)?.label ?? name;
  switch (name) {
    case "correct": return `Correct input of ${step}`;
    case "supply": return `Supply output of ${step}`;
    case "resolve": return `${step} took no effect`;
    case "skip": return `Skip ${step}`;
    default: return `${verb(name)?.label ?? name} ${step}`;
  }
}

// In bulk there is one more: a signal to each task.
export const SIGNAL = {
  name: "signal", label: "Send signal", step: "no", value: "data", hint: "Steps wait for it",
  says: () => "Each task gets one signal of this name, for the first step that waits for it, now or later. Its key is the id of the operation: no task gets it twice.",
} as const;

export const verb = (name: string) => VERBS.find((v) => v.name === name);

const ENDED = ["processed", "compensated"];
const isOpen = (task: Task) => !ENDED.includes(task.state) && !task.closed_at;

// Whether what is on record of a step last is its undo.
export const isUndone = (s: Step) => s.state === "undoing" || s.state === "undone" || s.attempts.at(-1)?.direction === "undo";

// What a step is drawn as: one whose items or child are at work is `waiting` to the API.
export function drawnState(s: Step): string {
  if (s.in_doubt) return "doubt";
  if (s.state === "waiting" && s.child?.state === "error") return "failed"; // it goes on when its child does
  const works = s.state === "waiting" && s.begun_at && (s.kind === "for_each" || (s.kind === "task" && s.child?.state === "running"));
  return works ? "running" : s.state;
}

// Items at work are steps to operators.
export function stepsOf(task: Task): Step[] {
  return task.steps.flatMap((s) => [s, ...(s.items?.at_work ?? [])]);
}

// The steps for which a verb makes sense; the server judges more finely.
export function stepsFor(name: VerbName, task: Task): Step[] {
  const steps = stepsOf(task);
  if (name === "retry") return steps.filter((s) => s.state === "failed" || (s.wait_until && s.attempts.length > 0) || (task.state === "error" && s.state === "undoing"));
  if (name === "resolve") return steps.filter((s) => s.in_doubt);
  if (name === "correct") return steps.filter((s) => ["failed", "waiting"].includes(s.state) && !s.in_doubt && !isUndone(s) && s.kind !== "wait");
  if (name === "supply") return steps.filter((s) => !isUndone(s) && (["failed", "waiting", "running"].includes(s.state) || s.in_doubt));
  return steps.filter((s) => ["failed", "waiting", "undoing", "running"].includes(s.state) || s.in_doubt);
}

export function isOffered(name: VerbName, task: Task): boolean {
  const isChild = Boolean(task.parent);
  switch (name) {
    case "retry": return isOpen(task) && (task.state === "error" || stepsFor("retry", task).length > 0);
    case "correct": case "supply": case "skip": return isOpen(task) && stepsFor(name, task).length > 0;
    case "resolve": return isOpen(task) && stepsFor(name, task).length > 0;
    case "undo": return (isOpen(task) || task.state === "processed") && task.direction === "forward";
    case "cancel": return ["pending", "processing"].includes(task.state) && task.direction === "forward";
    case "pause": return !isChild && ["pending", "processing", "compensating"].includes(task.state) && !task.paused_at;
    case "resume": return !isChild && Boolean(task.paused_at) && isOpen(task);
    case "close": return !isChild && task.state === "error" && !task.closed_at;
    case "reopen": return !isChild && Boolean(task.closed_at);
  }
}

// The members of the request, in which the step of `resolve` also names the attempt that was looked at.
export function requestBody(name: VerbName, given: Arguments, reason: string): Record<string, unknown> {
  return { reason, ...given, ...(name === "resolve" ? { effect: "none" } : {}) };
}

// Whether a dry run found nothing out: it reads no items at rest, though the operation itself does.
export const isUnread = (why: string) => why.endsWith("a dry run does not read it");

const json = (value: unknown) => (value === undefined ? undefined : JSON.stringify(value));

export function argumentFlags(name: VerbName, given: Arguments): [string, string | undefined][] {
  return [
    ["--step", given.step], ["--from", given.from], ["--input", json(given.input)], ["--output", json(given.output)],
    ["--effect", name === "resolve" ? "none" : undefined], ["--attempt", given.attempt === undefined ? undefined : String(given.attempt)],
  ];
}

export function taskCommand(name: VerbName, task: string, given: Arguments, reason: string): string {
  const isOdd = task.startsWith("-");
  return commandLine([name, ...(isOdd ? [] : [task]), ...argumentFlags(name, given), ["--reason", reason || "..."], ...(isOdd ? ["--", task] : [])]);
}
