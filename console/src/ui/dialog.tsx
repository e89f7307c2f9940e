// A dialog over the page. Its form is sent by its button or Ctrl+Enter, and Escape closes it.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { Copy, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";

export function Dialog({ title, onClose, onSubmit, children, foot, wide = false, isFirm = false }: {
  title: ComponentChildren; onClose: () => void; onSubmit?: () => void; children: ComponentChildren; foot?: ComponentChildren; wide?: boolean;
  isFirm?: boolean; // closed by its own buttons only
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const label = useId();
  useEffect(() => {
    const dialog = ref.current as HTMLDialogElement;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref} class={`dialog ${wide ? "wide" : ""}`} aria-labelledby={label}
      onCancel={(e) => { e.preventDefault(); if (!isFirm) onClose(); }}
      onKeyDown={(e) => {
        if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) ref.current?.querySelector("form")?.requestSubmit();
      }}
    >
      <form onSubmit={(e) => { e.preventDefault(); onSubmit?.(); }}>
        <header class="dialog-head">
          <h2 id={label}>{title}</h2>
          {!isFirm && <button type="button" class="icon-button" aria-label="Close" onClick={onClose}><Icon name="close" /></button>}
        </header>
        <div class="dialog-body">{children}</div>
        {foot && <footer class="dialog-foot">{foot}</footer>}
      </form>
    </dialog>
  );
}

export function Field({ label, hint, problem, children }: {
  label: string; hint?: ComponentChildren; problem?: string | null | undefined; children: (id: string, described: string | undefined) => ComponentChildren;
}) {
  const id = useId();
  const described = hint || problem ? `${id}-hint` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, described)}
      {(hint || problem) && <p id={described} class={problem ? "field-problem" : "field-hint"}>{problem || hint}</p>}
    </div>
  );
}

export function JsonInput({ id, value, onValue, described, rows = 7 }: {
  id: string; value: string; onValue: (text: string) => void; described?: string | undefined; rows?: number;
}) {
  return (
    <textarea id={id} class="code" rows={rows} spellcheck={false} autocomplete="off" value={value} aria-describedby={described}
      onInput={(e) => onValue(e.currentTarget.value)} />
  );
}

// The value that a text says, or why it is none.
export function readJson(text: string): { value: unknown } | { mistake: string } {
  try {
    return { value: JSON.parse(text) };
  } catch (cause) {
    return { mistake: text.trim() === "" ? "Enter a JSON value: an object, a text in quotes, a number, true, false or null." : `This is not JSON: ${(cause as Error).message}` };
  }
}

export function CommandLine({ line }: { line: string }) {
  return (
    <div class="command-line">
      <Icon name="terminal" />
      <code><Text>{line}</Text></code>
      <Copy text={line} label="Copy the command" />
    </div>
  );
}
