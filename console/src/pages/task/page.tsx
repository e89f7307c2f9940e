// One task: why it does not go on and what would mend it, its steps as a graph and in time, and all that is on record.
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Problem, taskPath } from "../../api/client.ts";
import { useDefinition } from "../../api/definition.ts";
import { useResource } from "../../api/resource.ts";
import { streaming, useStream } from "../../api/stream.ts";
import type { Task, Why, Workflow } from "../../api/types.ts";
import { TaskAction } from "../../actions/task.tsx";
import { isOffered, VERBS, type Arguments, type VerbName } from "../../actions/verbs.ts";
import { announce } from "../../app/announce.ts";
import { useKeys } from "../../app/keys.ts";
import { navigate, path, query } from "../../app/router.ts";
import { can, session } from "../../app/session.ts";
import { Age, Copy, Empty, Failed, Length, Loading, Menu, Moment, Panel, State, Tags, Text } from "../../ui/basics.tsx";
import { InTurn } from "../../ui/in_turn.tsx";
import { plain } from "../../ui/visible.ts";
import { Graph, type Definition } from "./graph.tsx";
import { Records } from "./records.tsx";
import { StepPanel } from "./step.tsx";
import { TimelinePanel } from "./timeline.tsx";
import { WhyCard } from "./why.tsx";

const LOOK_AGAIN = 10_000; // while there is no stream
const LARGE = 100; // steps: with more, one part of the page is drawn after the other
const WHY_APART = 1000; // a task that changes all the time is not asked why each time

export default function TaskOnePage({ id }: { id: string }) {
  const [openedAt] = useState(() => Date.now());
  const record = useResource<Task>(taskPath(id), 0);
  const task = record.data;
  const why = useResource<Why>(task ? `${taskPath(id)}/why` : null, 15_000);
  // The stream of a task that has ended is over: one that is undone afterwards gets another.
  const hasEnded = task?.state === "processed" || task?.state === "compensated";
  useStream(task && !hasEnded ? `${taskPath(id)}/events` : null, {
    onOpen: () => why.reload(),
    onRefused: () => record.reload(),
    latestOnly: "task",
    on: { task: (data) => record.replace(data as Task), progress: (data) => beat(data as Beat), end: () => why.reload() },
  });
  const isLive = streaming.value === "open";
  useEffect(() => {
    if (isLive) return;
    const timer = setInterval(() => { if (!document.hidden) record.reload(); }, LOOK_AGAIN);
    return () => clearInterval(timer);
  }, [id, isLive]);
  const beat = (b: Beat) => {
    if (!record.data) return;
    record.replace({
      ...record.data,
      steps: record.data.steps.map((s) => (s.name !== b.step ? s : {
        ...s, attempts: s.attempts.map((a) => (a.attempt === b.attempt && a.direction === b.direction ? { ...a, heartbeat_at: b.at, progress: b.progress, message: b.message ?? null } : a)),
      })) as Task["steps"],
    });
  };
  const stamp = task && [task.state, task.direction, task.paused_at, task.closed_at, ...task.steps.map((s) => s.state + s.attempts.length + (s.wait_until ?? ""))].join();
  const askedAt = useRef(0);
  useEffect(() => {
    if (!stamp) return;
    const timer = setTimeout(() => { askedAt.current = Date.now(); why.reload(); }, Math.max(0, askedAt.current + WHY_APART - Date.now()));
    return () => clearTimeout(timer);
  }, [stamp]);
  useEffect(() => { if (task) announce(`Task ${id} is ${task.state}`); }, [task?.state]);
  if (!task) {
    if (record.problem?.status === 410) return <Deleted problem={record.problem} id={id} />;
    if (record.problem?.status === 404) return <Empty isPage title={`There is no task ${plain(id)}`} icon="search">Check the id, or look among <a href={`/tasks?${new URLSearchParams({ id_prefix: id })}`}>those whose ids begin so</a>. A task of another token is shown only to those who may read it.</Empty>;
    return record.problem ? <Failed problem={record.problem} retry={record.reload} /> : <Loading rows={10} />;
  }
  return <Shown task={task} isRead={record.at >= openedAt} why={why} onRecord={(t) => { record.replace(t); why.reload(); }} onReload={() => { record.reload(); why.reload(); }} />;
}

