// What can be written at a place of a YAML text, by a JSON schema: the keys that an object may have and does not have yet,
// and the values of a key. The text is looked at line by line, because it is rarely whole while somebody writes.
export interface Place {
  path: string[]; // of the object that the place is in; "[]" is an entry of a list
  key: string | null; // the place is in the value of this key; null: a key is being written
  siblings: string[]; // keys that the object has
  from: number; // where the word at the place begins
}

interface Line {
  indent: number;
  column: number; // of the key, after dashes
  dashes: number[]; // columns of the dashes
  key: string | null;
}

const KEY = /^("[^"]*"|'[^']*'|[\w./-]+)\s*:(?=\s|$)/;
const bare = (key: string) => key.replaceAll(/^["']|["']$/g, "");

function lineOf(text: string): Line | null {
  const indent = text.length - text.trimStart().length;
  if (indent === text.length || text[indent] === "#") return null;
  const dashes: number[] = [];
  let column = indent;
  for (let found = /^-(\s+|$)/.exec(text.slice(column)); found; found = /^-(\s+|$)/.exec(text.slice(column))) {
    dashes.push(column);
    column += found[0].length;
  }
  const key = KEY.exec(text.slice(column));
  return { indent, column, dashes, key: key ? bare(key[1] as string) : null };
}

// Brackets that are open at the end of a text that begins after a key or a dash, with what was written in each.
interface Open {
  kind: "{" | "[";
  key: string | null;
  keys: string[];
  from: number; // of the part in writing
}

function openBrackets(text: string): Open[] {
  const open: Open[] = [];
  let quote = "";
  for (let n = 0; n < text.length; n += 1) {
    const c = text[n] as string;
    const inner = open.at(-1);
    if (quote) {
      if (c === quote) quote = "";
    } else if (c === '"' || c === "'") quote = c;
    else if (c === "$" && text[n + 1] === "{") n = Math.max(n, text.indexOf("}", n) === -1 ? text.length : text.indexOf("}", n));
    else if (c === "#" && /\s/.test(text[n - 1] ?? " ")) break;
    else if (c === "{" || c === "[") {
      const key = KEY.exec(text.slice(inner?.from ?? 0, n).trimStart());
      open.push({ kind: c, key: key ? bare(key[1] as string) : null, keys: [], from: n + 1 });
    } else if (c === "}" || c === "]") open.pop();
    else if (c === "," && inner) {
      const key = KEY.exec(text.slice(inner.from, n).trimStart());
      if (key) inner.keys.push(bare(key[1] as string));
      inner.from = n + 1;
    }
  }
  return open;
}

const wordBefore = (text: string) => /[\w.-]*$/.exec(text)?.[0].length ?? 0;

export function placeAt(text: string, at: number): Place | null {
  const before = text.slice(0, at);
  const lines = text.split("\n");
  const n = before.split("\n").length - 1;
  const prefix = before.slice(before.lastIndexOf("\n") + 1);
  if (/(^|\s)#/.test(prefix.replaceAll(/"[^"]*"|'[^']*'/g, ""))) return null;
  const own = lineOf(prefix.trim() === "" ? `${prefix}x` : /-\s*$/.test(prefix) && /^\s*(-\s*)+$/.test(prefix) ? `${prefix}x` : prefix);
  if (!own) return null;
  const rest = prefix.slice(own.column);
  const { path, siblings } = around(lines, n, own);
  const open = openBrackets(rest);
  const inner = open.at(-1);
  if (!inner) {
    const key = KEY.exec(rest);
    const from = at - wordBefore(rest);
    if (!key) return /^[\w.-]*$/.test(rest) ? { path, key: null, siblings, from } : null;
    return { path, key: bare(key[1] as string), siblings, from };
  }
  for (const o of open) {
    if (o.key) path.push(o.key);
    if (o.kind === "[") path.push("[]");
  }
  const part = rest.slice(inner.from).trimStart();
  const from = at - wordBefore(rest);
  if (inner.kind === "[") return { path: path.slice(0, -1), key: "[]", siblings: [], from };
  const later = KEY.exec(part);
  if (later) return { path, key: bare(later[1] as string), siblings: inner.keys, from };
  return /^[\w.-]*$/.test(part) ? { path, key: null, siblings: inner.keys, from } : null;
}

// The keys above that a line belongs to, and those beside it.
function around(lines: string[], n: number, own: Line): { path: string[]; siblings: string[] } {
  const path: string[] = [];
  const siblings: string[] = [];
  let column = own.column; // of the object that is looked for
  let isList = false; // a list's key is looked for; its entries begin at `column`
  const leaveList = (dashes: number[]) => {
    for (const dash of [...dashes].reverse()) {
      path.unshift("[]");
      column = dash;
      isList = true;
    }
  };
  let isBeside = own.dashes.length === 0;
  leaveList(own.dashes);
  for (let i = n - 1; i >= 0; i -= 1) {
    const line = lineOf(lines[i] as string);
    if (!line) continue;
    if (isList) {
      if (line.column > column || line.dashes.includes(column)) continue;
    } else if (line.column > column) continue;
    else if (line.column === column) {
      if (isBeside && line.key) siblings.push(line.key);
      if (line.dashes.length > 0) {
        isBeside = false;
        leaveList(line.dashes);
      }
      continue;
    }
    if (!line.key) continue;
    isBeside = false;
    path.unshift(line.key);
    column = line.column;
    isList = false;
    leaveList(line.dashes);
  }
  for (let i = n + 1; i < lines.length; i += 1) {
    const line = lineOf(lines[i] as string);
    if (!line || line.indent > own.column) continue;
    if (line.column !== own.column || line.dashes.length > 0) break;
    if (line.key) siblings.push(line.key);
  }
  return { path, siblings };
}

export interface Schema {
  [name: string]: unknown;
}

// The schemas that a value may follow, without references. Of `if`, a branch that cannot be ruled out counts.
function variants(root: Schema, schema: unknown, has: string[]): Schema[] {
  if (!schema || typeof schema !== "object") return [];
  const s = schema as Schema;
  const found: Schema[] = [s];
  if (typeof s["$ref"] === "string") {
    const name = /^#\/\$defs\/(.+)$/.exec(s["$ref"])?.[1];
    if (name) found.push(...variants(root, (root["$defs"] as Schema)[name], has));
  }
  for (const word of ["oneOf", "anyOf", "allOf"]) for (const one of (s[word] as unknown[] | undefined) ?? []) found.push(...variants(root, one, has));
  if (s["if"]) {
    const needs = ((s["if"] as Schema)["required"] as string[] | undefined) ?? [];
    const isMet = needs.every((k) => has.includes(k));
    if (isMet) found.push(...variants(root, s["then"], has));
    else found.push(...variants(root, s["else"], has), ...(needs.length > 0 ? variants(root, s["then"], has) : []));
  }
  return found;
}

function inside(root: Schema, schemas: Schema[], key: string, has: string[]): Schema[] {
  return schemas.flatMap((s) => {
    const next = key === "[]" ? s["items"] : ((s["properties"] as Schema | undefined)?.[key] ?? s["additionalProperties"]);
    return variants(root, next, has);
  });
}

export interface Choice {
  label: string;
  info: string;
  isKey: boolean;
  opens: "block" | "list" | "value";
}

export function choicesAt(root: Schema, place: Place): Choice[] {
  let schemas = variants(root, root, place.path.length === 0 ? place.siblings : []);
  place.path.forEach((part, n) => {
    schemas = inside(root, schemas, part, n === place.path.length - 1 ? place.siblings : []);
  });
  return place.key === null ? keysOf(root, schemas, place.siblings) : valuesOf(inside(root, schemas, place.key, []));
}

// A schema that does not know a key that is there already is of another kind: an approval has no agent. A key that none
// knows is a mistake, and rules out nothing.
function keysOf(root: Schema, schemas: Schema[], siblings: string[]): Choice[] {
  const found = new Map<string, Choice>();
  const all = new Set(schemas.flatMap((s) => Object.keys((s["properties"] as object | undefined) ?? {})));
  const known = siblings.filter((k) => all.has(k));
  for (const s of schemas) {
    const properties = s["properties"] as Record<string, unknown> | undefined;
    if (!properties || (s["additionalProperties"] === false && known.some((k) => !(k in properties)))) continue;
    for (const [key, of] of Object.entries(properties)) {
      if (siblings.includes(key) || of === false || found.has(key)) continue;
      const values = variants(root, of, []);
      const title = values.map((v) => v["title"]).find((t) => typeof t === "string");
      const description = values.map((v) => v["description"]).find((t) => typeof t === "string");
      const types = values.flatMap((v) => v["type"] as string | string[] | undefined ?? []);
      const isPlain = types.some((t) => t !== "object" && t !== "array") || values.some((v) => v["enum"] || v["const"] !== undefined);
      found.set(key, {
        label: key, isKey: true, info: [title, description].filter(Boolean).join(". "),
        opens: isPlain || types.length === 0 ? "value" : types.includes("array") ? "list" : "block",
      });
    }
  }
  return [...found.values()];
}

function valuesOf(schemas: Schema[]): Choice[] {
  const found = new Map<string, Choice>();
  const add = (value: unknown, info: unknown) => {
    if (typeof value === "object") return;
    found.set(String(value), { label: String(value), info: typeof info === "string" ? info : "", isKey: false, opens: "value" });
  };
  const info = schemas.map((s) => s["description"]).find((d) => typeof d === "string");
  for (const s of schemas) {
    for (const value of (s["enum"] as unknown[] | undefined) ?? []) add(value, info);
    if (s["const"] !== undefined) add(s["const"], info);
    if (s["type"] === "boolean") for (const value of [true, false]) add(value, info);
  }
  return [...found.values()];
}

// The names of the steps in a text, for `after`.
export const stepNames = (text: string): string[] => [...text.matchAll(/(?:^|[\s{,])-?\s*\{?\s*name:\s*([a-z0-9_-]+)/gm)].map((m) => m[1] as string);
