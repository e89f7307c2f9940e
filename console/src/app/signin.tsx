// Where nobody is signed in: a token is exchanged for a session. A code in the fragment of /signin does the same once. Any
// site can lead here with a code of its own, so a code replaces a session only if the one who is signed in agrees.
import { signal } from "@preact/signals";
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import { Button, Loading, Text } from "../ui/basics.tsx";
import { Field } from "../ui/dialog.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { plain } from "../ui/visible.ts";
import { navigate, path } from "./router.ts";
import { ended, signIn } from "./session.ts";

export const pendingCode = signal<string | null>(null);

// The code leaves the address before anything else is done with it.
export function takeCode() {
  if (location.pathname !== "/signin") return;
  pendingCode.value = new URLSearchParams(location.hash.slice(1)).get("code");
  if (pendingCode.value) history.replaceState(null, "", location.pathname + location.search);
}

export function afterSignIn() {
  if (path.value === "/signin") navigate("/", { replace: true });
}

function refusal({ status, message }: Problem, isCode: boolean): string {
  if (status !== 401) return message;
  return isCode ? "This code was used, or is older than a minute. Run intact console again." : "The server does not know this token, or it has expired.";
}

// There is a session, and a code for another one.
export function ReplaceSession({ code, who }: { code: string; who: string }) {
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(false);
  useEffect(() => { document.title = "Sign in · Intact"; }, []);
  const stay = () => { pendingCode.value = null; afterSignIn(); };
  const replace = async () => {
    setBusy(true);
    try {
      await signIn({ code });
      stay();
    } catch (cause) {
      setProblem(refusal(cause as Problem, true));
      setBusy(false);
    }
  };
  return (
    <main class="signin">
      <div class="signin-card">
        <div class="signin-mark"><Mark /></div>
        <h1>Sign in anew?</h1>
        <p>You are signed in as <b><Text>{who}</Text></b>. Sign in as the owner of this link instead?</p>
        <p class="field-hint">Do so only if you made the link, by <code>intact console</code>: with the link of somebody else, you would act under that name.</p>
        {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
        <Button kind="primary" onClick={stay}>Stay signed in as {plain(who)}</Button>
        {!problem && <Button onClick={() => void replace()} isBusy={isBusy}>Sign in as the owner of the link</Button>}
      </div>
    </main>
  );
}

export function SignIn() {
  const [code] = useState(pendingCode.peek());
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<string | null>(null);
  const [isBusy, setBusy] = useState(code !== null);
  const enter = async (by: { token: string } | { code: string }) => {
    setBusy(true);
    setProblem(null);
    try {
      await signIn(by);
      afterSignIn();
    } catch (cause) {
      setProblem(refusal(cause as Problem, "code" in by));
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Intact";
    pendingCode.value = null;
    if (code) void enter({ code });
  }, []);
  if (isBusy && code) return <main class="signin"><div class="signin-card"><Loading rows={2} /></div></main>;
  return (
    <main class="signin">
      <form class="signin-card" onSubmit={(e) => { e.preventDefault(); void enter({ token: token.trim() }); }}>
        <div class="signin-mark"><Mark /></div>
        <h1>Sign in to Intact</h1>
        {ended.value !== null && <p class="note warning" role="alert"><Icon name="info" /><span>The session of {plain(ended.value)} has ended. Sign in again to continue on this page.</span></p>}
        <Field label="Token" hint="It is exchanged for a session that ends after 12 hours. The browser does not keep the token.">{(id, described) => (
          <input id={id} type="password" autofocus autocomplete="off" required value={token} aria-describedby={described} onInput={(e) => setToken(e.currentTarget.value)} />
        )}</Field>
        {problem && <p class="note error" role="alert"><Icon name="warning" /><Text>{problem}</Text></p>}
        <Button kind="primary" type="submit" isBusy={isBusy}>Sign in</Button>
        <p class="field-hint">On the server's machine, <code>intact console</code> opens this page signed in.</p>
      </form>
    </main>
  );
}
