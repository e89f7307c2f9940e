// The form of a verb for one task. It says what will happen, asks the server by a dry run whether it is possible now, and
// shows the command line that does the same.
import { useEffect, useMemo, useState } from "preact/hooks";
import { call, Problem, taskPath, withQuery } from "../api/client.ts";
import type { DryRun, ItemPage, Step, Task } from "../api/types.ts";
import { announce } from "../app/announce.ts";
import { can } from "../app/session.ts";
import { Button, Text } from "../ui/basics.tsx";
import { CommandLine, Dialog, Field, JsonInput, readJson } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { visibleJson } from "../ui/visible.ts";
import { isUnread, requestBody, stepsFor, stepsOf, taskCommand, verb as verbNamed, type Arguments, type VerbName } from "./verbs.ts";

interface Props {
  verb: VerbName;
  task: Task;
  given?: Arguments;
  onClose: () => void;
  onDone: (task: Task) => void;
}

const show = (value: unknown) => (value === undefined || value === null ? "" : visibleJson(value));

function valueBefore(name: VerbName, task: Task, step: Step | undefined): string {
  if (name === "correct") return show(step ? step.input : task.input);
  return name === "supply" ? "{}" : "";
}

type Possible = { kind: "asking" } | { kind: "yes" } | { kind: "no"; why: string } | { kind: "unread" } | { kind: "failed"; why: string } | { kind: "unknown" };

// Whether the server has said no, or could not be asked.
const isRefusal = (cause: unknown) => cause instanceof Problem && [400, 404, 409, 410, 413, 422].includes(cause.status);

