// Keys of the page. They do nothing while somebody writes, or while a dialog is open.
import { useEffect, useRef } from "preact/hooks";

export function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement && target.type === "checkbox") return false;
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));
}

export function useKeys(keys: Record<string, (event: KeyboardEvent) => void>) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || isWriting(event.target)) return;
      if (document.querySelector("dialog[open]")) return;
      const act = latest.current[event.key];
      if (act) act(event);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
}
