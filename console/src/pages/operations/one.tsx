// One operation: its progress, what was refused and why, and stop or continue.
import { useState } from "preact/hooks";
import { call, Problem } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { Operation } from "../../api/types.ts";
import { announce } from "../../app/announce.ts";
import { useKeys } from "../../app/keys.ts";
import { can } from "../../app/session.ts";
import { Button, Length, Moment, Panel, Shown, Text } from "../../ui/basics.tsx";
import { CommandLine, Dialog, Field } from "../../ui/dialog.tsx";
import { fromOperation, parts, toQuery, unknownTexts } from "../../ui/filter.ts";
import { count } from "../../ui/format.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { Json } from "../../ui/json.tsx";
import { commandLine } from "../../ui/shell.ts";
import { plain } from "../../ui/visible.ts";
import { refusedOf, stateOf } from "./page.tsx";

export default function OperationOnePage({ id }: { id: string }) {
  const path = `/v1/operations/${encodeURIComponent(id)}`;
  const [isRunning, setRunning] = useState(true);
  const operation = useResource<Operation>(path, isRunning ? 1000 : 15_000);
  const [asks, setAsks] = useState<"stop" | "continue" | null>(null);
  useKeys({ r: operation.reload });
  const state = operation.data?.state;
  if (state && (state === "running") !== isRunning) setRunning(state === "running");
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/operations">Operations</a></nav>
      <Shown of={operation}>{(o) => (
        <>
          <header class="page-head">
            <h1>{o.verb} <span class="head-id id">{o.id}</span></h1>
            <span class={`state s-${stateOf(o)}`}><StateSign state={stateOf(o)} />{o.state}</span>
            <div class="page-actions">
              {can("repair") && o.state === "running" && <Button kind="danger" onClick={() => setAsks("stop")}>Stop…</Button>}
              {can("repair") && o.state === "stopped" && <Button kind="primary" onClick={() => setAsks("continue")}>Continue…</Button>}
            </div>
          </header>
          <Progress o={o} />
          <div class="columns">
            <Panel title="Asked">
              <dl class="facts">
                <div><dt>By</dt><dd><Text>{o.by}</Text></dd></div>
                <div><dt>Reason</dt><dd><Text>{o.reason}</Text></dd></div>
                <div><dt>Tasks</dt><dd><FilterText filter={o.filter} /> <a href={`/tasks?${toQuery(fromOperation(o.filter))}`}>those that match now</a></dd></div>
                <div><dt>Started</dt><dd><Moment at={o.started_at} /></dd></div>
                <div><dt>Took</dt><dd><Length from={o.started_at} to={o.ended_at} /></dd></div>
                {o.limit !== null && <div><dt>At most</dt><dd>{count(o.limit)}</dd></div>}
                {o.rate && <div><dt>Rate</dt><dd>{o.rate}</dd></div>}
              </dl>
              {Object.keys(o.arguments ?? {}).length > 0 && <Json value={o.arguments} name="the arguments" />}
            </Panel>
            <Panel title="Refused">
              {refusedOf(o) === 0 ? <p class="fine"><StateSign state="processed" /> No task refused.</p>
                : <ul class="refusals">{Object.entries(o.refused).map(([why, n]) => <li key={why}><b>{count(n)}</b> <Text>{why}</Text></li>)}</ul>}
            </Panel>
          </div>
          {asks && <Ask verb={asks} id={o.id} onClose={() => setAsks(null)} onDone={() => { setAsks(null); operation.reload(); }} />}
        </>
      )}</Shown>
    </div>
  );
}

function FilterText({ filter }: { filter: Operation["filter"] }) {
  const read = fromOperation(filter);
  const found = [...read.states, ...parts(read).map((p) => p.text), ...unknownTexts(read)];
  return found.length > 0 ? <>{found.map((text) => <span class="tag" key={text}>{plain(text)}</span>)}</> : <>all that have not ended</>;
}

function Progress({ o }: { o: Operation }) {
  const refused = refusedOf(o);
  const all = Math.max(1, o.done + refused + o.failed + o.gone);
  const parts = [["done", o.done, "s-processed"], ["refused", refused, "s-doubt"], ["failed", o.failed, "s-error"], ["gone", o.gone, "s-pending"]] as const;
  return (
    <section class="progress-panel" aria-label="Progress">
      <div class="bar" aria-hidden="true">{parts.map(([name, n, kind]) => n > 0 && <i key={name} class={kind} style={{ flexGrow: n / all }} />)}</div>
      <dl class="counts">
        <div><dt>matched</dt><dd>{count(o.matched)}</dd></div>
        {parts.map(([name, n, kind]) => <div key={name} class={n === 0 ? "zero" : ""}><dt class={n > 0 ? kind : ""}>{name}</dt><dd>{count(n)}</dd></div>)}
      </dl>
    </section>
  );
}

function Ask({ verb, id, onClose, onDone }: { verb: "stop" | "continue"; id: string; onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const send = async () => {
    if (reason.trim() === "") return setProblem("Say why: the audit keeps it.");
    try {
      await call(`/v1/operations/${encodeURIComponent(id)}/${verb}`, { method: "POST", body: { reason: reason.trim() } });
      announce(verb === "stop" ? "Stopped" : "Continued");
      onDone();
    } catch (cause) {
      setProblem((cause as Problem).message);
    }
  };
  return (
    <Dialog title={verb === "stop" ? "Stop the operation" : "Continue the operation"} onClose={onClose} onSubmit={send}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind={verb === "stop" ? "danger" : "primary"} type="submit">{verb === "stop" ? "Stop" : "Continue"}</Button></>}>
      <p class="says">{verb === "stop" ? "What was done stays done. The page of tasks at hand is completed." : "It goes on with the tasks that it has not reached."}</p>
      <Field label="Reason">{(fid) => <input id={fid} value={reason} autofocus autocomplete="off" maxLength={1000} onInput={(e) => setReason(e.currentTarget.value)} />}</Field>
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <CommandLine line={commandLine(["operation", verb, id, ["--reason", reason.trim() || "..."]])} />
    </Dialog>
  );
}
