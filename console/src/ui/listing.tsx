// A text with the numbers of its lines, to be read and copied.
import { Copy, Text } from "./basics.tsx";

const SHOWN = 5000; // lines

export function Listing({ text, name }: { text: string; name: string }) {
  const lines = text.replace(/\n$/, "").split("\n");
  return (
    <div class="text-block">
      <div class="json-copy"><Copy text={text} label={`Copy ${name}`} /></div>
      <div class="listing" tabIndex={0} role="group" aria-label={name}>
        <ol>{lines.slice(0, SHOWN).map((line, n) => <li key={n}><Text>{line || " "}</Text></li>)}</ol>
        {lines.length > SHOWN && <p class="muted">and {lines.length - SHOWN} more lines: copy them all</p>}
      </div>
    </div>
  );
}
