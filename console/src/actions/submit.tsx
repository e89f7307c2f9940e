// The form that submits a task of a workflow.
import { useMemo, useState } from "preact/hooks";
import { call, type Problem } from "../api/client.ts";
import type { Definition } from "../api/definition.ts";
import { announce } from "../app/announce.ts";
import { navigate } from "../app/router.ts";
import { Button, Text } from "../ui/basics.tsx";
import { CommandLine, Dialog, Field, JsonInput, readJson } from "../ui/dialog.tsx";
import { Icon } from "../ui/icons.tsx";
import { commandLine } from "../ui/shell.ts";
import { visibleJson } from "../ui/visible.ts";

const EXAMPLES: Record<string, unknown> = { string: "", integer: 0, number: 0, boolean: false, array: [], object: {}, any: null };
const TASK_ID = /^[A-Za-z0-9._:-]{1,128}$/;

// What the definition asks for, to be filled in.
export function exampleInput(definition: Definition | undefined): unknown {
  return Object.fromEntries(Object.entries(definition?.inputs ?? {}).map(([k, v]) => [k, v?.default ?? EXAMPLES[v?.type ?? "any"] ?? null]));
}

// "shop=rome customer=c 1" line by line, or why it is none.
export function readTags(text: string): { tags: Record<string, string> } | { mistake: string } {
  const tags: Record<string, string> = {};
  for (const line of text.split("\n").map((l) => l.trim()).filter(Boolean)) {
    const at = line.indexOf("=");
    if (at < 1) return { mistake: `A tag is NAME=VALUE, one a line; this is none: ${line}` };
    tags[line.slice(0, at)] = line.slice(at + 1);
  }
  return { tags };
}

export function SubmitForm({ workflow, definition, onClose }: { workflow: string; definition: Definition | undefined; onClose: () => void }) {
  const [id, setId] = useState("");
  const [text, setText] = useState(useMemo(() => visibleJson(exampleInput(definition)), []));
  const [tagText, setTagText] = useState("");
  const [isPaused, setPaused] = useState(false);
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const value = readJson(text);
  const tags = readTags(tagText);
  const isIdGood = id === "" || TASK_ID.test(id);
  const send = async () => {
    if (!("value" in value) || !("tags" in tags) || !isIdGood) return;
    setBusy(true);
    setProblem(null);
    try {
      const task = await call<{ id: string }>("/v1/tasks", {
        method: "POST", body: { workflow, input: value.value, ...(id ? { id } : {}), ...(Object.keys(tags.tags).length > 0 ? { tags: tags.tags } : {}), ...(isPaused ? { paused: true } : {}) },
      });
      announce(`Task ${task.id} is submitted`);
      navigate(`/tasks/${encodeURIComponent(task.id)}`);
    } catch (cause) {
      setProblem((cause as Problem).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={<>Submit a task <span class="dialog-of">{workflow}</span></>} onClose={onClose} onSubmit={() => void send()}
      foot={<><Button onClick={onClose}>Cancel</Button><Button kind="primary" type="submit" isBusy={isBusy}>Submit</Button></>}>
      <p class="says">The task {isPaused ? "begins when it is resumed" : "begins at once"}, with the newest version of the workflow.</p>
      <Field label="Input (JSON)" problem={"mistake" in value ? value.mistake : null}>{(field, described) => <JsonInput id={field} value={text} onValue={setText} described={described} rows={8} />}</Field>
      <div class="field-pair">
        <Field label="Id" hint="Empty: the server makes one." problem={isIdGood ? null : "1 to 128 of A-Z a-z 0-9 . _ : -"}>{(field, described) => (
          <input id={field} value={id} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setId(e.currentTarget.value.trim())} />
        )}</Field>
        <Field label="Tags" hint="NAME=VALUE, one a line." problem={"mistake" in tags ? tags.mistake : null}>{(field, described) => (
          <textarea id={field} rows={2} value={tagText} spellcheck={false} aria-describedby={described} onInput={(e) => setTagText(e.currentTarget.value)} />
        )}</Field>
      </div>
      <label class="check"><input type="checkbox" checked={isPaused} onChange={(e) => setPaused(e.currentTarget.checked)} /><span>Paused: no step starts until the task is resumed</span></label>
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      <CommandLine line={commandLine(["submit", workflow, ["--id", id || undefined], ["--input", "value" in value ? JSON.stringify(value.value) : "..."],
        ...("tags" in tags ? Object.entries(tags.tags).map(([k, v]) => ["--tag", `${k}=${v}`] as [string, string]) : []), ...(isPaused ? ["--paused"] : [])])} />
    </Dialog>
  );
}
