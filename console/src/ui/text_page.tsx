// A page on which a stored text (a workflow, a schedule) is edited. A text that is not stored yet stays while the reader
// looks at other pages; before it is stored, the page shows how it differs.
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { call, Problem, type Options } from "../api/client.ts";
import { onForget } from "../api/resource.ts";
import type { Mistake } from "../api/types.ts";
import { announce } from "../app/announce.ts";
import { navigate } from "../app/router.ts";
import { Difference } from "../pages/workflows/versions.tsx";
import { Button, Text } from "./basics.tsx";
import { CommandLine, Dialog } from "./dialog.tsx";
import { Editor, type Completer } from "./editor.tsx";
import { Icon } from "./icons.tsx";
import { found, mistakesIn, type Found } from "./mistakes.ts";

const drafts = signal<Record<string, string>>({});
onForget(() => { drafts.value = {}; });

export type Format = "yaml" | "json";
export const typeOf = (format: Format) => (format === "yaml" ? "application/yaml" : "application/json");

// Whether a text is a definition, asked of the server a moment after it was changed.
export function useValidation(text: string, format: Format, isAsked: boolean): { mistakes: Found[]; problem: Problem | null; of: string | null } {
  const [state, setState] = useState<{ mistakes: Found[]; problem: Problem | null; of: string | null }>({ mistakes: [], problem: null, of: null });
  useEffect(() => {
    if (!isAsked) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const options: Options = { method: "POST", text: { type: typeOf(format), text }, signal: stop.signal };
      call<{ warnings: Mistake[] }>("/v1/validate", options).then(
        ({ warnings }) => setState({ mistakes: found([], warnings), problem: null, of: text }),
        (cause: Problem) => {
          if (stop.signal.aborted) return;
          const mistakes = cause instanceof Problem ? mistakesIn(cause.body) : null;
          setState((was) => (mistakes ? { mistakes, problem: null, of: text } : { ...was, problem: cause }));
        },
      );
    }, 250);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text, format, isAsked]);
  return state;
}

export interface Stored {
  name: string;
  version: number;
  href: string;
}

export function TextPage({ id, meanwhile, label, before, start: first, format, validates, complete, nameOf, store, command, says, children }: {
  id: string; // of the draft
  meanwhile?: string | null; // what others stored since it was opened
  label: string;
  before: string | null; // the newest stored text; null: there is none
  start: string; // what editing begins with
  format: Format;
  validates: boolean; // by POST /v1/validate while writing; otherwise mistakes are found when it is stored
  complete?: Completer;
  nameOf: (text: string) => string | null;
  store: (text: string) => Promise<Stored>;
  command: (name: string) => string;
  says: (name: string, isNew: boolean) => string;
  children?: (text: string) => ComponentChildren;
}) {
  const [start] = useState(first); // what another stores meanwhile changes nothing here
  const text = drafts.value[id] ?? start;
  const isChanged = text !== start || before === null;
  const setText = (next: string) => { drafts.value = { ...drafts.value, [id]: next }; };
  const [turn, setTurn] = useState(0);
  const drop = () => { setTurn((n) => n + 1); const { [id]: _, ...rest } = drafts.value; drafts.value = rest; };
  const asked = useValidation(text, format, validates);
  const [refused, setRefused] = useState<{ of: string; mistakes: Found[] } | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const mistakes = useMemo(() => (refused?.of === text ? refused.mistakes : asked.mistakes), [refused, asked.mistakes, text]);
  const errors = mistakes.filter((m) => m.grade === "error").length;
  useEffect(() => {
    if (drafts.value[id] === undefined || drafts.value[id] === start) return;
    const guard = (e: BeforeUnloadEvent) => e.preventDefault();
    addEventListener("beforeunload", guard);
    return () => removeEventListener("beforeunload", guard);
  }, [drafts.value[id] !== undefined && drafts.value[id] !== start]);
  const name = nameOf(text);
  const ask = () => { if (text.trim() !== "" && text !== before) setAsking(true); };
  const send = async () => {
    setBusy(true);
    setProblem(null);
    try {
      const stored = await store(text);
      drop();
      announce(`${stored.name}, version ${stored.version}, is stored`);
      navigate(stored.href);
    } catch (cause) {
      const known = cause instanceof Problem ? mistakesIn(cause.body) : null;
      if (known) setRefused({ of: text, mistakes: known });
      setProblem(known ? null : (cause as Error).message);
      setAsking(known === null);
      setBusy(false);
    }
  };
  return (
    <>
      <div class="edit-bar">
        <Button kind="primary" onClick={ask} disabled={text === before || errors > 0 || text.trim() === ""}>Store…</Button>
        {drafts.value[id] !== undefined && text !== start && <Button kind="quiet" onClick={drop}>Discard changes</Button>}
        <span class="muted" role="status">{text === before ? "No changes" : errors > 0 ? "Mend the mistakes to store it" : isChanged ? "Not stored yet" : ""}</span>
        <span class="edit-keys muted"><kbd>Ctrl Space</kbd> what fits here <kbd>Ctrl S</kbd> store <kbd>Esc</kbd> <kbd>Tab</kbd> leave the editor</span>
      </div>
      {meanwhile && <p class="note warning" role="status"><Icon name="warning" /><span>{meanwhile}</span></p>}
      {asked.problem && <p class="note warning" role="alert"><Icon name="warning" /><span>The text could not be checked: <Text>{asked.problem.message}</Text></span></p>}
      <Editor key={`${id} ${turn}`} value={text} format={format} label={label} mistakes={mistakes} isChecked={!validates || asked.of === text} {...(complete ? { complete } : {})} onValue={setText} onStore={ask} />
      {children?.(text)}
      {isAsking && (
        <Dialog wide title={<>Store <span class="dialog-of">{name ?? "the text"}</span></>} onClose={() => setAsking(false)} onSubmit={() => void send()}
          foot={<><Button onClick={() => setAsking(false)}>Cancel</Button><Button kind="primary" type="submit" isBusy={isBusy}>Store</Button></>}>
          <p class="says">{says(name ?? "", before === null)}</p>
          {before !== null && <Difference before={before} after={text} />}
          {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
          <CommandLine line={command(name ?? "NAME")} />
        </Dialog>
      )}
    </>
  );
}
