// Server-sent events. A page has one stream, and a tab out of view has none, because browsers open few connections to a
// host. A page that comes back into view is told by `onOpen`, and reads what it missed.
import { useEffect, useRef } from "preact/hooks";
import { signal } from "@preact/signals";
import { heard, unheard } from "./client.ts";

export const streaming = signal<"off" | "opening" | "open" | "lost">("off");

export interface Handlers {
  onOpen?: () => void;
  on: Record<string, (data: unknown, event: MessageEvent) => void>;
}

export function useStream(path: string | null, handlers: Handlers) {
  const latest = useRef(handlers);
  latest.current = handlers;
  useEffect(() => {
    if (!path) return;
    let source: EventSource | undefined;
    let again: ReturnType<typeof setTimeout> | undefined;
    const close = () => {
      clearTimeout(again);
      source?.close();
      source = undefined;
      streaming.value = "off";
    };
    const open = () => {
      close();
      const mine = new EventSource(path);
      source = mine;
      streaming.value = "opening";
      mine.onopen = () => {
        streaming.value = "open";
        heard();
        latest.current.onOpen?.();
      };
      mine.onerror = () => {
        if (source !== mine) return;
        streaming.value = "lost";
        unheard();
        if (mine.readyState === EventSource.CLOSED) again = setTimeout(open, 3000);
      };
      for (const name of Object.keys(latest.current.on)) {
        mine.addEventListener(name, (event) => {
          heard();
          latest.current.on[name]?.(JSON.parse((event as MessageEvent<string>).data), event as MessageEvent);
          if (name === "end") close();
        });
      }
    };
    const onShow = () => (document.hidden ? close() : source || open());
    if (!document.hidden) open();
    document.addEventListener("visibilitychange", onShow);
    return () => {
      document.removeEventListener("visibilitychange", onShow);
      close();
    };
  }, [path]);
}
