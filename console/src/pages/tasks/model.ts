// The rows of the list: pages read so far, changes that streams told of, and how many tasks are new above them.
import type { TaskChange, TaskSummary } from "../../api/types.ts";
import { NO_FILTER, STATES, type TaskFilter } from "../../ui/filter.ts";

export interface Rows {
  tasks: TaskSummary[];
  next: string | null;
  fresh: Set<string>; // ids that are not in the list, submitted since it was read
}

export const NO_ROWS: Rows = { tasks: [], next: null, fresh: new Set() };

// A row changes where it is: nothing moves under the mouse. A task that is not in the list is only counted.
export function changed(rows: Rows, changes: TaskChange[], isFresh: (change: TaskChange) => boolean): Rows {
  const by = new Map(changes.map((c) => [c.id, c]));
  let isTouched = false;
  const tasks = rows.tasks.map((task) => {
    const change = by.get(task.id);
    if (!change) return task;
    by.delete(task.id);
    isTouched = true;
    const hasEnded = ["processed", "compensated", "error"].includes(change.state);
    return {
      ...task, state: change.state, direction: change.direction, failure_count: change.failure_count, paused_at: change.paused_at,
      closed_at: change.closed_at, ended_at: hasEnded ? (task.ended_at ?? change.at) : null,
    } as TaskSummary;
  });
  const fresh = new Set(rows.fresh);
  for (const change of by.values()) if (isFresh(change)) fresh.add(change.id);
  if (!isTouched && fresh.size === rows.fresh.size) return rows;
  return { ...rows, tasks, fresh };
}

// Tasks that were read again: rows that are known are as they say, and tasks that are newer than the first row are counted.
export function refreshed(rows: Rows, page: TaskSummary[]): Rows {
  const by = new Map(page.map((t) => [t.id, t]));
  const newest = rows.tasks[0]?.submitted_at ?? "";
  const known = new Set(rows.tasks.map((t) => t.id));
  const fresh = new Set(rows.fresh);
  for (const task of page) if (!known.has(task.id) && task.submitted_at >= newest) fresh.add(task.id);
  return { ...rows, tasks: rows.tasks.map((t) => by.get(t.id) ?? t), fresh };
}

// The filter of the chosen rows. It names their states, as ended tasks match only by name; all of them, if the state of one
// is not known because its row has left the list.
export function ofChosen(tasks: TaskSummary[], ids: ReadonlySet<string>): TaskFilter {
  const found = tasks.filter((t) => ids.has(t.id));
  const states = found.length < ids.size ? [...STATES] : STATES.filter((s) => found.some((t) => t.state === s));
  return { ...NO_FILTER, states, ids: [...ids] };
}

// Why a task has stopped, or is undone, in as few words as a row has room for. Earlier servers do not tell.
export function faultOf(task: TaskSummary): { text: string; whole: string } | null {
  const { error, cause } = task;
  if (!["error", "compensating", "compensated"].includes(task.state) || !(error ?? cause)) return null;
  const said = [cause, error?.code === cause?.code ? null : error].filter((f) => f !== null && f !== undefined);
  const step = cause?.step ? `${cause.step}: ` : "";
  return {
    text: step + said.map((f) => f.code).join(", then "),
    whole: step + said.map((f) => (f.message ? `${f.code}: ${f.message}` : f.code)).join(", then "),
  };
}

const IDS = 100; // in one question
const IDS_SIZE = 4000; // so that its address stays shorter than servers take

// The ids, in parts for one question each.
export function partsOf(ids: string[]): string[][] {
  const parts: string[][] = [];
  let size = IDS_SIZE;
  for (const id of ids) {
    const more = encodeURIComponent(id).length + 3; // its comma is %2C
    if (size + more > IDS_SIZE || (parts.at(-1)?.length ?? 0) === IDS) {
      parts.push([]);
      size = 0;
    }
    parts.at(-1)?.push(id);
    size += more;
  }
  return parts;
}

export function withPage(rows: Rows, page: { tasks: TaskSummary[]; next: string | null }): Rows {
  const known = new Set(rows.tasks.map((t) => t.id));
  return { ...rows, tasks: [...rows.tasks, ...page.tasks.filter((t) => !known.has(t.id))], next: page.next };
}
