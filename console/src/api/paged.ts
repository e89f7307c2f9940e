// A list that the server hands out in pages: the first is read at once, further ones when they are asked for. While only
// the first is shown, it is read again after `every` ms; with further ones the list stays as it is, and says how old it is.
import { useEffect, useRef, useState } from "preact/hooks";
import { call, Problem } from "./client.ts";

export interface Paged<T> {
  rows: T[] | undefined;
  hasMore: boolean;
  problem: Problem | undefined;
  isReading: boolean;
  stillSince: string | null; // when the first page was read, if the list is not read again by itself
  more: () => void;
  reload: () => void;
}

export function usePaged<T>(path: string | null, member: string, every = 0): Paged<T> {
  const [state, setState] = useState<{ path: string | null; rows?: T[]; next: string | null; pages: number; at: string; problem?: Problem }>({ path, next: null, pages: 0, at: "" });
  const [isReading, setReading] = useState(false);
  const turn = useRef(0);
  const isBusy = useRef(false);
  const read = async (cursor: string | null) => {
    if (!path) return;
    const mine = ++turn.current;
    isBusy.current = true;
    setReading(true);
    const at = new Date().toISOString();
    try {
      const page = await call<Record<string, unknown>>(cursor ? `${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(cursor)}` : path);
      if (mine !== turn.current) return;
      const rows = page[member] as T[];
      setState((was) => ({
        path, next: page["next"] as string | null, rows: cursor && was.path === path ? [...(was.rows ?? []), ...rows] : rows, pages: cursor ? was.pages + 1 : 1,
        at: cursor ? was.at : at,
      }));
    } catch (cause) {
      if (mine !== turn.current) return;
      setState((was) => ({ ...(was.path === path ? was : { path, next: null, pages: 0, at: "" }), problem: cause as Problem }));
    }
    isBusy.current = false;
    setReading(false);
  };
  const latest = useRef(state);
  latest.current = state;
  useEffect(() => {
    void read(null);
    const timer = every > 0 ? setInterval(() => { if (!document.hidden && !isBusy.current && latest.current.pages <= 1) void read(null); }, every) : undefined;
    return () => { turn.current += 1; isBusy.current = false; clearInterval(timer); };
  }, [path, every]);
  const isMine = state.path === path;
  return {
    rows: isMine ? state.rows : undefined, hasMore: isMine && state.next !== null, problem: isMine ? state.problem : undefined, isReading,
    stillSince: isMine && every > 0 && state.pages > 1 ? state.at : null,
    more: () => void read(state.next), reload: () => void read(null),
  };
}
