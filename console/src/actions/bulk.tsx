// One verb for every task of a filter: choose it, see by a dry run how many tasks it concerns and why some would refuse,
// give a reason, start. Then the page of the operation shows its progress.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { call, Problem } from "../api/client.ts";
import type { DryRun, Operation } from "../api/types.ts";
import { navigate } from "../app/router.ts";
import { Button, Id, Text } from "../ui/basics.tsx";
import { CommandLine, Dialog, Field, JsonInput, readJson } from "../ui/dialog.tsx";
import { parts, toFlags, toOperation, type TaskFilter } from "../ui/filter.ts";
import { count, plural } from "../ui/format.ts";
import { Icon } from "../ui/icons.tsx";
import { commandLine } from "../ui/shell.ts";
import { plain } from "../ui/visible.ts";
import { argumentFlags, isUnread, SIGNAL, VERBS, type Arguments, type Verb, type VerbName } from "./verbs.ts";

const CHOICES: (Verb | typeof SIGNAL)[] = [...VERBS, SIGNAL];
const MANY = 100; // above it, the number has to be typed
const RATE = /^[1-9]\d{0,5}\/s$/;

function firstVerb(filter: TaskFilter): VerbName {
  if (filter.paused) return "resume";
  if (filter.closed) return "reopen";
  return filter.states.length === 0 || filter.states.some((s) => s === "error") ? "retry" : filter.states.includes("processed") ? "undo" : "pause";
}

const unreadOf = (dry: DryRun) => Object.entries(dry.refused).reduce((sum, [why, n]) => sum + (isUnread(why) ? n : 0), 0);

// For how many tasks it may be done.
export const atMost = (dry: DryRun) => dry.possible + unreadOf(dry);

export function Bulk({ filter, onClose }: { filter: TaskFilter; onClose: () => void }) {
  const now = useMemo(() => Date.now(), []);
  const [name, setName] = useState<VerbName | "signal">(firstVerb(filter));
  const verb = CHOICES.find((v) => v.name === name) as (typeof CHOICES)[number];
  const isFinal = "isFinal" in verb && verb.isFinal;
  const [signal, setSignal] = useState("");
  const [step, setStep] = useState("");
  const [from, setFrom] = useState("");
  const [text, setText] = useState("");
  const [limit, setLimit] = useState("");
  const [rate, setRate] = useState("");
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [dry, setDry] = useState<DryRun | Problem | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isTried, setTried] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);

  const value = verb.value && !(verb.value === "output?" && text.trim() === "") ? readJson(text) : undefined;
  const args: Arguments & { name?: string; data?: unknown } = {};
  if (step && verb.step !== "no") args.step = step;
  if (from && !step && name === "retry") args.from = from;
  if (value && "value" in value) args[verb.value === "output?" ? "output" : (verb.value as "input" | "output" | "data")] = value.value;
  if (name === "resolve") args.effect = "none";
  if (name === "signal") args.name = signal;
  const isWhole = (!value || "value" in value) && (verb.step !== "must" || step !== "") && (name !== "signal" || signal !== "");
  const body = {
    verb: name, filter: toOperation(filter, now), arguments: args,
    ...(limit ? { limit: Number(limit) } : {}), ...(rate ? { rate } : {}),
  };
  const asked = JSON.stringify(body);
  const latest = useRef(asked);
  latest.current = asked;
  const isRateGood = rate === "" || RATE.test(rate);
  useEffect(() => {
    setDry(null);
    setTyped("");
    if (!isWhole || !isRateGood) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      dryRun(body, stop.signal)
        .then(setDry, (cause) => { if (!stop.signal.aborted) setDry(cause as Problem); });
    }, 300);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [asked, isWhole]);

  const run = dry && !(dry instanceof Problem) ? dry : null;
  const number = run ? atMost(run) : 0;
  const mustType = run !== null && (number > MANY || !run.complete);
  const isConfirmed = !mustType || typed.replaceAll(/\D/g, "") === String(number);
  const start = async () => {
    setTried(true);
    if (!isWhole || !isRateGood || reason.trim() === "" || !isConfirmed || !run) return;
    setBusy(true);
    setProblem(null);
    try {
      // What was counted may be old. An incomplete count says "at least": that it grows is no news.
      const again = run.complete ? await dryRun(body) : run;
      if (latest.current !== asked) return setBusy(false);
      if (atMost(again) > number || again.complete !== run.complete) {
        setDry(again);
        setTyped("");
        setProblem(`Nothing was started: it would be done for more tasks than were shown, ${count(atMost(again))} instead of ${count(number)}. Look at the new numbers, then start it again.`);
        return setBusy(false);
      }
      const operation = await call<Operation>("/v1/operations", { method: "POST", body: { ...body, reason: reason.trim() } });
      navigate(`/operations/${encodeURIComponent(operation.id)}`);
      onClose();
    } catch (cause) {
      setProblem((cause as Problem).message);
      setBusy(false);
    }
  };
  const what = [filter.states.length > 0 ? filter.states.join(" or ") : "", ...parts(filter).map((p) => p.text)].filter(Boolean);
  return (
    <Dialog
      wide title="Operate on many tasks" onClose={onClose} onSubmit={start}
      foot={<>
        <Button onClick={onClose}>Cancel</Button>
        <Button kind={isFinal ? "danger" : "primary"} type="submit" isBusy={isBusy} disabled={number === 0 || !isConfirmed}>
          {run ? `${verb.label}: ${number > run.possible ? "up to " : ""}${plural(number, "task")}` : verb.label}
        </Button>
      </>}
    >
      <p class="says">Tasks: {what.length > 0 ? <b>{plain(what.join(", "))}</b> : <b>all that have not ended</b>}</p>
      <Field label="Verb">{(id) => (
        <select id={id} value={name} onChange={(e) => setName(e.currentTarget.value as VerbName | "signal")}>
          {CHOICES.map((v) => <option key={v.name} value={v.name}>{`${v.label}: ${v.hint.toLowerCase()}`}</option>)}
        </select>
      )}</Field>
      <p class="says">{plain(verb.says({ task: null, step: step || undefined, from: args.from }))}</p>
      <div class={name === "retry" ? "field-pair" : "fields"}>
      {verb.step !== "no" && (
        <Field label={verb.step === "must" ? "Step" : "Only the step"} problem={isTried && verb.step === "must" && !step ? "Name the step." : null}>{(id, described) => (
          <input id={id} value={step} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setStep(e.currentTarget.value.trim())} />
        )}</Field>
      )}
      {name === "retry" && !step && <Field label="Restart from step" hint="Leave empty to retry only what failed.">{(id, described) => (
        <input id={id} value={from} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setFrom(e.currentTarget.value.trim())} />
      )}</Field>}
      </div>
      {name === "signal" && <Field label="Name of the signal" problem={isTried && !signal ? "Name the signal." : null}>{(id, described) => (
        <input id={id} value={signal} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setSignal(e.currentTarget.value.trim())} />
      )}</Field>}
      {verb.value && <Field label={`${{ input: "Input", data: "Value", output: "Output", "output?": "Output, if later steps need one" }[verb.value]} (JSON), the same for all`} problem={value && "mistake" in value && isTried ? value.mistake : null}>
        {(id, described) => <JsonInput id={id} value={text} onValue={setText} described={described} rows={4} />}
      </Field>}
      <div class="field-pair">
        <Field label="At most" hint="Tasks, the newest first.">{(id, described) => <input id={id} type="number" min={1} value={limit} aria-describedby={described} onInput={(e) => setLimit(e.currentTarget.value)} />}</Field>
        <Field label="Rate" hint="Spares a service that has just recovered." problem={isRateGood ? null : "Tasks a second, up to 100000/s: 50/s"}>{(id, described) => (
          <input id={id} value={rate} placeholder="50/s" aria-describedby={described} onInput={(e) => setRate(e.currentTarget.value.trim())} />
        )}</Field>
      </div>
      <DryResult dry={dry} isWhole={isWhole} />
      <Field label="Reason" hint="Kept in the audit of each task." problem={isTried && reason.trim() === "" ? "Say why: the audit keeps it." : null}>{(id, described) => (
        <input id={id} value={reason} maxLength={1000} autocomplete="off" aria-describedby={described} onInput={(e) => setReason(e.currentTarget.value)} />
      )}</Field>
      {mustType && run && (
        <Field label={`Type ${count(number)} to confirm the number of tasks`}>{(id) => (
          <input id={id} inputMode="numeric" autocomplete="off" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} />
        )}</Field>
      )}
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <CommandLine line={commandLine([
        ...(name === "signal" ? ["operation", "start", "signal", ...(toFlags(filter, now).length === 0 ? ["--all"] : [])] : [name, "--all"]), ...toFlags(filter, now), ...flagsOf(name, args), ["--limit", limit || undefined], ["--rate", rate || undefined],
        ["--reason", reason.trim() || "..."],
      ])} />
    </Dialog>
  );
}

