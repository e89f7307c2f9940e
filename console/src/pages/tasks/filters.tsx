// The filters of the list: states as switches, the rest as parts that can be added and removed.
import { useState } from "preact/hooks";
import { useResource } from "../../api/resource.ts";
import type { WorkflowList } from "../../api/types.ts";
import { Button, Text } from "../../ui/basics.tsx";
import { Field } from "../../ui/dialog.tsx";
import { fromQuery, isEmpty, parts, STATES, toQuery, unknownTexts, withoutUnknown, type TaskFilter } from "../../ui/filter.ts";
import { Icon, StateSign } from "../../ui/icons.tsx";
import { plain } from "../../ui/visible.ts";

const AGES = [["", "Any time"], ["15m", "15 minutes"], ["1h", "Hour"], ["24h", "Day"], ["7d", "Week"]] as const;

export function Filters({ filter, onChange }: { filter: TaskFilter; onChange: (next: TaskFilter) => void }) {
  const [isOpen, setOpen] = useState(false);
  const toggle = (state: string) => {
    const states = filter.states.includes(state) ? filter.states.filter((s) => s !== state) : [...filter.states, state];
    onChange({ ...filter, states: STATES.filter((s) => states.includes(s)) });
  };
  const found = parts(filter);
  return (
    <div class="filters">
      {filter.unknown && <Unknown filter={filter} onChange={onChange} />}
      <div class="filter-line">
        <div class="switches" role="group" aria-label="States">
          {WORST_FIRST.map((s) => (
            <button key={s} type="button" class={`switch s-${s}`} aria-pressed={filter.states.includes(s)} onClick={() => toggle(s)}><StateSign state={s} />{s}</button>
          ))}
        </div>
        <Button icon="filter" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>More filters</Button>
        <select class="filter-age" aria-label="Submitted within" value={filter.submitted_after ?? ""} onChange={(e) => {
          const { submitted_after: _, ...rest } = filter;
          onChange(e.currentTarget.value ? { ...rest, submitted_after: e.currentTarget.value } : rest);
        }}>
          {AGES.map(([v, label]) => <option key={v} value={v}>{label}</option>)}
          {filter.submitted_after && !AGES.some(([v]) => v === filter.submitted_after) && <option value={filter.submitted_after}>since {filter.submitted_after}</option>}
        </select>
      </div>
      {found.length > 0 && (
        <ul class="parts" aria-label="Filters in use">
          {found.map((p) => (
            <li key={p.name + p.text}>
              <button type="button" class="part" title="Remove" aria-label={`Remove the filter: ${plain(p.text)}`} onClick={() => onChange(p.without)}>{plain(p.text)}<Icon name="close" /></button>
            </li>
          ))}
          {!isEmpty(filter) && <li><Button kind="quiet" onClick={() => onChange({ states: [], ids: [], tags: [] })}>Remove all</Button></li>}
        </ul>
      )}
      {isOpen && <More filter={filter} onChange={(next) => { setOpen(false); onChange(next); }} onClose={() => setOpen(false)} />}
    </div>
  );
}

// An operation on all would reach more tasks than the address asks for: the page offers none until these are removed.
function Unknown({ filter, onChange }: { filter: TaskFilter; onChange: (next: TaskFilter) => void }) {
  return (
    <p class="note warning" role="alert">
      <Icon name="warning" />
      <span>This address has filters that are not known: <Text>{unknownTexts(filter).join(", ")}</Text>. The list does not obey them.</span>
      <Button kind="quiet" onClick={() => onChange(withoutUnknown(filter))}>Remove them</Button>
    </p>
  );
}

// On a phone the first ones are in view.
const WORST_FIRST = ["error", ...STATES.filter((s) => s !== "error")] as const;

const TEXTS = [
  ["workflow", "Workflow", "order"], ["version", "Version", "3"], ["step", "At step", "charge"], ["agent", "Agent", "bank"], ["error", "Error code", "declined"],
  ["submitted_after", "Submitted after", "2026-01-31T10:00:00Z or 2h"], ["submitted_before", "Submitted before", "2026-01-31T10:00:00Z or 2h"],
  ["ended_after", "Ended after", "2026-01-31T10:00:00Z or 2h"], ["ended_before", "Ended before", "2026-01-31T10:00:00Z or 2h"],
  ["root", "Descendants of", "o-17"], ["id_prefix", "Id begins with", "o-1"], ["ids", "Ids", "o-17, o-18"], ] as const;
const CHOICES = [["paused", "Paused"], ["closed", "Closed"], ["children", "Children"]] as const;

function More({ filter, onChange, onClose }: { filter: TaskFilter; onChange: (next: TaskFilter) => void; onClose: () => void }) {
  const workflows = useResource<WorkflowList>("/v1/workflows").data?.workflows ?? [];
  const send = (form: HTMLFormElement) => {
    const given = new FormData(form);
    const query = toQuery({ states: filter.states, ids: [], tags: [], ...(filter.parent ? { parent: filter.parent } : {}), ...(filter.unknown ? { unknown: filter.unknown } : {}) });
    for (const [name, value] of given) {
      const text = String(value).trim();
      if (text === "" || name === "tags") continue;
      query.set(name, text);
    }
    for (const tag of String(given.get("tags") ?? "").split("\n")) {
      const cut = tag.indexOf("=");
      if (cut > 0) query.set(`tag.${tag.slice(0, cut).trim()}`, tag.slice(cut + 1).trim());
    }
    onChange(fromQuery(query));
  };
  const value = (name: string): string =>
    name === "ids" ? filter.ids.join(", ") : String(filter[name as "workflow"] ?? "");
  return (
    <form class="more-filters" onSubmit={(e) => { e.preventDefault(); send(e.currentTarget); }}>
      {TEXTS.map(([name, label, example]) => (
        <Field key={name} label={label}>{(id) => (
          <input id={id} name={name} defaultValue={value(name)} placeholder={example} autocomplete="off" spellcheck={false} {...(name === "workflow" ? { list: "workflow-names" } : {})} />
        )}</Field>
      ))}
      <Field label="Tags, one a line">{(id) => (
        <textarea id={id} name="tags" rows={1} defaultValue={filter.tags.map(([k, v]) => `${k}=${v}`).join("\n")} placeholder="shop=berlin" spellcheck={false} />
      )}</Field>
      {CHOICES.map(([name, label]) => (
        <Field key={name} label={label}>{(id) => (
          <select id={id} name={name} defaultValue={value(name)}>
            <option value="">any</option><option value="true">yes</option><option value="false">no</option>
          </select>
        )}</Field>
      ))}
      <datalist id="workflow-names">{workflows.map((w) => <option key={w.name} value={w.name} />)}</datalist>
      <div class="more-foot"><Button onClick={onClose}>Close</Button><Button kind="primary" type="submit">Filter</Button></div>
    </form>
  );
}
