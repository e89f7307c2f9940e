// The limits of an agent, and when its breaker opens by itself.
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { AgentSaid, AgentSettings } from "../../api/types.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Button, Failed, Loading } from "../../ui/basics.tsx";
import { Dialog, Field } from "../../ui/dialog.tsx";
import { commandLine } from "../../ui/shell.ts";
import { readSettings, settingsFlags, showSettings, type SettingsForm } from "./model.ts";

export function Settings({ agent, onClose, onDone }: { agent: string; onClose: () => void; onDone: () => void }) {
  const said = useResource<AgentSaid>(`/v1/agents/${encodeURIComponent(agent)}`);
  if (said.data) return <Form agent={agent} settings={said.data.settings} onClose={onClose} onDone={onDone} />;
  return (
    <Dialog title={<>Settings of <span class="dialog-of">{agent}</span></>} onClose={onClose} foot={<Button onClick={onClose}>Cancel</Button>}>
      {said.problem ? <Failed problem={said.problem} retry={said.reload} /> : <Loading rows={4} />}
    </Dialog>
  );
}

function Form({ agent, settings, onClose, onDone }: { agent: string; settings: AgentSettings; onClose: () => void; onDone: () => void }) {
  const [form, setForm] = useState<SettingsForm>(() => showSettings(settings));
  const read = readSettings(form);
  const field = (name: keyof Omit<SettingsForm, "enabled">, label: string, hint: string) => (
    <Field label={label} hint={hint}>{(id, described) => (
      <input id={id} value={form[name]} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => setForm((was) => ({ ...was, [name]: e.currentTarget.value }))} />
    )}</Field>
  );
  return (
    <ActionForm title="Settings of" of={agent} button="Set them" asksReason={false} mistake={"mistake" in read ? read.mistake : null}
      says="They take effect at once, at all nodes within about a second. An empty field is the default."
      command={() => commandLine(["agent", "set", agent, ...settingsFlags(form, settings)])}
      send={async () => {
        if ("settings" in read) await call(`/v1/agents/${encodeURIComponent(agent)}`, { method: "PUT", body: read.settings });
        return `The settings of ${agent} are stored`;
      }}
      onClose={onClose} onDone={onDone}>
      <div class="field-grid">
        {field("concurrency", "Attempts at a time", "Of all instances; empty: no limit.")}
        {field("rate", "Rate", "100/s, 600/m, 5000/h; empty: no limit.")}
      </div>
      <Field label="Limits of single actions" hint="One a line: charge=5, charge=600/m, charge=5,600/m">{(id, described) => (
        <textarea id={id} class="code" rows={2} value={form.actions} spellcheck={false} aria-describedby={described} onInput={(e) => setForm((was) => ({ ...was, actions: e.currentTarget.value }))} />
      )}</Field>
      <label class="check"><input type="checkbox" checked={form.enabled} onChange={(e) => setForm((was) => ({ ...was, enabled: e.currentTarget.checked }))} /><span>The breaker opens by itself</span></label>
      {form.enabled && (
        <div class="field-grid">
          {field("calls", "Attempts at least", "With fewer in the window it stays closed: 20")}
          {field("failures", "Failed, in percent", "This share opens it: 80")}
          {field("window", "Window", "Older attempts do not count: 30s")}
          {field("slow", "Slow after", "Empty: no attempt is slow")}
          {field("slow_calls", "Slow, in percent", "This share opens it: 80")}
          {field("wait", "Wait before trials", "Doubled with each that fails: 5s")}
          {field("max_wait", "Longest wait", "1m")}
          {field("trials", "Trials at a time", "As many successes close it: 3")}
        </div>
      )}
    </ActionForm>
  );
}

export function ResetSettings({ agent, onClose, onDone }: { agent: string; onClose: () => void; onDone: () => void }) {
  return (
    <ActionForm title="Reset the settings of" of={agent} button="Reset" isFinal asksReason={false} says="No limits, and the breaker opens as by default. A breaker that was opened by hand stays open."
      command={() => commandLine(["agent", "reset", agent])}
      send={async () => { await call(`/v1/agents/${encodeURIComponent(agent)}`, { method: "DELETE" }); return `The settings of ${agent} are the defaults`; }}
      onClose={onClose} onDone={onDone} />
  );
}
