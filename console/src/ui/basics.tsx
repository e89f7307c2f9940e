// Small parts that all pages use: text of others, moments, states, links, buttons, and what is shown when there is
// nothing to show.
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { signal } from "@preact/signals";
import { Problem } from "../api/client.ts";
import { announce } from "../app/announce.ts";
import { ago, capital, duration, exact, exactly, moment, time, type Times } from "./format.ts";
import { Icon, StateSign } from "./icons.tsx";
import { pieces, plain } from "./visible.ts";

// One clock for the page, so that all ages move together.
export const now = signal(Date.now());
setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);

// What a mouse finds out by pointing at a time, keys and fingers find out by having all times shown exactly.
export const times = signal<Times>("short");
const NEXT: Record<Times, Times> = { short: "local", local: "utc", utc: "short" };
const SAID: Record<Times, string> = { short: "Times are short", local: "Times are exact, in your zone", utc: "Times are exact, in UTC" };

export function changeTimes() {
  times.value = NEXT[times.value];
  if (times.value === "short") delete document.documentElement.dataset["times"];
  else document.documentElement.dataset["times"] = times.value;
  announce(SAID[times.value]);
}

export function Text({ children, class: kind = "" }: { children: string; class?: string }) {
  return (
    <bdi class={kind}>
      {pieces(children).map((p) => (p.isHidden ? <span class="hidden-char">{p.text}</span> : p.text))}
    </bdi>
  );
}

// Why somebody did something. An operation on many tasks puts its id before it.
export function Reason({ text }: { text: string }) {
  const [, id, reason] = /^(?:operation )?([0-9a-f-]{36})(?:: |, )(.*)$/s.exec(text) ?? [];
  if (!id) return <Text>{text}</Text>;
  return <><Text>{reason ?? ""}</Text> <a class="muted" href={`/operations/${id}`} title={id}>{text.startsWith("operation") ? "by an operation" : "the operation"}</a></>;
}

export function Moment({ at, withMs = false }: { at: string | null | undefined; withMs?: boolean }) {
  const ms = time(at);
  if (ms === null) return <span class="none">–</span>;
  return <time dateTime={at ?? ""} title={exact(ms)}>{times.value === "short" ? moment(ms, now.value, withMs) : exactly(ms, times.value)}</time>;
}

export function Age({ at }: { at: string | null | undefined }) {
  const ms = time(at);
  if (ms === null) return <span class="none">–</span>;
  const seen = Math.max(now.value, ms - 1000 < now.value ? ms : 0); // the clock of the page moves once a second
  return <time dateTime={at ?? ""} title={exact(ms)}>{times.value === "short" ? ago(ms, seen) : exactly(ms, times.value)}</time>;
}

// From `from` to `to`, or until now.
export function Length({ from, to }: { from: string | null | undefined; to: string | null | undefined }) {
  const begin = time(from);
  if (begin === null) return <span class="none">–</span>;
  const end = time(to) ?? now.value;
  return <span title={exact(begin)}>{duration(Math.max(0, end - begin))}</span>;
}

const NAMES: Record<string, string> = { doubt: "in doubt" };

export function State({ state, note }: { state: string; note?: string | undefined }) {
  return (
    <span class={`state s-${state}`}>
      <StateSign state={state} />
      <span>{NAMES[state] ?? state}</span>
      {note && <span class="state-note">{note}</span>}
    </span>
  );
}

export function Copy({ text, label = "Copy", small = true }: { text: string | (() => string); label?: string; small?: boolean }) {
  const [isDone, setDone] = useState(false);
  const copy = async () => {
    const value = typeof text === "string" ? text : text();
    try {
      await navigator.clipboard.writeText(value);
    } catch {
      copyBySelection(value);
    }
    setDone(true);
    announce("Copied");
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class={`copy ${small ? "icon-button" : "button"}`} title={label} aria-label={small ? label : undefined} onClick={copy}>
      <Icon name={isDone ? "done" : "copy"} />
      {!small && <span>{isDone ? "Copied" : label}</span>}
    </button>
  );
}

// Without TLS, browsers give no clipboard but this one.
function copyBySelection(text: string) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "off-screen";
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function Id({ id, href }: { id: string; href?: string }) {
  return href ? <a class="id" href={href} title={id}>{plain(id)}</a> : <span class="id" title={id}>{plain(id)}</span>;
}

const TAIL = 8;

// Ids of a family, or of one day, differ at their end: where there is no room, a long one is cut before that.
export function CutId({ id, href }: { id: string; href: string }) {
  const text = plain(id);
  return (
    <a class="id" href={href} title={id}>
      {text.length <= 20 ? text : <span class="cut"><span class="cut-head">{text.slice(0, -TAIL)}</span><span class="cut-tail">{text.slice(-TAIL)}</span></span>}
    </a>
  );
}

export function Tags({ tags, hrefOf }: { tags: Record<string, string> | null | undefined; hrefOf?: (key: string, value: string) => string }) {
  const list = Object.entries(tags ?? {});
  return (
    <>
      {list.map(([k, v]) => {
        const text = <><span class="tag-key">{plain(k)}</span>{plain(v)}</>;
        const title = plain(`${k}=${v}`);
        return hrefOf ? <a class="tag" key={k} title={`Tasks with ${title}`} href={hrefOf(k, v)}>{text}</a> : <span class="tag" key={k} title={title}>{text}</span>;
      })}
    </>
  );
}

