// An editor for YAML and JSON: mistakes in their place, completion, and a list of the mistakes that lead to their lines. It
// lives in a shadow root, where its library adopts style sheets; in the page it would need inline styles, which are
// forbidden.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, startCompletion, type CompletionContext } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";
import type { Mistake } from "../api/types.ts";
import { Text } from "./basics.tsx";
import type { Choice } from "./complete.ts";
import { plural } from "./format.ts";
import { Icon } from "./icons.tsx";
import { rangeAt, wordsOf, type Found } from "./mistakes.ts";
import { HIDDEN, nameOf } from "./visible.ts";

export type Completer = (text: string, at: number) => { from: number; choices: Choice[] } | null;

const COLOURS = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--go)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.bool, tags.null, tags.number, tags.keyword, tags.typeName, tags.labelName], color: "var(--back)" },
  { tag: [tags.comment, tags.lineComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.punctuation, tags.separator, tags.bracket, tags.squareBracket, tags.brace, tags.meta], color: "var(--muted)" },
]);

const LOOK = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "13px", maxHeight: "var(--editor-height, 68vh)" },
  "&.cm-focused": { outline: "none" }, // the frame shows it: .editor
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6", overflow: "auto", minHeight: "var(--editor-least, 18rem)" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "color-mix(in srgb, var(--focus) 22%, transparent)" },
  ".cm-gutters": { backgroundColor: "var(--raised)", color: "var(--muted)", borderRight: "1px solid var(--line)" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "color-mix(in srgb, var(--hover) 70%, transparent)" },
  ".cm-matchingBracket": { backgroundColor: "var(--go-soft)", outline: "1px solid var(--line-strong)" },
  ".cm-tooltip": { border: "1px solid var(--line-strong)", borderRadius: "6px", backgroundColor: "var(--surface)", color: "var(--text)", boxShadow: "var(--shadow-large)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", maxHeight: "16rem" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--hover)", color: "var(--text)" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 12px", maxWidth: "26rem", font: "400 13px/1.5 var(--font)" },
  ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700", color: "var(--go)" },
  ".cm-diagnostic": { padding: "6px 10px", font: "400 13px/1.5 var(--font)", whiteSpace: "pre-wrap" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--look)" },
  ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)", textUnderlineOffset: "3px" },
  ".cm-lintRange-warning": { backgroundImage: "none", textDecoration: "underline wavy var(--look)", textUnderlineOffset: "3px" },
  ".cm-specialChar": { padding: "0 3px", border: "1px dashed var(--look)", borderRadius: "3px", color: "var(--look)", fontSize: "0.8em" }, // as .hidden-char
  ".cm-gutter-lint": { width: "1.1rem" },
  ".cm-lint-marker": { width: "11px", height: "11px" },
  ".cm-lint-marker-error": { content: "normal", backgroundColor: "var(--bad)", borderRadius: "2px", marginTop: "5px" },
  ".cm-lint-marker-warning": { content: "normal", backgroundColor: "var(--look)", borderRadius: "50%", marginTop: "5px" },
});

// Characters that would hide or reorder other text are shown by their names, as on the other pages. The text keeps them.
function hiddenChar(code: number, description: string | null): HTMLElement {
  const sign = document.createElement("span");
  sign.className = "cm-specialChar";
  sign.textContent = nameOf(code);
  sign.title = description ?? "";
  return sign;
}

function sourceOf(complete: () => Completer | undefined) {
  return (context: CompletionContext) => {
    const found = complete()?.(context.state.doc.toString(), context.pos);
    if (!found || found.choices.length === 0) return null;
    if (!context.explicit && found.from === context.pos && found.choices[0]?.isKey) return null;
    return {
      from: found.from,
      validFor: /^[\w.-]*$/,
      options: found.choices.map((c) => ({
        label: c.label, ...(c.info ? { info: c.info } : {}), type: c.isKey ? "property" : "constant",
        apply: (view: EditorView, _c: unknown, from: number, to: number) => apply(view, c, from, to),
      })),
    };
  };
}

