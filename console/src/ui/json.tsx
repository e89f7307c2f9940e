// A JSON value as a tree that is drawn only as far as it is opened: long texts and lists are folded.
import { useState } from "preact/hooks";
import { Button, Copy, Text } from "./basics.tsx";
import { bytes, count } from "./format.ts";
import { Icon } from "./icons.tsx";

const TEXT_SHOWN = 400;
const MEMBERS_SHOWN = 50;

export function Json({ value, name }: { value: unknown; name: string }) {
  return (
    <div class="json" role="group" aria-label={name}>
      <div class="json-copy"><Copy text={() => JSON.stringify(value, null, 2)} label={`Copy ${name}`} /></div>
      <Value value={value} depth={0} />
    </div>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value === "string") return <LongText text={value} />;
  if (value === null || typeof value !== "object") return <span class={`json-${value === null ? "null" : typeof value}`}>{String(value)}</span>;
  return <Members value={value} depth={depth} />;
}

function LongText({ text }: { text: string }) {
  const [shown, setShown] = useState(TEXT_SHOWN);
  if (text.length <= shown) return <span class="json-string">"<Text>{text}</Text>"</span>;
  return (
    <span class="json-string">
      "<Text>{text.slice(0, shown)}</Text>…"{" "}
      <button type="button" class="json-more" onClick={() => setShown(shown === TEXT_SHOWN ? 10_000 : shown * 4)}>
        {bytes(text.length - shown)} more
      </button>
    </span>
  );
}

function Members({ value, depth }: { value: object; depth: number }) {
  const isList = Array.isArray(value);
  const keys = isList ? null : Object.keys(value);
  const size = isList ? value.length : (keys as string[]).length;
  const [isOpen, setOpen] = useState(depth < 2 && size <= 100);
  const [shown, setShown] = useState(MEMBERS_SHOWN);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (size === 0) return <span class="json-mark">{open}{close}</span>;
  const what = isList ? `${count(size)} ${size === 1 ? "entry" : "entries"}` : `${count(size)} ${size === 1 ? "member" : "members"}`;
  if (!isOpen) {
    return (
      <button type="button" class="json-fold" aria-expanded="false" onClick={() => setOpen(true)}>
        <Icon name="right" />{open} <span class="json-size">{what}</span> {close}
      </button>
    );
  }
  const list = isList ? value.slice(0, shown).map((v, n) => [String(n), v] as const)
    : (keys as string[]).slice(0, shown).map((k) => [k, (value as Record<string, unknown>)[k]] as const);
  return (
    <>
      <button type="button" class="json-fold" aria-expanded="true" aria-label={`Fold ${what}`} onClick={() => setOpen(false)}><Icon name="down" />{open}</button>
      <ul class="json-members">
        {list.map(([k, v]) => (
          <li key={k}>
            {!isList && <><span class="json-key"><Text>{k}</Text></span>: </>}
            <Value value={v} depth={depth + 1} />
          </li>
        ))}
        {size > shown && <li><button type="button" class="json-more" onClick={() => setShown(shown * 4)}>{count(size - shown)} more</button></li>}
      </ul>
      <span class="json-mark">{close}</span>
    </>
  );
}

// A value under a heading, folded if it is large.
export function Folded({ name, value, isOpen = true }: { name: string; value: unknown; isOpen?: boolean }) {
  const [open, setOpen] = useState(isOpen);
  if (value === null || value === undefined) return null;
  return (
    <div class="folded">
      <Button kind="quiet" icon={open ? "down" : "right"} aria-expanded={open} onClick={() => setOpen(!open)}>{name}</Button>
      {open && <Json value={value} name={name} />}
    </div>
  );
}
