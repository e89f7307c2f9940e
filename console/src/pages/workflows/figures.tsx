// How the tasks of a workflow do, told from the newest ones: the API has no sums by workflow or step.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, Problem, taskPath, withQuery } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Task, TaskPage, TaskSummary } from "../../api/types.ts";
import { Button, Empty, Panel, Shown, State } from "../../ui/basics.tsx";
import { count, duration, plural } from "../../ui/format.ts";
import { ends, percent, sorted, stepFigures, type By, type StepFigures } from "./model.ts";

const SAMPLE = 40; // records that are read for figures of steps
const AT_ONCE = 4;
const AGAIN = 30_000; // ms: the newest tasks are read again so often, records only of those that have changed

export interface Figures {
  page: ReturnType<typeof useResource<TaskPage>>;
  steps: StepFigures[];
  read: number; // records
  of: number;
  problem: Problem | null;
  more: () => void;
}

// A task that has stopped. If it is undone or retried, and stops again, its record is another one.
const stampOf = (t: TaskSummary) => `${t.id} ${t.state} ${t.ended_at}`;

export function useFigures(workflow: string, version: number | null): Figures {
  const page = useResource<TaskPage>(withQuery("/v1/tasks", { workflow, version, children: true, limit: 500 }), AGAIN);
  const [sample, setSample] = useState(SAMPLE);
  const [records, setRecords] = useState<Task[]>([]);
  const [problem, setProblem] = useState<Problem | null>(null);
  const known = useRef(new Map<string, Task>());
  const stopped = useMemo(() => (page.data?.tasks ?? []).filter((t) => t.started_at && !["pending", "processing"].includes(t.state)), [page.data]);
  const wanted = stopped.slice(0, sample);
  useEffect(() => {
    const stop = new AbortController();
    const found = new Map<string, Task>();
    let next = 0;
    const worker = async () => {
      while (next < wanted.length && !stop.signal.aborted) {
        const summary = wanted[next++] as TaskSummary;
        const stamp = stampOf(summary);
        try {
          const record = known.current.get(stamp) ?? await call<Task>(taskPath(summary.id), { signal: stop.signal });
          known.current.set(stamp, record); // at once: newer tasks may begin this anew
          found.set(stamp, record);
        } catch (cause) {
          if (stop.signal.aborted) return;
          if (cause instanceof Problem && [404, 410].includes(cause.status)) continue; // deleted meanwhile
          setProblem(cause as Problem);
          stop.abort();
        }
      }
    };
    setProblem(null);
    void Promise.all(Array.from({ length: AT_ONCE }, worker)).then(() => {
      if (stop.signal.aborted) return;
      known.current = found;
      setRecords([...found.values()]);
    });
    return () => stop.abort();
  }, [wanted.map(stampOf).join()]);
  const steps = useMemo(() => stepFigures(records), [records]);
  return { page, steps, read: records.length, of: stopped.length, problem, more: () => setSample((n) => n * 5) };
}

export function FiguresPanel({ workflow, figures, onStep }: { workflow: string; figures: Figures; onStep: (name: string) => void }) {
  const [by, setBy] = useState<By>("slow");
  return (
    <Panel title="How its tasks do">
      <Shown of={figures.page}>{(page) => {
        if (page.tasks.length === 0) return <Empty title="No task of this workflow yet" icon="tasks" />;
        const e = ends(page.tasks);
        const ended = e.states.filter(({ state }) => ["processed", "compensated", "error"].includes(state)).reduce((sum, { n }) => sum + n, 0);
        return (
          <div class="figures">
            <div class="bar" aria-hidden="true">{e.states.map(({ state, n }) => <i key={state} class={`s-${state}`} style={{ flexGrow: n }} />)}</div>
            <dl class="shares">
              {e.states.map(({ state, n }) => (
                <div key={state}>
                  <dt><State state={state} /></dt>
                  <dd><a href={`/tasks?workflow=${workflow}&state=${state}`}>{count(n)}</a> <span class="muted">{["processed", "compensated", "error"].includes(state) && percent(n, ended)}</span></dd>
                </div>
              ))}
              {e.half !== null && <div><dt class="muted">Took</dt><dd>{duration(e.half)} <span class="muted">95 % within {duration(e.most as number)}</span></dd></div>}
            </dl>
            <p class="muted">{page.next ? `The newest ${count(e.total)} tasks` : plural(e.total, "task")}, with children. The shares are of those that have stopped.</p>
            <Steps figures={figures} by={by} onBy={setBy} onStep={onStep} />
          </div>
        );
      }}</Shown>
    </Panel>
  );
}

function Steps({ figures, by, onBy, onStep }: { figures: Figures; by: By; onBy: (by: By) => void; onStep: (name: string) => void }) {
  if (figures.problem) return <p class="note warning" role="alert">{figures.problem.message}</p>;
  if (figures.of === 0) return null;
  if (figures.read === 0) return <p class="muted" role="status">Reading the records of its newest tasks…</p>;
  const longest = Math.max(1, ...figures.steps.map((s) => s.half ?? 0));
  const rows = sorted(figures.steps.filter((s) => s.tasks > 0), by);
  return (
    <>
      <div class="switches" role="group" aria-label="Order of the steps">
        <button type="button" class="switch" aria-pressed={by === "slow"} onClick={() => onBy("slow")}>Slowest first</button>
        <button type="button" class="switch" aria-pressed={by === "failing"} onClick={() => onBy("failing")}>Most failing first</button>
      </div>
      <div class="table-wrap"><table class="table stacks">
        <thead><tr><th>Step</th><th>Typically takes</th><th class="number">95 % within</th><th class="number">Attempts that fail</th><th class="number">Failed for good</th><th>Errors</th></tr></thead>
        <tbody>{rows.slice(0, 30).map((s) => (
          <tr key={s.name}>
            <td><button type="button" class="link" onClick={() => onStep(s.name)}>{s.name}</button>{s.agent && <span class="muted"> {s.agent}</span>}</td>
            <td data-label="Typically">{s.half === null ? <span class="none">–</span> : <span class="measure"><i style={{ width: `${Math.max(2, (100 * s.half) / longest)}px` }} />{duration(s.half)}</span>}</td>
            <td data-label="95 % within" class="number">{s.most === null ? "–" : duration(s.most)}</td>
            <td data-label="Attempts that fail" class="number">{s.failures > 0 ? <b class="s-error told">{percent(s.failures, s.attempts)}</b> : "0 %"} <span class="muted">of {count(s.attempts)}</span></td>
            <td data-label="Failed for good" class="number">{s.failed > 0 ? <b class="s-error told">{count(s.failed)}</b> : "0"} <span class="muted">of {plural(s.tasks, "task")}</span></td>
            <td data-label="Errors" class="wide-cell">{s.codes.slice(0, 4).map(([code, n]) => <span class="tag" key={code}><span class="tag-key">{count(n)}</span>{code}</span>)}</td>
          </tr>
        ))}</tbody>
      </table></div>
      <p class="muted">From the records of the newest {plural(figures.read, "task")} that stopped{rows.length > 30 && `; 30 of ${count(rows.length)} steps`}. {figures.read < figures.of && <Button kind="quiet" onClick={figures.more}>Read more</Button>}</p>
    </>
  );
}