// What a click shows may be below the window: enough of it is brought up to be read.
function bringStepIntoView() {
  const top = document.getElementById("step")?.getBoundingClientRect().top ?? 0;
  const missing = top - (innerHeight - 280);
  if (missing > 0) scrollBy({ top: missing, behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
}

interface Beat {
  step: string;
  direction: string;
  attempt: number;
  at: string;
  progress: unknown;
  message?: string | null;
}

function Deleted({ problem, id }: { problem: Problem; id: string }) {
  return (
    <Empty isPage title={`Task ${plain(id)} was deleted`} icon="clock">
      <Text>{problem.detail}</Text> It was of workflow {String(problem.body["workflow"])}, and ended as {String(problem.body["state"])}.
    </Empty>
  );
}

// The step that is worth looking at first.
export function firstStep(task: Task): string | null {
  const by = (test: (s: Task["steps"][number]) => boolean) => task.steps.find(test)?.name;
  return by((s) => s.state === "failed" && task.state === "error") ?? by((s) => s.in_doubt) ?? by((s) => s.state === "running" || s.state === "undoing")
    ?? by((s) => s.error !== null) ?? by((s) => s.state === "waiting") ?? task.steps.at(-1)?.name ?? null;
}

function Shown({ task, isRead, why, onRecord, onReload }: {
  task: Task; isRead: boolean /* since the page was opened */; why: ReturnType<typeof useResource<Why>>; onRecord: (t: Task) => void; onReload: () => void;
}) {
  const [action, setAction] = useState<{ verb: VerbName; given: Arguments } | null>(null);
  const workflow = useResource<Workflow>(`/v1/workflows/${encodeURIComponent(task.workflow)}/versions/${task.version}`);
  const found: Definition | null | undefined = useDefinition(workflow.data);
  const definition = found ?? undefined;
  const hasChildren = task.steps.some((s) => s.kind === "task" || s.workflow) || definition?.steps?.some((s) => s.task) === true;
  const isKnown = found !== undefined || workflow.problem !== undefined; // without it the graph would be drawn twice
  const chosenFirst = useRef<string | null>(null);
  if (isRead) chosenFirst.current ??= firstStep(task);
  const atFirst = chosenFirst.current ?? firstStep(task);
  const wanted = query.value.get("step");
  const step = wanted && task.steps.some((s) => s.name === wanted.split(".")[0]) ? wanted : atFirst;
  const choose = useCallback((name: string) => {
    navigate(`${path.value}?step=${encodeURIComponent(name)}`, { replace: true });
    requestAnimationFrame(bringStepIntoView);
  }, []);
  const act = (verb: VerbName, given: Arguments) => setAction({ verb, given });
  useKeys({ r: onReload });
  const chosen = useMemo(() => task.steps.flatMap((s) => [s, ...(s.items?.at_work ?? [])]).find((s) => s.name === step), [task, step]);
  return (
    <div class="page task-page">
      <nav class="crumbs" aria-label="Path">
        <a href="/tasks">Tasks</a>
        {task.root && task.root !== task.parent && <a href={`/tasks/${encodeURIComponent(task.root)}`}>{plain(task.root)}</a>}
        {task.parent && <a href={`/tasks/${encodeURIComponent(task.parent)}`}>{plain(task.parent)}</a>}
      </nav>
      <header class="page-head task-head-line">
        <h1 class="id" title={task.id}>{plain(task.id)}</h1>
        <Copy text={task.id} label="Copy the id" />
        <State state={task.state} note={task.closed_at ? "closed" : task.paused_at ? "paused" : undefined} />
        <Verbs task={task} onAct={act} />
      </header>
      <Facts task={task} />
      <WhyCard why={why} task={task} onAct={act} onChanged={onReload} />
      <div class="task-columns">
        {isKnown ? <Graph task={task} definition={definition} step={step} onStep={choose} /> : <Panel title="Steps" class="graph-panel"><div class="graph-space-free" /></Panel>}
        <InTurn isLarge={task.steps.length > LARGE}>
          <TimelinePanel key="timeline" task={task} step={step} onStep={choose} />
          {chosen && <StepPanel key="step" task={task} step={chosen} onAct={act} />}
          <Records key="records" task={task} definition={workflow.data} hasChildren={hasChildren} />
        </InTurn>
      </div>
      {action && (
        <TaskAction verb={action.verb} given={action.given} task={task} onClose={() => setAction(null)}
          onDone={(t) => { setAction(null); onRecord(t); }} />
      )}
    </div>
  );
}

function Facts({ task }: { task: Task }) {
  return (
    <dl class="facts-line">
      <div><dt>workflow</dt><dd><a href={`/workflows/${encodeURIComponent(task.workflow)}?version=${task.version}`}>{task.workflow}</a> <span class="muted">v{task.version}</span></dd></div>
      <div><dt>submitted</dt><dd><Moment at={task.submitted_at} />{task.owner && <span class="muted"> by <Text>{task.owner}</Text></span>}</dd></div>
      <div><dt>{task.state === "error" ? "ran for" : task.ended_at ? "took" : "runs for"}</dt><dd><Length from={task.submitted_at} to={task.ended_at} /></dd></div>
      {task.complete_by && <div><dt>complete by</dt><dd><Age at={task.complete_by} /></dd></div>}
      {task.not_before && <div><dt>not before</dt><dd><Moment at={task.not_before} /></dd></div>}
      {task.state === "error" && task.direction === "undo" && <div><dt>stopped</dt><dd>on the way back</dd></div>}
      {task.lock && <div><dt>lock</dt><dd><Text>{task.lock}</Text></dd></div>}
      {task.tags && Object.keys(task.tags).length > 0 && <div><dt>tags</dt><dd><Tags tags={task.tags} hrefOf={(k, v) => `/tasks?${new URLSearchParams({ [`tag.${k}`]: v })}`} /></dd></div>}
    </dl>
  );
}

// The verbs for the whole task. Those for a step are beside the step.
function Verbs({ task, onAct }: { task: Task; onAct: (verb: VerbName, given: Arguments) => void }) {
  const isOwner = task.owner !== null && session.value?.name === task.owner;
  const offered = VERBS.filter((v) => v.step !== "must" && v.name !== "correct" && isOffered(v.name, task) && (v.name === "cancel" ? isOwner && !can("repair") : can("repair")));
  if (offered.length === 0) return null;
  const entries = offered.map((v) => ({ label: `${v.label}…`, hint: v.hint, isFinal: v.isFinal, act: () => onAct(v.name, {}) }));
  if (can("repair") && isOffered("correct", task)) entries.push({ label: "Correct the task's input…", hint: "Its own input is wrong", isFinal: false, act: () => onAct("correct", {}) });
  return <div class="page-actions"><Menu label="Actions" entries={entries} /></div>;
}
