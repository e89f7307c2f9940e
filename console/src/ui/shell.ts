// The command line that does the same, quoted for a POSIX shell.
export function quote(word: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

// `parts`: words, and pairs of a flag with its value; a pair without a value is left out.
export function commandLine(parts: (string | [flag: string, value: string | undefined])[]): string {
  const words = parts.flatMap((part) => {
    if (typeof part === "string") return [quote(part)];
    return part[1] === undefined ? [] : [part[0], quote(part[1])];
  });
  return ["intact", ...words].join(" ");
}

// The words of a command that the server shows, as `intact retry o-17 --step pay --reason '...'`.
export function words(line: string): string[] {
  const found: string[] = [];
  for (const match of line.matchAll(/(?:'[^']*'|\\.|[^\s'])+/g)) found.push(match[0].replaceAll(/'([^']*)'|\\(.)/g, "$1$2"));
  return found;
}
