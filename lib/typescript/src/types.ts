/** A state of a task. "processed", "compensated" and "error" are ends: it does not go on by itself. */
export type TaskState = "pending" | "processing" | "processed" | "compensating" | "compensated" | "error";

/** A state of a step. */
export type StepState = "waiting" | "running" | "completed" | "failed" | "skipped" | "undoing" | "undone";

export type Direction = "forward" | "undo";

/** Who is told what becomes of a task, and of which events. */
export interface ReplyTo {
  to: string;
  events?: "all" | string[] | null;
}

/** A signal that a submission carries. */
export interface SignalToSend {
  id: string;
  name: string;
  data?: unknown;
}

/** What became of it. */
export interface CarriedSignal {
  id: string;
  name: string;
  status: "accepted" | "repeated" | "refused";
  /** Why it was refused. */
  problem: string | null;
}

/** A task to be. Give ids of your own: then it may be submitted twice, and is there once. */
export interface Submission {
  workflow: string;
  id?: string;
  version?: number;
  input?: unknown;
  /** 0 to 9, higher ones first; 5 if not given. */
  priority?: number;
  /** RFC 3339. */
  not_before?: string | null;
  reply_to?: string | ReplyTo | null;
  tags?: Record<string, string> | null;
  /** It waits until somebody resumes it. */
  paused?: boolean;
  /** The W3C trace context that it belongs to. */
  traceparent?: string;
  /** They are sent to it with it, or to the task that exists. */
  signals?: SignalToSend[] | null;
}

/** A task that is there, durably. */
export interface Submitted {
  id: string;
  workflow: string;
  version: number;
  /** It ended, and was deleted; the next two are what is left of it. */
  deleted?: boolean;
  state?: TaskState;
  ended_at?: string;
  /** What became of the signals of the submission. */
  signals?: CarriedSignal[];
}

/** What became of one of many. */
export interface SubmittedLine {
  line: number;
  /** As of HTTP: 201, 200 for one that existed, or that of the problem. */
  status: number;
  id: string | null;
  /** Of its workflow; not if it was refused. */
  version?: number;
  state?: TaskState | null;
  deleted?: boolean;
  /** With `deleted`. */
  ended_at?: string;
  problem?: Record<string, unknown>;
  /** What became of the signals of the submission. */
  signals?: CarriedSignal[];
}

/** What went wrong. */
export interface Fault {
  code: string;
  message: string;
}

/** The first failure of a task. */
export interface Cause {
  /** null: it was that of no step. */
  step: string | null;
  code: string;
  message: string | null;
}

/** A task in a list. Times are RFC 3339. */
export interface TaskSummary {
  id: string;
  workflow: string;
  version: number;
  state: TaskState;
  direction: Direction;
  priority: number;
  failure_count: number;
  locked_by: string | null;
  complete_by: string | null;
  not_before: string | null;
  waiting_for: string | null;
  lock: string | null;
  lock_since: string | null;
  submitted_at: string;
  started_at: string | null;
  ended_at: string | null;
  paused_at: string | null;
  closed_at: string | null;
  tags: Record<string, string> | null;
  error: Fault | null;
  /** Why it started nothing more going forward, or goes back; null while it goes forward. */
  cause: Cause | null;
  /** The task that started it; left out if none did. */
  parent?: string;
  /** The task at the root of its family; left out if it has no parent. */
  root?: string;
}

/** One hand-over of a step to an agent. */
export interface Attempt {
  attempt: number;
  direction: Direction;
  instance: string;
  started_at: string;
  ended_at: string | null;
  complete_by: string;
  outcome: "open" | "completed" | "failed" | "timed_out" | "not_sent" | "late";
  effect: "none" | "unknown" | "happened";
  /** It failed while the breaker of its agent was not closed; that does not count. */
  spared?: boolean;
  /** How often its request was sent again, because an answer got lost. */
  resent?: number;
  /** Which idempotency key of its step it had, from the second on. */
  key_generation?: number;
  /** To which round of a repeated step it belongs. */
  round?: number;
  /** Calls to the service that it made. */
  tries?: number;
  /** Its result comes by its token. */
  elsewhere?: boolean;
  output?: unknown;
  error?: Fault | null;
  heartbeat_at?: string | null;
  progress?: unknown;
  message?: string | null;
}

/** What a person said to the question of a step. */
export interface Vote {
  by: string;
  agrees: boolean;
  comment: string | null;
  at: string;
}

/** What a step asks, of whom, and who has said what. */
export interface Approval {
  question: string | null;
  asking: number;
  by: string[];
  people: number;
  agreed: number;
  votes: Vote[];
  asked_at: string | null;
  complete_by: string | null;
  escalates_at: string | null;
  escalates_to: string[];
}

/** What waits for a decision: which step of which task asks, and whether this token's person may decide. */
export interface Asked extends Approval {
  task: string;
  step: string;
  workflow: string;
  version: number;
  waits_for_you: boolean;
}

/** A page of what waits. */
export interface ApprovalPage {
  approvals: Asked[];
  /** The cursor of the page after it; null: there is none. */
  next: string | null;
}

