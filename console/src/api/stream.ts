// Server-sent events. A page has one stream, and a tab out of view has none, because browsers open few connections to a
// host. A page that comes back into view is told by `onOpen`, and reads what it missed.
import { useEffect, useRef } from "preact/hooks";
import { effect, signal } from "@preact/signals";
import { heard, silentSince, unheard } from "./client.ts";

export const streaming = signal<"off" | "opening" | "open" | "lost">("off");

// As many changes in a second as a page has a use for; of more than these it is told by a `gap`. A server of an earlier
// version, as there may be during an upgrade, refuses the parameter: a stream that is refused is asked for in turn without
// it and with it.
export const PACE = { per_second: "50" };

export function withoutPace(path: string): string {
  const [place, query = ""] = path.split("?") as [string, string?];
  const rest = new URLSearchParams(query);
  for (const name of Object.keys(PACE)) rest.delete(name);
  return rest.size > 0 ? `${place}?${rest}` : place;
}

let isPaced = true; // which of the two the server took last
const SOON = 2000;

// Does it soon, and once for all that ask for it until then.
export function useSoon(act: () => void): () => void {
  const latest = useRef(act);
  latest.current = act;
  const timer = useRef<ReturnType<typeof setTimeout>>();
  const last = useRef(0);
  useEffect(() => () => clearTimeout(timer.current), []);
  return () => {
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      last.current = Date.now();
      latest.current();
    }, Math.max(0, last.current + SOON - Date.now()));
  };
}

export interface Handlers {
  onOpen?: () => void;
  onRefused: () => void; // reads what the page shows: that tells whether one is signed out, or there is no server, or no stream alone
  latestOnly?: string; // events of this name that come fast one after the other: the latest counts, the others are not even parsed
  on: Record<string, (data: unknown, event: MessageEvent) => void>;
}

const APART = 200; // between two of those
const AGAIN_FIRST = 200; // after a refusal ...
const AGAIN = 3000; // ... and after further ones, twice as long each time
const AGAIN_MAX = 60_000;
// A connection can die without a word, and a page does not see what keeps a quiet one alive. So it is made anew after such
// a silence, and when the server answers again after it did not.
const QUIET = 60_000;

export function useStream(path: string | null, handlers: Handlers) {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    if (!path) return;
    let source: EventSource | undefined;
    let refusals = 0;
    let again: ReturnType<typeof setTimeout> | undefined;
    let due: ReturnType<typeof setTimeout> | undefined;
    let last: MessageEvent<string> | undefined;
    let quiet: ReturnType<typeof setTimeout> | undefined;
    let isDoubtful = false; // the server did not answer while the stream seemed to be open
    const take = (name: string, event: MessageEvent<string>) => latest.current.on[name]?.(JSON.parse(event.data), event);
    const takeLast = () => {
      due = undefined;
      const event = last;
      last = undefined;
      if (event) take(event.type, event);
    };
    const close = () => {
      clearTimeout(again);
      clearTimeout(due);
      clearTimeout(quiet);
      takeLast();
      source?.close();
      source = undefined;
      streaming.value = "off";
    };
    const listen = () => {
      clearTimeout(quiet);
      quiet = setTimeout(() => open(true), QUIET);
    };
    const open = (isRenewed = false) => {
      close();
      const mine = new EventSource(isPaced ? path : withoutPace(path));
      source = mine;
      streaming.value = isRenewed ? "open" : "opening";
      listen();
      mine.onopen = () => {
        streaming.value = "open";
        refusals = 0;
        isDoubtful = false;
        heard();
        listen();
        if (!isRenewed) latest.current.onOpen?.();
      };
      mine.onerror = () => {
        if (source !== mine) return;
        streaming.value = "lost";
        if (mine.readyState !== EventSource.CLOSED) {
          unheard();
          return;
        }
        isPaced = !isPaced;
        again = setTimeout(open, refusals === 0 ? AGAIN_FIRST : Math.min(AGAIN * 2 ** (refusals - 1), AGAIN_MAX));
        refusals += 1;
        latest.current.onRefused();
      };
      for (const name of Object.keys(latest.current.on)) {
        mine.addEventListener(name, (event) => {
          heard();
          listen();
          if (name === latest.current.latestOnly) {
            last = event as MessageEvent<string>;
            due ??= setTimeout(takeLast, APART);
          } else take(name, event as MessageEvent<string>);
          if (name === "end") close();
        });
      }
    };
    const onShow = () => (document.hidden ? close() : source || open());
    if (!document.hidden) open();
    document.addEventListener("visibilitychange", onShow);
    const unwatch = effect(() => {
      if (silentSince.value !== null) isDoubtful = streaming.peek() === "open";
      else if (isDoubtful) {
        isDoubtful = false;
        if (source) open();
      }
    });
    return () => {
      unwatch();
      document.removeEventListener("visibilitychange", onShow);
      close();
    };
  }, [path]);
}