function apply(view: EditorView, choice: Choice, from: number, to: number) {
  const line = view.state.doc.lineAt(from);
  const before = view.state.sliceDoc(line.from, from);
  const column = /^(\s*(?:-\s+)*)$/.exec(before)?.[1]?.length ?? null;
  const isFollowed = /^\s*:/.test(view.state.sliceDoc(to, line.to));
  const space = column === null ? " " : ` ${" ".repeat(column)}`;
  const tail = !choice.isKey || isFollowed ? "" : choice.opens === "value" || column === null ? ": " : choice.opens === "list" ? `:\n${space} - ` : `:\n${space} `;
  const insert = choice.label + tail;
  view.dispatch({ changes: { from, to, insert }, selection: { anchor: from + insert.length }, userEvent: "input.complete" });
  if (choice.isKey) setTimeout(() => startCompletion(view), 0);
}

// `value` is what it begins with: a text that came back later than the next key would undo that key.
export function Editor({ value, format, label, mistakes, isChecked, complete, onValue, onStore }: {
  value: string; format: "yaml" | "json"; label: string; mistakes: Found[]; isChecked: boolean; complete?: Completer; onValue: (text: string) => void; onStore: () => void;
}) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);
  const latest = useRef({ onValue, onStore, complete });
  latest.current = { onValue, onStore, complete };
  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const made = new EditorView({
      root,
      parent: root,
      state: EditorState.create({
        doc: value,
        extensions: [
          highlightSpecialChars({ addSpecialChars: HIDDEN, render: hiddenChar }), lineNumbers(), lintGutter(), history(), drawSelection(), bracketMatching(), closeBrackets(), highlightActiveLine(), highlightActiveLineGutter(),
          indentUnit.of("  "), EditorState.tabSize.of(2), yaml(), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
          ...(format === "yaml" ? [autocompletion({ override: [sourceOf(() => latest.current.complete)], icons: false })] : []),
          keymap.of([
            { key: "Mod-s", run: () => { latest.current.onStore(); return true; }, preventDefault: true },
            ...closeBracketsKeymap, ...completionKeymap, ...lintKeymap, ...historyKeymap, indentWithTab, ...defaultKeymap,
          ]),
          EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
          EditorView.updateListener.of((update) => { if (update.docChanged) latest.current.onValue(update.state.doc.toString()); }),
        ],
      }),
    });
    view.current = made;
    const keep = (e: Event) => e.stopPropagation(); // keys that are written are no keys of the page
    element.addEventListener("keydown", keep);
    return () => {
      element.removeEventListener("keydown", keep);
      made.destroy();
      view.current = null;
    };
  }, [format]);
  useEffect(() => {
    const v = view.current;
    if (!v) return;
    const text = v.state.doc.toString();
    const diagnostics: Diagnostic[] = mistakes.map((m) => ({ ...rangeAt(text, m.line, m.column), severity: m.grade, message: wordsOf(m) }));
    v.dispatch(setDiagnostics(v.state, diagnostics));
  }, [mistakes]);
  const jump = (m: Mistake) => {
    const v = view.current;
    if (!v) return;
    const { from, to } = rangeAt(v.state.doc.toString(), m.line, m.column);
    v.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    v.focus();
  };
  return (
    <div class="editor">
      <div ref={host} class="editor-host" />
      <Mistakes mistakes={mistakes} isChecked={isChecked} onJump={jump} />
    </div>
  );
}

function Mistakes({ mistakes, isChecked, onJump }: { mistakes: Found[]; isChecked: boolean; onJump: (m: Mistake) => void }) {
  const errors = mistakes.filter((m) => m.grade === "error").length;
  const warnings = mistakes.length - errors;
  return (
    <div class="mistakes">
      <p class="mistakes-head" role="status">
        {mistakes.length === 0 ? !isChecked ? <span class="muted">Checking…</span> : <><span class="s-processed"><Icon name="done" /></span> No mistakes</> : <>{errors > 0 && <b class="s-error">{plural(errors, "mistake")}</b>}{warnings > 0 && <b class="s-doubt">{plural(warnings, "warning")}</b>}</>}
      </p>
      {mistakes.length > 0 && (
        <ul>{mistakes.slice(0, 50).map((m, n) => (
          <li key={n}>
            <button type="button" class={`mistake ${m.grade}`} onClick={() => onJump(m)}>
              <span class="mistake-place">{m.line}:{m.column}</span>
              <span>{m.path && <code>{m.path}</code>} <Text>{wordsOf(m)}</Text></span>
            </button>
          </li>
        ))}</ul>
      )}
    </div>
  );
}
