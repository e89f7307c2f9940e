// The console: finds out who is signed in, then shows the page of the address.
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/ui.css";
import "./styles/pages.css";
import "./styles/places.css";
import { Component, render, type ComponentChildren, type ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Problem } from "./api/client.ts";
import { announce } from "./app/announce.ts";
import { Frame } from "./app/frame.tsx";
import { MadeToken } from "./app/made.tsx";
import { PAGES, type Page } from "./app/pages.ts";
import { match, path, startRouter } from "./app/router.ts";
import { can, readSession, session, sessionProblem, watchSession } from "./app/session.ts";
import { afterSignIn, pendingCode, ReplaceSession, SignIn, takeCode } from "./app/signin.tsx";
import { showTheme } from "./app/theme.ts";
import { Empty, Failed, Loading } from "./ui/basics.tsx";
import { plain } from "./ui/visible.ts";

const loaded = new Map<string, ComponentType<any>>();

function find(): { page: Page; params: Record<string, string> } | null {
  for (const page of PAGES) {
    const params = match(page.at, path.value);
    if (params) return { page, params };
  }
  return null;
}

function Shown() {
  const found = find();
  const at = found?.page.at ?? "";
  const title = found ? plain(found.page.title(found.params)) : "No such page";
  const [problem, setProblem] = useState<Problem | null>(null);
  const [, setTurn] = useState(0);
  useEffect(() => {
    document.title = `${title} · Intact`;
  }, [title]);
  useEffect(() => {
    setProblem(null);
    if (!found || loaded.has(at)) return;
    found.page.load().then(
      (module) => { loaded.set(at, module.default); setTurn((n) => n + 1); },
      () => setProblem(new Problem(0, "old", "This page could not be loaded", "The server may have been upgraded: load the page anew.")),
    );
  }, [at]);
  useEffect(() => {
    announce(title);
    document.getElementById("main")?.focus({ preventScroll: true });
  }, [path.value]);
  if (!found) return <Empty isPage title="There is no such page">Check the address, or <a href="/">go to the overview</a>.</Empty>;
  if (problem) return <Failed problem={problem} retry={() => location.reload()} />;
  const Component = loaded.get(at);
  return Component ? <Component key={JSON.stringify(found.params)} {...found.params} /> : <Loading rows={6} />;
}

// A page that fails is said so, and the frame stays.
class Guard extends Component<{ children: ComponentChildren }, { failure: Error | null }> {
  override state = { failure: null };

  override componentDidCatch(failure: Error) {
    console.error(failure);
    this.setState({ failure });
  }

  override render() {
    const { failure } = this.state as { failure: Error | null };
    if (!failure) return this.props.children;
    return <Failed problem={new Problem(0, "bug", "This page failed", `${failure.message}. It is a defect of the console: the command line shows the same.`)} retry={() => location.reload()} />;
  }
}

function App() {
  if (session.value === undefined) {
    return sessionProblem.value ? <main class="signin"><div class="signin-card"><Failed problem={sessionProblem.value} retry={() => void begin()} /></div></main> : <main class="signin" />;
  }
  if (session.value === null) return <SignIn />;
  const { name } = session.value;
  if (pendingCode.value) return <ReplaceSession code={pendingCode.value} who={name} />;
  if (path.value === "/" && !can("read")) return <Frame key={name}><Empty title="Choose a page">Your token may not see the overview.</Empty></Frame>;
  return <Frame key={name}><Guard key={path.value}><Shown /></Guard></Frame>;
}

async function begin() {
  await readSession();
  if (session.value?.open) pendingCode.value = null; // nobody signs in
  if (session.value && !pendingCode.value) afterSignIn();
}

takeCode();
showTheme();
startRouter();
watchSession();
void begin();
render(<><App /><MadeToken /></>, document.getElementById("app") as HTMLElement);
