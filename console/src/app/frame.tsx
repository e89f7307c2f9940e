// The frame around every page: where one can go, who is signed in, and whether what is shown is current.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { heardAt, silentSince } from "../api/client.ts";
import { useResource } from "../api/resource.ts";
import { streaming } from "../api/stream.ts";
import type { AlertPage, ApprovalList } from "../api/types.ts";
import { Button, changeTimes, now, times } from "../ui/basics.tsx";
import { Dialog } from "../ui/dialog.tsx";
import { count, duration, moment } from "../ui/format.ts";
import { Icon, Mark } from "../ui/icons.tsx";
import { announcement } from "./announce.ts";
import { useKeys } from "./keys.ts";
import { PAGES } from "./pages.ts";
import { navigate, path } from "./router.ts";
import { can, session, signOut, signOutProblem } from "./session.ts";
import { setTheme, theme, type Theme } from "./theme.ts";

function useBadges(): Record<string, { n: string; isBad: boolean }> {
  const alerts = useResource<AlertPage>(can("read") ? "/v1/alerts?state=open&limit=50" : null, 10_000).data;
  const approvals = useResource<ApprovalList>(can("approve") ? "/v1/approvals?limit=50" : null, 15_000).data;
  const badges: Record<string, { n: string; isBad: boolean }> = {};
  if (alerts && alerts.alerts.length > 0) badges["/alerts"] = { n: `${count(alerts.alerts.length)}${alerts.next ? "+" : ""}`, isBad: true };
  const mine = approvals?.approvals.filter((a) => a.waits_for_you).length ?? 0;
  if (mine > 0) badges["/approvals"] = { n: count(mine), isBad: false };
  return badges;
}

function Nav({ onGo }: { onGo: () => void }) {
  const badges = useBadges();
  const groups = [["work", null], ["installation", "Installation"]] as const;
  return (
    <nav class="nav" aria-label="Pages">
      {groups.map(([group, title]) => (
        <ul key={group}>
          {title && <li class="nav-title" aria-hidden="true">{title}</li>}
          {PAGES.filter((p) => p.nav?.group === group && (!p.nav.role || p.nav.role.split(" ").some(can))).map((p) => {
            const isHere = p.at === "/" ? path.value === "/" : path.value === p.at || path.value.startsWith(`${p.at}/`);
            const badge = badges[p.at];
            return (
              <li key={p.at}>
                <a href={p.at} aria-current={isHere ? "page" : undefined} onClick={onGo}>
                  <Icon name={p.nav?.icon ?? ""} />
                  <span>{p.nav?.label}</span>
                  {badge && <span class={`badge ${badge.isBad ? "bad" : ""}`}>{badge.n}</span>}
                </a>
              </li>
            );
          })}
        </ul>
      ))}
    </nav>
  );
}

const SILENT = 25_000; // in which something is always read of a server that answers

function Connection() {
  if (silentSince.value !== null) {
    return <span class="connection lost" role="status"><i /> Not connected for {duration(Math.max(0, now.value - silentSince.value))}</span>;
  }
  const age = now.value - heardAt.value;
  const isLive = streaming.value === "open" && age < SILENT;
  return <span class={`connection ${isLive ? "live" : "polled"}`}><i /> {isLive ? "Live" : age < 20_000 ? "Current" : `Read ${duration(age)} ago`}</span>;
}

function Stale() {
  if (silentSince.value === null || now.value - silentSince.value < 4000) return null;
  return (
    <p class="stale" role="alert">
      <Icon name="warning" />
      <span>The server does not answer. What is shown is from {moment(heardAt.value, now.value)}, {duration(now.value - heardAt.value)} ago.</span>
    </p>
  );
}

function StillSignedIn() {
  if (signOutProblem.value === null) return null;
  return (
    <p class="stale" role="alert">
      <Icon name="warning" />
      <span>You are still signed in: {signOutProblem.value}</span>
      <Button kind="quiet" onClick={() => void signOut()}>Sign out</Button>
    </p>
  );
}

const THEMES: [Theme, string, string][] = [["auto", "auto", "As the system"], ["light", "sun", "Light"], ["dark", "moon", "Dark"]];

function ThemeSwitch() {
  const n = THEMES.findIndex(([name]) => name === theme.value);
  const [, icon, label] = THEMES[n] as (typeof THEMES)[number];
  const next = THEMES[(n + 1) % THEMES.length] as (typeof THEMES)[number];
  return <button type="button" class="icon-button" title={`Colours: ${label}`} aria-label={`Colours: ${label}. Change to: ${next[2]}`} onClick={() => setTheme(next[0])}><Icon name={icon} /></button>;
}

const listOf = (prefix: string) => `/tasks?${new URLSearchParams({ id_prefix: prefix })}`;