/** A decision that is durable, and how many agree of how many who have to. */
export interface Decided {
  task: string;
  step: string;
  person: string;
  agrees: boolean;
  at: string;
  agreed: number;
  people: number;
}

/** A task that a step started, as its parent knows it. */
export interface Child {
  id: string;
  state: "running" | "error" | "stands" | "turned" | "stuck" | "processed" | "compensated";
  /** What it was asked last. */
  asked: "stop" | "undo" | "close" | null;
}

/** How many items of a step with `for_each` are where. */
export interface Items {
  /** The length of the list; 0 before the step begins. */
  count: number;
  begun: number;
  completed: number;
  failed: number;
  skipped: number;
  undone: number;
  in_doubt: number;
  /** What an undo would reach, or has still to reach. */
  to_undo: number;
  /** Those that are tried or wait for their next try, and failed ones that an operator can retry. */
  at_work: Step[];
}

/** A page of the items of a step, by their numbers. */
export interface ItemPage {
  step: string;
  count: number;
  items: Step[];
  /** The cursor of the page after it; null: there is none. */
  next: string | null;
}

/** A step of a task, or an item of one. */
export interface Step {
  /** Of an item `STEP.N`, as `pack.3`. */
  name: string;
  /** The number of an item, from 0 on. */
  item?: number;
  state: StepState;
  /** Null for a step that waits, as is its action. */
  agent: string | null;
  action: string | null;
  /** Of a step that waits: for a time, for a signal, for people, or for a task that it starts; or of one with items. */
  kind?: "wait" | "signal" | "approve" | "task" | "for_each";
  /** Of a step with `for_each`. */
  items?: Items;
  /** The names of the signals that it waits for. */
  signals?: string[];
  /** What it asks people. */
  approval?: Approval;
  /** The workflow of the task that it starts. */
  workflow?: string;
  /** The task that it started; null: none so far. */
  child?: Child | null;
  /** When its wait began. */
  begun_at?: string | null;
  /** Of a repeated step: the round that runs, is next, or was the last; 0 before the first. */
  round?: number;
  /** A round that begins then or later is the last. */
  repeat_until?: string | null;
  /** It runs only when the task goes back, after the last compensation. */
  on_undo?: true;
  failure_count: number;
  in_doubt: boolean;
  complete_by: string | null;
  wait_until: string | null;
  input: unknown;
  output: unknown;
  error: Fault | null;
  /** What the latest attempt left for the next. */
  resume?: unknown;
  /** Which of its idempotency keys is the present one, from the second on. */
  key_generation?: number;
  /** A person supplied its output. */
  supplied?: boolean;
  /** Of the attempts up to this one a person said that none took effect. */
  resolved?: number;
  attempts: Attempt[];
}

/** What somebody did. */
export interface AuditEntry {
  at: string;
  actor: string;
  verb: string;
  task: string | null;
  step: string | null;
  reason: string | null;
  detail: Record<string, unknown> | null;
  /** From where it was asked for; in the audit alone, and not in the record of a task. */
  address?: string | null;
  forwarded_for?: string | null;
}

/** The whole record of a task. `I` and `O` are the types of its input and output, of which nothing is checked. */
export interface Task<I = unknown, O = unknown> extends TaskSummary {
  input: I;
  /** null: it was not processed, or its workflow has no output. */
  output: O | null;
  traceparent: string | null;
  owner: string | null;
  closed_reason: string | null;
  /** The step of `parent` that started it; left out if none did. */
  parent_step?: string;
  /** The versions of the workflows of its descendants; left out if it is of no family. */
  family?: Record<string, number>;
  steps: Step[];
  /** Signals that no step has taken, if any were sent. */
  signals?: { id: string; name: string; at: string }[];
  /** Only in the answer to a submission: what became of the signals that it carried. */
  carried_signals?: CarriedSignal[];
  /** What people did to it; the last 100. */
  operations: AuditEntry[];
}

/** A signal that is durable. `id`: its key. */
export interface SentSignal {
  task: string;
  id: string;
  name: string;
  at: string;
}

/** A page of a list. */
export interface TaskPage {
  tasks: TaskSummary[];
  /** The cursor of the page after it; null: there is none. */
  next: string | null;
}

/** One thing that a task waits for. */
export interface Reason {
  /** A word for programs. */
  kind: string;
  step: string | null;
  agent: string | null;
  since: string | null;
  until: string | null;
  /** What is so. */
  text: string;
  /** What would move it. */
  moves: string;
}

/** Why a task is where it is. */
export interface Why {
  task: string;
  state: TaskState;
  direction: Direction;
  summary: string;
  since: string | null;
  /** The most important first. */
  reasons: Reason[];
  messages: Record<string, unknown>[];
  more_messages: boolean;
  alerts: Record<string, unknown>[];
}

/** A version of a workflow, with its definition as it was stored: JSON as `definition`, YAML as `text`. */
export interface Workflow {
  name: string;
  version: number;
  /** How many it has. */
  steps: number;
  format: "json" | "yaml";
  definition?: Record<string, unknown>;
  text?: string;
}

/** The version that a stored definition has, and what is odd about it. */
export interface WorkflowStored {
  name: string;
  version: number;
  warnings: Record<string, unknown>[];
}
