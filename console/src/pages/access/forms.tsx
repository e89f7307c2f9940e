// Tokens are made, replaced and removed here. The text of one is shown once, and kept nowhere.
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import type { CreatedToken, Token } from "../../api/types.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Field } from "../../ui/dialog.tsx";
import { count } from "../../ui/format.ts";
import { commandLine } from "../../ui/shell.ts";
import { LIMIT_SAYS, LIMITS, newToken, NO_TOKEN, ROLES, tokenFlags, type TokenForm } from "./model.ts";

export function MakeToken({ onClose, onMade }: { onClose: () => void; onMade: (made: CreatedToken) => void }) {
  const [form, setForm] = useState<TokenForm>(NO_TOKEN);
  const set = (part: Partial<TokenForm>) => setForm((was) => ({ ...was, ...part }));
  const read = newToken(form);
  return (
    <ActionForm title="Make a token" says="Whoever has its text may do what its roles say. Give each person and each program a token of its own." button="Make it" asksReason={false}
      mistake={"mistake" in read ? read.mistake : null}
      command={() => commandLine(["token", "create", form.name.trim() || "NAME", ...("token" in read ? tokenFlags(read.token) : [])])}
      send={async () => {
        if ("mistake" in read) return;
        const answer = await call<CreatedToken>("/v1/tokens", { method: "POST", body: read.token });
        onMade(answer);
        return `Token ${answer.name} is made`;
      }}
      onClose={onClose} onDone={() => {}}>
      <Field label="Name" hint="The audit names it, and its tasks belong to it.">{(id, described) => <input id={id} autofocus value={form.name} maxLength={64} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => set({ name: e.currentTarget.value })} />}</Field>
      <fieldset class="field roles">
        <legend>Roles</legend>
        {ROLES.map(([role, may]) => (
          <label key={role} class="check">
            <input type="checkbox" checked={form.roles.includes(role)} onChange={(e) => set({ roles: e.currentTarget.checked ? [...form.roles, role] : form.roles.filter((r) => r !== role) })} />
            <span><b>{role}</b> <span class="muted">{may}</span></span>
          </label>
        ))}
      </fieldset>
      <Field label="Narrower roles" hint="submit:WORKFLOW, read:WORKFLOW, agent:NAME, signal:WORKFLOW/NAME; with a * at the end: all that begin so.">{(id, described) => (
        <input id={id} value={form.scoped} placeholder="agent:payment submit:shop-*" autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => set({ scoped: e.currentTarget.value })} />
      )}</Field>
      <div class="field-pair">
        <Field label="Person" hint="For approvals; without it, the name of the token.">{(id, described) => <input id={id} value={form.person} autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => set({ person: e.currentTarget.value })} />}</Field>
        <Field label="Groups" hint="Of the person, for approvals.">{(id, described) => <input id={id} value={form.groups} placeholder="finance cfo" autocomplete="off" spellcheck={false} aria-describedby={described} onInput={(e) => set({ groups: e.currentTarget.value })} />}</Field>
      </div>
      <Field label="Valid for" hint="12h, 30d, or never.">{(id, described) => <input id={id} value={form.expires} autocomplete="off" aria-describedby={described} onInput={(e) => set({ expires: e.currentTarget.value })} />}</Field>
    </ActionForm>
  );
}

export function RotateToken({ token, onClose, onMade }: { token: Token; onClose: () => void; onMade: (made: CreatedToken) => void }) {
  const [keep, setKeep] = useState("1h");
  const isGood = /^\d+(s|m|h|d)$/.test(keep.trim());
  return (
    <ActionForm title="Rotate the token" of={token.name} button="Rotate" asksReason={false} mistake={isGood ? null : "How long the old text stays valid is like 10m, 1h, or 0s."}
      says="It gets a new text; name, roles and tasks stay. The old text stays valid for a while, so that programs can change over. If the text was disclosed, keep it for 0s."
      command={() => commandLine(["token", "rotate", token.name, ["--keep", keep === "1h" ? undefined : keep]])}
      send={async () => { onMade(await call<CreatedToken>(`/v1/tokens/${encodeURIComponent(token.name)}/rotate`, { method: "POST", body: { keep: keep.trim() } })); return `${token.name} has a new text`; }}
      onClose={onClose} onDone={() => {}}>
      <Field label="The old text stays valid for" hint="At most 30d, and not beyond its own end.">{(id, described) => <input id={id} autofocus value={keep} autocomplete="off" aria-describedby={described} onInput={(e) => setKeep(e.currentTarget.value)} />}</Field>
    </ActionForm>
  );
}

export function DeleteToken({ token, onClose, onDone }: { token: Token; onClose: () => void; onDone: () => void }) {
  return (
    <ActionForm title="Revoke the token" of={token.name} button="Revoke" isFinal asksReason={false} confirm={token.name}
      says="It is refused from the next request on, and its sessions end. Its tasks stay. A later token of the same name owns them."
      command={() => commandLine(["token", "delete", token.name])}
      send={async () => { await call(`/v1/tokens/${encodeURIComponent(token.name)}`, { method: "DELETE" }); return `${token.name} is revoked`; }}
      onClose={onClose} onDone={onDone} />
  );
}

export function TokenLimits({ token, onClose, onDone }: { token: Token; onClose: () => void; onDone: () => void }) {
  const old = (token.limits ?? {}) as Record<string, number | null>;
  const [texts, setTexts] = useState<Record<string, string>>(() => Object.fromEntries(LIMITS.map((l) => [l, old[l] ? String(old[l]) : ""])));
  const wrong = LIMITS.find((l) => texts[l] && !/^[1-9]\d{0,12}$/.test(texts[l]));
  return (
    <ActionForm title="Limits of" of={token.name} button="Set them" asksReason={false} mistake={wrong ? `${wrong} is a whole number from 1.` : null}
      says="At each node. A call beyond a limit is answered 429 and has no effect. An empty field is the default."
      send={async () => {
        await call(`/v1/tokens/${encodeURIComponent(token.name)}`, { method: "PUT", body: { limits: Object.fromEntries(LIMITS.map((l) => [l, texts[l] ? Number(texts[l]) : null])) } });
        return "The limits are set";
      }}
      onClose={onClose} onDone={onDone}>
      <div class="field-grid">{LIMITS.map((l) => (
        <Field key={l} label={l.replace("_", " ")} hint={`${LIMIT_SAYS[l]}${l in token.use ? `; used: ${count(token.use[l])}` : ""}`}>{(id, described) => (
          <input id={id} inputMode="numeric" value={texts[l]} autocomplete="off" aria-describedby={described} onInput={(e) => setTexts((was) => ({ ...was, [l]: e.currentTarget.value.trim() }))} />
        )}</Field>
      ))}</div>
    </ActionForm>
  );
}
