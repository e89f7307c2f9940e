// An alert in a list.
import type { Alert } from "../../api/types.ts";
import { Age, Id, Text } from "../../ui/basics.tsx";
import { capital, count } from "../../ui/format.ts";
import { StateSign } from "../../ui/icons.tsx";

// Conditions that need a look, and not at once.
export const CALM = new Set(["approval_waiting", "token_expires", "schedule_gap", "submission_refused"]);

export const alertSign = (alert: Alert) =>
  alert.state === "resolved" ? "processed" : alert.state === "acknowledged" ? "acknowledged" : CALM.has(alert.condition) ? "doubt" : "error";

// Those that cannot wait, and of these the ones of most tasks.
export const worstFirst = (alerts: Alert[]) =>
  [...alerts].sort((a, b) => Number(CALM.has(a.condition)) - Number(CALM.has(b.condition)) || b.count - a.count);

export function AlertRow({ alert }: { alert: Alert }) {
  return (
    <li class="row alert-row">
      <StateSign state={alertSign(alert)} />
      <div class="row-main">
        <a href={`/alerts?alert=${encodeURIComponent(alert.id)}`}><Text>{capital(alert.summary)}</Text></a>
        <div class="row-more">
          {!alert.summary.includes(`(${alert.count})`) && alert.count > 1 && <span>{count(alert.count)} now</span>}
          {alert.examples.slice(0, 3).map((id) => <Id key={id} id={id} {...(isTask(alert) ? { href: `/tasks/${encodeURIComponent(id)}` } : {})} />)}
        </div>
      </div>
      <span class="row-end muted"><Age at={alert.latest_at} /></span>
    </li>
  );
}

const OF_TASKS = new Set(["task_error", "compensation_failed", "overdue_no_agent", "approval_waiting", "breaker_open"]);
export const isTask = (alert: Alert) => OF_TASKS.has(alert.condition);
