// A field that narrows the list below it.
import { Icon } from "./icons.tsx";

export function Search({ label, value, onValue }: { label: string; value: string; onValue: (text: string) => void }) {
  return (
    <div class="narrow">
      <Icon name="search" />
      <input type="search" aria-label={label} placeholder={label} value={value} autocomplete="off" spellcheck={false} onInput={(e) => onValue(e.currentTarget.value)} />
    </div>
  );
}
