// A form that does one thing: it says what will happen, may ask for a reason, and shows the command line that does the
// same.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { announce } from "../app/announce.ts";
import { Button, Text } from "./basics.tsx";
import { CommandLine, Dialog, Field } from "./dialog.tsx";
import { Icon } from "./icons.tsx";

export interface ActionFormProps {
  title: string;
  of?: string;
  says: ComponentChildren;
  button: string;
  isFinal?: boolean;
  asksReason?: boolean;
  reasonMax?: number;
  confirm?: string; // has to be typed
  mistake?: string | null; // of the fields in `children`: it is not sent
  command?: (reason: string) => string;
  send: (reason: string) => Promise<string | void>; // what is announced
  onClose: () => void;
  onDone: () => void;
  children?: ComponentChildren;
}

export function ActionForm(p: ActionFormProps) {
  const { asksReason = true, reasonMax = 1000 } = p;
  const [reason, setReason] = useState("");
  const [typed, setTyped] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [isTried, setTried] = useState(false);
  const submit = async () => {
    setTried(true);
    if ((asksReason && reason.trim() === "") || p.mistake || (p.confirm && typed.trim() !== p.confirm)) return;
    setBusy(true);
    setProblem(null);
    try {
      announce((await p.send(reason.trim())) || `${p.button}: done`);
      p.onDone();
    } catch (cause) {
      setProblem((cause as Error).message);
      setBusy(false);
    }
  };
  return (
    <Dialog title={<>{p.title} {p.of && <span class="dialog-of"><Text>{p.of}</Text></span>}</>} onClose={p.onClose} onSubmit={() => void submit()}
      foot={<><Button onClick={p.onClose}>Cancel</Button><Button kind={p.isFinal ? "danger" : "primary"} type="submit" isBusy={isBusy}>{p.button}</Button></>}>
      <p class="says">{p.says}</p>
      {p.children}
      {p.mistake && isTried && <p class="field-problem" role="alert">{p.mistake}</p>}
      {asksReason && (
        <Field label="Reason" hint="Kept in the audit." problem={isTried && reason.trim() === "" ? "Say why: the audit keeps it." : null}>{(id, described) => (
          <input id={id} value={reason} maxLength={reasonMax} autofocus={!p.children} autocomplete="off" aria-describedby={described} onInput={(e) => setReason(e.currentTarget.value)} />
        )}</Field>
      )}
      {p.confirm && (
        <Field label={`Type ${p.confirm} to confirm`} problem={isTried && typed.trim() !== p.confirm ? "It is not the same." : null}>{(id, described) => (
          <input id={id} value={typed} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setTyped(e.currentTarget.value)} />
        )}</Field>
      )}
      {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
      {p.command && <CommandLine line={p.command(reason.trim() || "...")} />}
    </Dialog>
  );
}
