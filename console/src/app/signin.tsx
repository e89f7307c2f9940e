// Where nobody is signed in: a token is exchanged for a session. A code in the address's fragment does the same once.
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "../api/client.ts";
import { Button, Loading, Text } from "../ui/basics.tsx";
import { Field } from "../ui/dialog.tsx";
import { Icon, Mark } from "../ui/icons.tsx";
import { navigate, path } from "./router.ts";
import { signIn } from "./session.ts";

// The code leaves the address before anything else is done with it.
export function takeCode(): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) history.replaceState(null, "", location.pathname + location.search);
  return code;
}

export function afterSignIn() {
  if (path.value === "/signin") navigate("/", { replace: true });
}

export function SignIn({ code }: { code: string | null }) {
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
      const { status, message } = cause as Problem;
      setProblem(status !== 401 ? message : "code" in by ? "This code was used, or is older than a minute. Run intact console again." : "The server does not know this token, or it has expired.");
      setBusy(false);
    }
  };
  useEffect(() => {
    document.title = "Sign in · Intact";
    if (code) void enter({ code });
  }, []);
  if (isBusy && code) return <main class="signin"><div class="signin-card"><Loading rows={2} /></div></main>;
  return (
    <main class="signin">
      <form class="signin-card" onSubmit={(e) => { e.preventDefault(); void enter({ token: token.trim() }); }}>
        <div class="signin-mark"><Mark /></div>
        <h1>Sign in to Intact</h1>
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
