// The commands that `why` suggests, as buttons: `intact retry o-17 --step pay --reason '...'` opens the form of retry with
// that step.
import { words } from "../ui/shell.ts";
import { verb, type Arguments, type VerbName } from "./verbs.ts";

export type Suggestion =
  | { kind: "verb"; verb: VerbName; task: string; given: Arguments; line: string }
  | { kind: "link"; label: string; href: string; line: string }
  | { kind: "signal"; task: string; name: string; line: string }
  | { kind: "decide"; task: string; step: string; agrees: boolean; asking?: number; line: string }
  | { kind: "breaker"; agent: string; line: string }
  | { kind: "line"; line: string };

export interface Moves {
  text: string;
  commands: Suggestion[];
}

export function movesOf(moves: string): Moves {
  const lines = moves.split("\n");
  return {
    // The flag has a button here.
    text: lines.filter((l) => !l.startsWith("intact ")).join(" ").replace("resolve it with --effect none", "say that it took no effect"),
    commands: lines.filter((l) => l.startsWith("intact ")).map(suggestion),
  };
}

function parse(line: string) {
  const flags = new Map<string, string>();
  const names: string[] = [];
  const all = words(line).slice(1);
  for (let n = 0; n < all.length; n += 1) {
    const word = all[n] as string;
    if (word === "--") continue;
    if (/^--[a-z]/.test(word)) flags.set(word, all[++n] ?? "");
    else names.push(word);
  }
  return { flags, names };
}

export function suggestion(line: string): Suggestion {
  const { flags, names } = parse(line);
  const [first = "", second = "", third = ""] = names;
  if (verb(first)) {
    const given: Arguments = {};
    const step = flags.get("--step");
    const from = flags.get("--from");
    const attempt = flags.get("--attempt");
    if (step) given.step = step;
    if (from) given.from = from;
    if (attempt) given.attempt = Number(attempt);
    return { kind: "verb", verb: first as VerbName, task: second, given, line };
  }
  const task = encodeURIComponent(second);
  if (first === "why" || first === "get") {
    const other = flags.get("--server");
    return other ? { kind: "line", line } : { kind: "link", label: `Open ${second}`, href: `/tasks/${task}`, line };
  }
  if (first === "signal") return { kind: "signal", task: second, name: third, line };
  if (first === "approve" || first === "reject") {
    const asking = flags.get("--asking");
    return { kind: "decide", task: second, step: third, agrees: first === "approve", line, ...(asking ? { asking: Number(asking) } : {}) };
  }
  if (first === "agent" && second === "close") return { kind: "breaker", agent: third, line };
  if (first === "agent" && second === "get") return { kind: "link", label: `Agent ${third}`, href: `/agents?agent=${encodeURIComponent(third)}`, line };
  if (first === "agent") return { kind: "link", label: "Agents", href: "/agents", line };
  if (first === "node") return { kind: "link", label: "Nodes", href: "/nodes", line };
  return { kind: "line", line };
}
