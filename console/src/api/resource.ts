// What a page shows of the server: read when it is opened, again after `every` ms while the tab is in view, and at once
// after a change. What was read stays on the page while it is read again, and while the server does not answer.
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { call, Problem } from "./client.ts";

export interface Resource<T> {
  data: T | undefined;
  problem: Problem | undefined;
  at: number; // when `data` was read
  reload: () => void;
  replace: (data: T) => void;
}

const KEPT = 40;
const kept = new Map<string, { data: unknown; at: number }>();

function keep(path: string, data: unknown) {
  kept.delete(path);
  kept.set(path, { data, at: Date.now() });
  if (kept.size > KEPT) kept.delete(kept.keys().next().value as string);
}

const others = new Set<() => void>();

// What else is kept of the one who is signed in, as texts that are not stored yet.
export const onForget = (forget: () => void) => void others.add(forget);

export const forgetRead = () => kept.clear();

export function forgetAll() {
  forgetRead();
  for (const forget of others) forget();
}

export function useResource<T>(path: string | null, every = 0): Resource<T> {
  const old = path ? kept.get(path) : undefined;
  const [state, setState] = useState<{ path: string | null; data?: T; at: number; problem?: Problem }>({
    path, at: old?.at ?? 0, ...(old ? { data: old.data as T } : {}),
  });
  const turn = useRef(0);
  const read = useCallback(async () => {
    if (!path) return;
    const mine = ++turn.current;
    try {
      const data = await call<T>(path);
      if (mine !== turn.current) return;
      keep(path, data);
      setState({ path, data, at: Date.now() });
    } catch (cause) {
      if (mine !== turn.current) return;
      const problem = cause instanceof Problem ? cause : new Problem(0, "bug", "The page failed", String(cause));
      setState((was) => (was.path === path ? { ...was, problem } : { path, at: 0, problem }));
    }
  }, [path]);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOpen = true;
    const again = async () => {
      clearTimeout(timer);
      await read();
      if (isOpen && every > 0 && !document.hidden) timer = setTimeout(again, every);
    };
    const onShow = () => {
      if (!document.hidden && every > 0) void again();
    };
    void again();
    document.addEventListener("visibilitychange", onShow);
    return () => {
      isOpen = false;
      turn.current += 1;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onShow);
    };
  }, [read, every]);
  const replace = useCallback((data: T) => {
    turn.current += 1;
    if (path) keep(path, data);
    setState({ path, data, at: Date.now() });
  }, [path]);
  const isMine = state.path === path;
  return {
    data: isMine ? state.data : (old?.data as T | undefined),
    problem: isMine ? state.problem : undefined,
    at: isMine ? state.at : (old?.at ?? 0),
    reload: () => void read(),
    replace,
  };
}