interface ButtonProps extends Omit<JSX.IntrinsicElements["button"], "icon"> {
  kind?: "primary" | "plain" | "danger" | "quiet";
  icon?: string;
  isBusy?: boolean;
  children?: ComponentChildren;
}

export function Button({ kind = "plain", icon, isBusy, children, ...rest }: ButtonProps) {
  return (
    <button type="button" {...rest} class={`button ${kind}`} aria-busy={isBusy || undefined} disabled={isBusy || rest.disabled}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

export function Panel({ title, aside, children, class: kind = "", id }: {
  title?: ComponentChildren; aside?: ComponentChildren; children: ComponentChildren; class?: string; id?: string;
}) {
  return (
    <section class={`panel ${kind}`} id={id}>
      {(title || aside) && <header class="panel-head">{title && <h2>{title}</h2>}{aside && <div class="panel-aside">{aside}</div>}</header>}
      {children}
    </section>
  );
}

// Less frequent commands behind one button.
export function Menu({ label, entries, isCompact = false }: { label: string; isCompact?: boolean; entries: { label: string; hint?: string; isFinal?: boolean | undefined; act: () => void }[] }) {
  const [isOpen, setOpen] = useState(false);
  const host = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!isOpen) return;
    const close = (e: Event) => { if (!host.current?.contains(e.target as Node)) setOpen(false); };
    addEventListener("pointerdown", close);
    addEventListener("focusin", close);
    host.current?.querySelector<HTMLElement>("[role=menuitem]")?.focus();
    return () => { removeEventListener("pointerdown", close); removeEventListener("focusin", close); };
  }, [isOpen]);
  const onKey = (e: KeyboardEvent) => {
    const items = [...(host.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    const n = items.indexOf(document.activeElement as HTMLElement);
    const by = e.key === "ArrowDown" ? 1 : e.key === "ArrowUp" ? -1 : 0;
    if (by !== 0) items[(n + by + items.length) % items.length]?.focus();
    else if (e.key === "Escape" && isOpen) { setOpen(false); host.current?.querySelector("button")?.focus(); }
    else return;
    e.preventDefault();
    e.stopPropagation();
  };
  return (
    <div class="menu" ref={host} onKeyDown={onKey}>
      {isCompact ? <button type="button" class="icon-button" title={label} aria-label={label} aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}><Icon name="more" /></button>
        : <Button aria-haspopup="menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{label}<Icon name="down" /></Button>}
      {isOpen && (
        <div class="menu-list" role="menu" aria-label={label}>
          {entries.map((entry) => (
            <button key={entry.label} type="button" role="menuitem" tabIndex={-1} class={entry.isFinal ? "final" : ""} onClick={() => { setOpen(false); entry.act(); }}>
              <span>{entry.label}</span>{entry.hint && <small>{entry.hint}</small>}
            </button>
          ))}
        </div>
      )}
    </div>
  );
}

// What is shown instead of rows or, with `isPage`, instead of a page.
export function Empty({ title, children, icon = "info", isPage = false }: { title: string; children?: ComponentChildren; icon?: string; isPage?: boolean }) {
  return (
    <div class="empty">
      <Icon name={icon} />
      {isPage ? <h1 class="empty-title">{plain(title)}</h1> : <p class="empty-title">{plain(title)}</p>}
      {children && <p>{children}</p>}
    </div>
  );
}

// Shown only after a moment, because most answers come before that.
export function Loading({ rows = 4 }: { rows?: number }) {
  return (
    <div class="loading" role="status">
      <span class="off-screen">Loading</span>
      {Array.from({ length: rows }, (_, n) => <div class="loading-row" key={n} />)}
    </div>
  );
}

export function Failed({ problem, retry }: { problem: Problem; retry?: () => void }) {
  if (problem.status === 403) {
    return <Empty title="Your token may not see this" icon="info"><Text>{capital(problem.detail || problem.title)}</Text></Empty>;
  }
  return (
    <div class="empty failed" role="alert">
      <Icon name="warning" />
      <p class="empty-title">{problem.title}</p>
      {problem.detail && <p><Text>{capital(problem.detail)}</Text></p>}
      {retry && <Button onClick={retry}>Try again</Button>}
    </div>
  );
}

// What is shown while a resource has no data, or a line above data that could not be read again.
export function Shown<T>({ of, rows, children }: {
  of: { data: T | undefined; problem: Problem | undefined; reload: () => void }; rows?: number; children: (data: T) => ComponentChildren;
}) {
  if (of.data === undefined) return of.problem ? <Failed problem={of.problem} retry={of.reload} /> : <Loading {...(rows ? { rows } : {})} />;
  return (
    <>
      {of.problem && of.problem.status !== 0 && <p class="note warning" role="alert"><Icon name="warning" /><Text>{of.problem.message}</Text></p>}
      {children(of.data)}
    </>
  );
}

// The size of an element, from its first layout on.
export function useWidth<T extends HTMLElement>() {
  const ref = useRef<T>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = ref.current;
    if (!element) return;
    const watcher = new ResizeObserver(() => setWidth(element.clientWidth));
    watcher.observe(element);
    setWidth(element.clientWidth);
    return () => watcher.disconnect();
  }, []);
  return [ref, width] as const;
}
