// Text of others is shown as it is, but for characters that would hide or reorder other text: each of these is shown by
// its name.
export const HIDDEN =
  /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u00AD\u061C\u180E\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E007F}]/gu;

export interface Piece {
  text: string;
  isHidden: boolean; // a name in place of the character
}

export const nameOf = (code: number) => `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;

export function pieces(text: string): Piece[] {
  const found: Piece[] = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (match.index > from) found.push({ text: text.slice(from, match.index), isHidden: false });
    const code = match[0].codePointAt(0) as number;
    found.push({ text: nameOf(code), isHidden: true });
    from = match.index + match[0].length;
  }
  if (from < text.length) found.push({ text: text.slice(from), isHidden: false });
  return found;
}

// The same for places that take a string only: titles, labels.
export const plain = (text: string) => pieces(text).map((p) => (p.isHidden ? `[${p.text}]` : p.text)).join("");

const escaped = (text: string) => text.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

// A value as JSON that people edit. Hidden characters are escaped: they are seen, and the JSON means the same.
export const visibleJson = (value: unknown) => JSON.stringify(value, null, 2).replaceAll(HIDDEN, escaped);
