// Who may do what: the tokens, and the browsers that are signed in.
import { useState } from "preact/hooks";
import { call } from "../../api/client.ts";
import { useResource } from "../../api/resource.ts";
import type { CreatedToken, SignedIn, Token, TokenList } from "../../api/types.ts";
import { useKeys } from "../../app/keys.ts";
import { madeToken } from "../../app/made.tsx";
import { can, session, signOut } from "../../app/session.ts";
import { ActionForm } from "../../ui/action_form.tsx";
import { Age, Button, Empty, Menu, Moment, now, Panel, Shown, Text } from "../../ui/basics.tsx";
import { count, plural } from "../../ui/format.ts";
import { Icon } from "../../ui/icons.tsx";
import { Search } from "../../ui/search.tsx";
import { DeleteToken, MakeToken, RotateToken, TokenLimits } from "./forms.tsx";
import { expiryOf } from "./model.ts";

type Act = { kind: "make" } | { kind: "rotate" | "limits" | "delete"; token: Token };

export default function AccessPage() {
  const tokens = useResource<TokenList>(can("admin") ? "/v1/tokens" : null, 10_000);
  const sessions = useResource<{ sessions: SignedIn[] }>(session.value?.open ? null : "/v1/sessions", 15_000);
  const [act, setAct] = useState<Act | null>(null);
  useKeys({ r: () => { tokens.reload(); sessions.reload(); } });
  const close = () => setAct(null);
  const done = () => { setAct(null); tokens.reload(); };
  const onMade = (token: CreatedToken) => { setAct(null); madeToken.value = token; tokens.reload(); };
  const who = session.value;
  return (
    <div class="page">
      <header class="page-head">
        <h1>Access</h1>
        {can("admin") && !who?.open && <div class="page-actions"><Button icon="plus" onClick={() => setAct({ kind: "make" })}>Make a token…</Button></div>}
      </header>
      {who?.open ? <p class="note warning"><Icon name="warning" /><span>This server was started with --open: nobody signs in, and everybody may do everything.</span></p> : who && (
        <Panel title="You">
          <dl class="facts-line">
            <div><dt>token</dt><dd class="id"><Text>{who.name}</Text></dd></div>
            <div><dt>person</dt><dd><Text>{who.person}</Text></dd></div>
            <div><dt>roles</dt><dd>{who.roles.join(", ")}</dd></div>
            <div><dt>groups</dt><dd>{who.groups.length > 0 ? who.groups.join(", ") : "none"}</dd></div>
            {who.expires_at && <div><dt>signed in until</dt><dd><Moment at={who.expires_at} /></dd></div>}
          </dl>
        </Panel>
      )}
      {can("admin") && <Panel title="Tokens"><Shown of={tokens} rows={5}>{({ tokens: list }) => <Tokens list={list} onAct={setAct} />}</Shown></Panel>}
      {!who?.open && sessions.problem?.status !== 404 && <Panel title={can("admin") ? "Signed in" : "Your sessions"}><Shown of={sessions} rows={3}>{({ sessions: list }) => <Sessions list={list} onChange={sessions.reload} />}</Shown></Panel>}
      {act?.kind === "make" && <MakeToken onClose={close} onMade={onMade} />}
      {act?.kind === "rotate" && <RotateToken token={act.token} onClose={close} onMade={onMade} />}
      {act?.kind === "limits" && <TokenLimits token={act.token} onClose={close} onDone={done} />}
      {act?.kind === "delete" && <DeleteToken token={act.token} onClose={close} onDone={done} />}
    </div>
  );
}