function dryRun(body: object, signal?: AbortSignal): Promise<DryRun> {
  return call<DryRun>("/v1/operations", { method: "POST", body: { ...body, reason: "dry run", dry_run: true }, ...(signal ? { signal } : {}) });
}

function flagsOf(name: VerbName | "signal", args: Arguments & { name?: string; data?: unknown }): [string, string | undefined][] {
  if (name !== "signal") return argumentFlags(name, args);
  return [["--name", args.name || "..."], ["--data", args.data === undefined ? undefined : JSON.stringify(args.data)]];
}

function DryResult({ dry, isWhole }: { dry: DryRun | Problem | null; isWhole: boolean }) {
  if (!isWhole) return <div class="dry" role="status"><p class="muted">Fill in the fields above to see what would happen.</p></div>;
  if (!dry) return <div class="dry" role="status"><p class="muted">Counting…</p></div>;
  if (dry instanceof Problem) return <div class="dry" role="status"><p class="note error"><Icon name="warning" /><Text>{dry.message}</Text></p></div>;
  const refused = Object.entries(dry.refused).filter(([why]) => !isUnread(why));
  const unread = unreadOf(dry);
  return (
    <div class="dry" role="status">
      <p><b>{dry.complete ? "" : "At least "}{plural(dry.matched, "task matches", "tasks match")}.</b> It would be done for {count(dry.possible)}{refused.length > 0 ? ", and refused for" : "."}</p>
      {refused.length > 0 && <ul class="refusals">{refused.map(([why, n]) => <li key={why}><b>{count(n)}</b> <Text>{why}</Text></li>)}</ul>}
      {unread > 0 && <p>Not known beforehand for {count(unread)}: the item has ended or not begun, and a dry run does not read it.</p>}
      {dry.ids.length > 0 && <p class="examples">{dry.matched > dry.ids.length ? "Newest: " : ""}{dry.ids.slice(0, 8).map((id) => <Id key={id} id={id} />)}</p>}
    </div>
  );
}