// The id of a task, or the beginning of ids with a star.
function GoTo() {
  const input = useRef<HTMLInputElement>(null);
  useKeys({ "/": (e) => { e.preventDefault(); input.current?.focus(); } });
  return (
    <form class="goto" role="search" onSubmit={(e) => {
      e.preventDefault();
      const id = input.current?.value.trim();
      if (!id) return;
      navigate(id.length > 1 && id.endsWith("*") ? listOf(id.slice(0, -1)) : `/tasks/${encodeURIComponent(id)}`);
      if (input.current) input.current.value = "";
      input.current?.blur();
    }}>
      <Icon name="search" />
      <input ref={input} type="search" aria-label="Open a task by its id" title="order-17 opens that task, order-1* lists those that begin so" placeholder="Open task by id" autocomplete="off" spellcheck={false}
        onKeyDown={(e) => e.key === "Escape" && e.currentTarget.blur()} />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

const KEYS: [title: string, keys: [key: string, what: string][]][] = [
  ["Everywhere", [["/", "Open a task by its id"], ["r", "Read again"], ["t", "Times: exact, in UTC, short"], ["?", "These keys"], ["Esc", "Close what is open, or leave a field"]]],
  ["Go to", [["g o", "Overview"], ["g t", "Tasks"], ["g e", "Tasks in error"], ["g p", "Approvals"], ["g w", "Workflows"], ["g s", "Schedules"], ["g a", "Alerts"]]],
  ["In a list", [["j k", "Next, previous row"], ["Enter", "Open the row"], ["x", "Choose the task"]]],
  ["In the timeline", [["+ -", "Zoom"], ["← →", "Move"], ["0", "Show all"]]],
  ["In a form", [["Ctrl Enter", "Send it"]]],
  ["In the editor", [["Ctrl Space", "What fits here"], ["Ctrl S", "Store"], ["Esc Tab", "Leave it"]]],
];

function Keys({ onClose }: { onClose: () => void }) {
  return (
    <Dialog wide title="Keys" onClose={onClose}>
      <div class="key-groups">{KEYS.map(([title, keys]) => (
        <section key={title}>
          <h3>{title}</h3>
          <dl class="keys">{keys.map(([k, what]) => <div key={k}><dt>{k.split(" ").map((one) => <kbd key={one}>{one}</kbd>)}</dt><dd>{what}</dd></div>)}</dl>
        </section>
      ))}</div>
    </Dialog>
  );
}

const GO: Record<string, string> = { o: "/", t: "/tasks", e: "/tasks?state=error&closed=false", p: "/approvals", w: "/workflows", s: "/schedules", a: "/alerts" };

function useGoKeys(onHelp: () => void) {
  const g = useRef(0);
  const isGoing = () => Date.now() - g.current < 1500;
  const go: Record<string, () => void> = Object.fromEntries(Object.entries(GO).map(([key, to]) => [key, () => { if (isGoing()) navigate(to); g.current = 0; }]));
  useKeys({ ...go, t: () => (isGoing() ? go["t"]?.() : changeTimes()), g: () => { g.current = Date.now(); }, "?": onHelp });
}

const TIMES = { short: "Exact times", local: "Times to the ms", utc: "Times in UTC" };

const ROWS = "main .table tbody tr, main .cards > li, main .rows > li, main .concerns > li";
const FIRST = "a[href], button:not([disabled]), input, summary";

// From row to row of the lists of a page. The list of tasks, which draws only what is in view, has keys of its own.
function useRowKeys() {
  const move = (by: number) => {
    const rows = [...document.querySelectorAll<HTMLElement>(ROWS)].filter((row) => row.querySelector(FIRST) && !row.parentElement?.closest("li"));
    const n = rows.findIndex((row) => row.contains(document.activeElement));
    const next = rows[n < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(n + by, 0), rows.length - 1)];
    next?.querySelector<HTMLElement>(FIRST)?.focus();
  };
  useKeys({ j: () => move(1), k: () => move(-1) });
}

export function Frame({ children }: { children: ComponentChildren }) {
  const [isNavOpen, setNavOpen] = useState(false);
  const [showsKeys, setShowsKeys] = useState(false);
  useGoKeys(() => setShowsKeys(true));
  useRowKeys();
  useEffect(() => setNavOpen(false), [path.value]);
  const who = session.value;
  return (
    <div class={`frame ${isNavOpen ? "nav-open" : ""}`} onKeyDown={(e) => { if (e.key === "Escape") setNavOpen(false); }}>
      <a class="skip-link" href="#main">Skip to the page</a>
      <header class="top">
        <button type="button" class="icon-button nav-button" aria-label="Pages" aria-expanded={isNavOpen} onClick={() => setNavOpen(!isNavOpen)}><Icon name="menu" /></button>
        <a class="brand" href="/" aria-label="Intact, overview"><Mark /><span>Intact</span></a>
        <GoTo />
        <div class="top-end">
          <Connection />
          <ThemeSwitch />
          {who && !who.open && (
            <span class="who">
              <span class="who-name" title={`Roles: ${who.roles.join(", ")}`}>{who.name}</span>
              <button type="button" class="icon-button" title="Sign out" aria-label={`Sign out ${who.name}`} onClick={() => void signOut()}><Icon name="out" /></button>
            </span>
          )}
        </div>
      </header>
      <div class="side">
        <Nav onGo={() => setNavOpen(false)} />
        <div class="side-foot">
          <Button kind="quiet" aria-pressed={times.value !== "short"} title="Show all times exactly, in your zone, then in UTC" onClick={changeTimes}>{TIMES[times.value]} <kbd>t</kbd></Button>
          <Button kind="quiet" onClick={() => setShowsKeys(true)}>Keys <kbd>?</kbd></Button>
        </div>
      </div>
      <main id="main" tabIndex={-1}>
        <Stale />
        <StillSignedIn />
        {children}
      </main>
      {showsKeys && <Keys onClose={() => setShowsKeys(false)} />}
      <div class="off-screen" role="status" aria-live="polite">{announcement.value}</div>
    </div>
  );
}
