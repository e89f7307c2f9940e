import assert from "node:assert/strict";
import test from "node:test";
import { ago, bytes, countTo, duration, exact, exactly, moment, plural } from "../src/ui/format.ts";
import { pieces, plain, visibleJson } from "../src/ui/visible.ts";
import { commandLine, quote, words } from "../src/ui/shell.ts";

test("durations are written like those of the command line", () => {
  const cases: [number, string][] = [
    [0, "0ms"], [999, "999ms"], [1000, "1.0s"], [4230, "4.2s"], [9949, "9.9s"], [9951, "10s"], [59_499, "59s"], [59_700, "1m 00s"], [63_000, "1m 03s"],
    [3_599_600, "1h 00m"], [7_500_000, "2h 05m"], [86_400_000, "1d 0h"], [100 * 86_400_000, "100d 0h"], [-1500, "-1.5s"],
  ];
  for (const [ms, text] of cases) assert.equal(duration(ms), text, String(ms));
});

test("an age says on which side of now it is", () => {
  assert.equal(ago(0, 5000), "5.0s ago");
  assert.equal(ago(5000, 0), "in 5.0s");
  assert.equal(ago(400, 0), "now");
});

test("a moment is as short as it may be", () => {
  const now = new Date(2026, 10, 29, 12, 0, 0).getTime();
  assert.equal(moment(new Date(2026, 10, 29, 3, 4, 5, 6).getTime(), now), "03:04:05");
  assert.equal(moment(new Date(2026, 10, 29, 3, 4, 5, 6).getTime(), now, true), "03:04:05.006");
  assert.equal(moment(new Date(2026, 0, 2, 3, 4, 5).getTime(), now), "2 Jan, 03:04:05");
  assert.equal(moment(new Date(2025, 0, 2, 3, 4, 5).getTime(), now), "2 Jan 2025, 03:04:05");
});

test("an exact time says the milliseconds, in the reader's zone and in UTC", () => {
  const at = new Date(2026, 10, 9, 3, 4, 5, 6).getTime();
  assert.equal(exactly(at, "local"), "2026-11-09 03:04:05.006");
  assert.equal(exactly(at, "utc"), new Date(at).toISOString());
  assert.deepEqual(exact(at).split("\n").map((l) => l.slice(0, 10)), ["2026-11-09", new Date(at).toISOString().slice(0, 10)]);
});

test("numbers", () => {
  assert.equal(countTo(10_000, 10_000), "10,000+");
  assert.equal(countTo(9999, 10_000), "9,999");
  assert.equal(plural(1, "task"), "1 task");
  assert.equal(plural(2000, "task is", "tasks are"), "2,000 tasks are");
  assert.equal(bytes(1023), "1023 B");
  assert.equal(bytes(1536), "1.5 KiB");
  assert.equal(bytes(5 * 1024 * 1024), "5.0 MiB");
});

test("characters that hide or reorder others are named", () => {
  assert.deepEqual(pieces("a\u202Eb"), [{ text: "a", isHidden: false }, { text: "U+202E", isHidden: true }, { text: "b", isHidden: false }]);
  assert.equal(plain("\u0007\u200B\uFEFF\u{E0041}"), "[U+0007][U+200B][U+FEFF][U+E0041]");
  assert.equal(plain("Zoë, 漢字, 👩‍🚀 <b>\n\tx"), "Zoë, 漢字, 👩[U+200D]🚀 <b>\n\tx");
  for (const bidi of "\u200E\u200F\u202A\u202B\u202C\u202D\u202E\u2066\u2067\u2068\u2069\u061C") assert.match(plain(bidi), /^\[U\+/);
});

test("JSON that is edited has hidden characters escaped, and means the same", () => {
  const value = { "k\u202E": ["a\u2066b\u0007\u200B\uFEFF\u007F\u2028", "\u{E0041}", "Zoë, 漢字, 😀\n\t\"\\u202E"], n: 1.5, none: null };
  const text = visibleJson(value);
  assert.deepEqual(JSON.parse(text), value);
  assert.equal(plain(text), text, "nothing is hidden");
  assert.ok(text.includes("\\u202e") && text.includes("\\udb40\\udc41") && text.includes("Zoë, 漢字, 😀") && text.includes("\n  "));
});

test("a command line can be pasted into a shell", () => {
  assert.equal(quote("o-17"), "o-17");
  assert.equal(quote("it's $HOME `x`"), "'it'\\''s $HOME `x`'");
  assert.equal(quote(""), "''");
  assert.equal(commandLine(["retry", "o-17", ["--step", undefined], ["--reason", "the bank's back"]]), "intact retry o-17 --reason 'the bank'\\''s back'");
});

test("what is quoted is read back", () => {
  for (const text of ["a b", "it's", "'", "a\\b", "{\"x\": [1, 2]}", "--x", "ü ✓"]) assert.deepEqual(words(`intact ${quote(text)} end`), ["intact", text, "end"]);
});