// A dry run of an operation on this task alone: the API has none for single tasks.
function usePossible(name: VerbName, task: Task, given: Arguments | null): Possible {
  const [found, setFound] = useState<Possible>({ kind: "unknown" });
  const text = JSON.stringify(given);
  useEffect(() => {
    if (!given || !can("repair")) return setFound({ kind: "unknown" });
    const { attempt: _, ...args } = given;
    const stop = new AbortController();
    setFound({ kind: "asking" });
    const timer = setTimeout(async () => {
      try {
        const answer = await call<DryRun>("/v1/operations", {
          method: "POST", signal: stop.signal,
          body: {
            verb: name, dry_run: true, reason: "dry run", filter: { ids: [task.id], state: [task.state] },
            arguments: name === "resolve" ? { ...args, effect: "none" } : args,
          },
        });
        const why = Object.keys(answer.refused)[0];
        if (answer.possible > 0) setFound({ kind: "yes" });
        else setFound(why && isUnread(why) ? { kind: "unread" } : { kind: "no", why: why ?? "the task has changed meanwhile" });
      } catch (cause) {
        if (!stop.signal.aborted) setFound({ kind: isRefusal(cause) ? "no" : "failed", why: (cause as Error).message });
      }
    }, 250);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [name, task.id, task.state, text]);
  return found;
}

const lastOf = (task: Task, step: string) => stepsOf(task).find((s) => s.name === step)?.attempts.at(-1)?.attempt;

interface Looked {
  attempt: number | undefined;
  isKnown: boolean; // whether the step's record was read: not every step has attempts
  choose: (step: string) => void;
  problem: string | null;
}

// The attempt that one has looked at: the last one when the step was chosen, whatever happens to the task meanwhile. The
// record of the task does not have items at rest: they are read.
function useLooked(isWanted: boolean, task: Task, given: Arguments, step: string): Looked {
  const look = (name: string) => ({
    attempt: (name === given.step ? given.attempt : undefined) ?? lastOf(task, name), isKnown: stepsOf(task).some((s) => s.name === name),
  });
  const [looked, setLooked] = useState(() => look(step));
  const [problem, setProblem] = useState<string | null>(null);
  const isKnown = looked.isKnown || looked.attempt !== undefined;
  useEffect(() => {
    setProblem(null);
    const [, of, number] = /^(.+)\.(\d+)$/.exec(step) ?? [];
    if (!isWanted || isKnown || of === undefined) return;
    const stop = new AbortController();
    // The cursor of a page of items is the number of its first item.
    const path = withQuery(`${taskPath(task.id)}/items`, { step: of, limit: 1, cursor: number === "0" ? null : number });
    call<ItemPage>(path, { signal: stop.signal }).then(
      ({ items }) => {
        const attempt = items.find((i) => i.item === Number(number))?.attempts.at(-1)?.attempt;
        if (attempt === undefined) setProblem(`${step} has no attempt.`);
        else setLooked({ attempt, isKnown: true });
      },
      (cause) => { if (!stop.signal.aborted) setProblem((cause as Error).message); },
    );
    return () => stop.abort();
  }, [isWanted, isKnown, task.id, step]);
  return { attempt: looked.attempt, isKnown, choose: (next) => setLooked(look(next)), problem };
}

export function TaskAction({ verb: name, task, given = {}, onClose, onDone }: Props) {
  const verb = verbNamed(name);
  if (!verb) throw new Error(`no verb ${name}`);
  const steps = useMemo(() => stepsOf(task), [task]);
  const fitting = stepsFor(name, task);
  const [step, setStep] = useState(given.step ?? (verb.step === "must" ? (fitting[0]?.name ?? "") : ""));
  const [from, setFrom] = useState(given.from ?? "");
  const chosen = steps.find((s) => s.name === step);
  const [text, setText] = useState(() => (given.input === undefined ? valueBefore(name, task, chosen) : show(given.input)));
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isTried, setTried] = useState(false);

  const value = verb.value && !(verb.value === "output?" && text.trim() === "") ? readJson(text) : undefined;
  const args: Arguments = {};
  if (step) args.step = step;
  if (from && name === "retry" && !step) args.from = from;
  if (value && "value" in value) args[verb.value === "input" ? "input" : "output"] = value.value;
  const looked = useLooked(name === "resolve", task, given, step);
  const attempt = name === "resolve" ? looked.attempt : undefined;
  if (attempt !== undefined) args.attempt = attempt;
  const isWhole = (!value || "value" in value) && (verb.step !== "must" || step !== "") && (name !== "resolve" || looked.isKnown);
  const possible = usePossible(name, task, isWhole ? args : null);

  const chooseStep = (next: string) => {
    setStep(next);
    looked.choose(next);
    if (name === "correct") setText(valueBefore(name, task, steps.find((s) => s.name === next)));
  };
  const send = async () => {
    setTried(true);
    if (!isWhole || reason.trim() === "") return;
    setBusy(true);
    setProblem(null);
    try {
      const record = await call<Task>(`${taskPath(task.id)}/${name}`, { method: "POST", body: requestBody(name, args, reason.trim()) });
      announce(`${verb.label}: done`);
      onDone(record);
    } catch (cause) {
      setProblem((cause as Problem).message);
      setBusy(false);
    }
  };
  const offered = fitting.length > 0 ? fitting : steps;
  const listed = chosen && !offered.includes(chosen) ? [...offered, chosen] : offered;
  return (
    <Dialog
      title={<>{verb.label} <span class="dialog-of">{task.id}</span></>} onClose={onClose} onSubmit={send}
      foot={<>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind={verb.isFinal ? "danger" : "primary"} type="submit" isBusy={isBusy}>{verb.label}</Button>
      </>}
    >
      <p class="says">{verb.says({ task, step: step || undefined, from: args.from })}</p>
      {verb.step !== "no" && (
        <Field label="Step">{(id) => (
          <select id={id} value={step} onChange={(e) => chooseStep(e.currentTarget.value)}>
            {verb.step === "may" && <option value="">{name === "correct" ? "The task's own input" : "All failed steps"}</option>}
            {listed.map((s) => <option key={s.name} value={s.name}>{`${s.name} (${s.in_doubt ? "in doubt" : s.state})`}</option>)}
            {step && !chosen && <option value={step}>{step}</option>}
          </select>
        )}</Field>
      )}
      {name === "retry" && !step && (
        <Field label="Restart from" hint="Leave empty to retry only what failed.">{(id, described) => (
          <select id={id} value={from} aria-describedby={described} onChange={(e) => setFrom(e.currentTarget.value)}>
            <option value="">–</option>
            {task.steps.map((s) => <option key={s.name} value={s.name}>{s.name}</option>)}
          </select>
        )}</Field>
      )}
      {verb.value && (
        <Field label={verb.value === "input" ? "Input (JSON)" : verb.value === "output" ? "Output (JSON)" : "Output (JSON), if later steps need one"}
          problem={value && "mistake" in value && (isTried || text.trim() !== "") ? value.mistake : null}>
          {(id, described) => <JsonInput id={id} value={text} onValue={setText} described={described} />}
        </Field>
      )}
      {attempt !== undefined && <p class="field-hint">Refused if an attempt later than {attempt} began meanwhile.</p>}
      {looked.problem && <p class="note error" role="alert"><Icon name="warning" /><span>It is not known which attempt of {step} was the last: <Text>{looked.problem}</Text></span></p>}
      <Field label="Reason" hint="Kept in the audit." problem={isTried && reason.trim() === "" ? "Say why: the audit keeps it." : null}>{(id, described) => (
        <input id={id} type="text" value={reason} maxLength={1000} autofocus autocomplete="off" aria-describedby={described} onInput={(e) => setReason(e.currentTarget.value)} />
      )}</Field>
      <p class={`possible ${possible.kind}`} role="status">
        {possible.kind === "yes" && <><Icon name="done" /> The server would accept this now.</>}
        {possible.kind === "no" && <><Icon name="warning" /> <span>The server would refuse this: <Text>{possible.why}</Text></span></>}
        {possible.kind === "unread" && <>Not known beforehand: the item has ended or not begun, and a dry run does not read it.</>}
        {possible.kind === "failed" && <><Icon name="warning" /> <span>Not known beforehand, as the server could not be asked: <Text>{possible.why}</Text></span></>}
        {possible.kind === "asking" && <>Asking the server…</>}
      </p>
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <CommandLine line={taskCommand(name, task.id, args, reason.trim())} />
    </Dialog>
  );
}