function Tokens({ list, onAct }: { list: Token[]; onAct: (act: Act) => void }) {
  const [wanted, setWanted] = useState("");
  const text = wanted.trim().toLowerCase();
  const shown = list.filter((t) => [t.name, t.person, ...t.roles, ...t.groups].some((w) => w.toLowerCase().includes(text)));
  const isLastAdmin = list.filter((t) => t.roles.includes("admin")).length === 1;
  return (
    <div class="stack">
      {list.length > 8 && <Search label="Filter by name, role or group" value={wanted} onValue={setWanted} />}
      {shown.length === 0 ? <Empty title="No token is like this" icon="search" /> : (
        <div class="table-wrap menus"><table class="table stacks">
          <thead><tr><th>Token</th><th>Roles</th><th>Groups</th><th>Expires</th><th>Last used</th><th class="number">Calls lately</th><th class="number">Refused</th><th><span class="off-screen">Actions</span></th></tr></thead>
          <tbody>{shown.map((t) => (
            <tr key={t.name}>
              <td><span class="id"><Text>{t.name}</Text></span>{t.person !== t.name && <span class="muted"> of <Text>{t.person}</Text></span>}</td>
              <td data-label="Roles" class="wide-cell">{t.roles.map((r) => <span class="tag" key={r}>{r}</span>)}</td>
              <td data-label="Groups">{t.groups.length > 0 ? t.groups.map((g) => <span class="tag" key={g}>{g}</span>) : <span class="none">–</span>}</td>
              <td data-label="Expires"><Expires token={t} /></td>
              <td data-label="Last used">{t.last_used_at ? <Age at={t.last_used_at} /> : <span class="none">–</span>}</td>
              <td data-label="Calls lately" class="number" title={`In the last one or two minutes; ${count(t.use.calls)} since this node started`}>{count(t.recent.calls)}</td>
              <td data-label="Refused" class="number">{t.use.refused > 0 ? <b class="s-error told">{count(t.use.refused)}</b> : 0}</td>
              <td class="verbs"><Menu isCompact label="Actions" entries={[
                { label: "Rotate…", hint: "A new text; the old one ends", act: () => onAct({ kind: "rotate", token: t }) },
                ...(t.limits ? [{ label: "Limits…", hint: "What it may use", act: () => onAct({ kind: "limits", token: t }) }] : []),
                ...(t.roles.includes("admin") && isLastAdmin ? [] : [{ label: "Revoke…", hint: "It is refused at once", isFinal: true, act: () => onAct({ kind: "delete", token: t }) }]),
              ]} /></td>
            </tr>
          ))}</tbody>
        </table></div>
      )}
      <p class="muted">{plural(shown.length, "token")}. Use is counted by this node, in memory.</p>
    </div>
  );
}

function Expires({ token: t }: { token: Token }) {
  if (!t.expires_at) return <span class="muted">never</span>;
  const expiry = expiryOf(t.expires_at, now.value);
  return (
    <>
      <span class={expiry === "over" ? "s-error told" : expiry === "soon" ? "s-doubt told" : ""}><Age at={t.expires_at} /></span>
      {t.previous_until && Date.parse(t.previous_until) > now.value && <span class="muted">, old text <Age at={t.previous_until} /></span>}
    </>
  );
}

function Sessions({ list, onChange }: { list: SignedIn[]; onChange: () => void }) {
  const [ends, setEnds] = useState<SignedIn | null>(null);
  if (list.length === 0) return <Empty title="No browser is signed in" icon="access" />;
  return (
    <>
      <div class="table-wrap"><table class="table stacks">
        <thead><tr><th>Token</th><th>From</th><th>Since</th><th>Until</th><th><span class="off-screen">Actions</span></th></tr></thead>
        <tbody>{list.map((s) => (
          <tr key={s.id}>
            <td><span class="id"><Text>{s.token}</Text></span> {s.current && <span class="chip">this browser</span>}</td>
            <td data-label="From" class="wide-cell"><Text>{s.address}</Text></td><td data-label="Since"><Moment at={s.created_at} /> <span class="muted"><Age at={s.created_at} /></span></td><td data-label="Until"><Age at={s.expires_at} /></td>
            <td class="verbs">{s.current ? <Button kind="quiet" onClick={() => void signOut()}>Sign out</Button> : <Button kind="quiet" onClick={() => setEnds(s)}>End…</Button>}</td>
          </tr>
        ))}</tbody>
      </table></div>
      {ends && (
        <ActionForm title="End the session" of={ends.token} button="End it" isFinal asksReason={false} says={<>The browser at {ends.address} has to sign in again. The token itself stays valid.</>}
          send={async () => { await call(`/v1/sessions/${encodeURIComponent(ends.id)}`, { method: "DELETE" }); return "The session has ended"; }}
          onClose={() => setEnds(null)} onDone={() => { setEnds(null); onChange(); }} />
      )}
    </>
  );
}
