// Parts of a page that are shown one at a time.
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

export interface Tab {
  name: string;
  label: string;
  show: () => ComponentChildren;
}

export function Tabs({ tabs, at, onTab, label }: { tabs: Tab[]; at: string; onTab: (name: string) => void; label: string }) {
  const id = useId();
  const tab = tabs.find((t) => t.name === at) ?? (tabs[0] as Tab);
  const onKey = (e: KeyboardEvent) => {
    const by = e.key === "ArrowRight" ? 1 : e.key === "ArrowLeft" ? -1 : 0;
    if (by === 0) return;
    const next = tabs[(tabs.indexOf(tab) + by + tabs.length) % tabs.length] as Tab;
    onTab(next.name);
    document.getElementById(`${id}${next.name}`)?.focus();
  };
  return (
    <section class="panel records">
      <div class="tabs" role="tablist" aria-label={label} onKeyDown={onKey}>
        {tabs.map((t) => (
          <button key={t.name} id={`${id}${t.name}`} type="button" role="tab" aria-selected={t === tab} aria-controls={`${id}panel`} tabIndex={t === tab ? 0 : -1} onClick={() => onTab(t.name)}>{t.label}</button>
        ))}
      </div>
      <div id={`${id}panel`} class="tab-panel" role="tabpanel" aria-labelledby={`${id}${tab.name}`} tabIndex={0}>{tab.show()}</div>
    </section>
  );
}
