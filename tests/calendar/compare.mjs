// Compares cron_next with npm croner and cron-parser: random expressions, zones and moments, many of them beside changes of clocks.
//
//     node compare.mjs DRIVER COUNT SEED
//
// Where the two agree, so must we. The exception are hours that clocks skip or repeat, for which our rules (cron.h) differ from theirs:
// there a model of these rules decides, which looks at every minute. Prints what differs; exits with 1 if anything does.

import { spawnSync } from "node:child_process";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.MODULES ?? "."}/`);
const { Cron } = require("croner");
const { CronExpressionParser } = require("cron-parser");

const [driver, count, seed] = [process.argv[2], Number(process.argv[3] ?? 1000), Number(process.argv[4] ?? Date.now() % 1e9)];

let state = seed >>> 0;
function random(n) { // mulberry32
  state = (state + 0x6d2b79f5) >>> 0;
  let t = state;
  t = Math.imul(t ^ (t >>> 15), t | 1);
  t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
  return ((t ^ (t >>> 14)) >>> 0) % n;
}
const pick = (list) => list[random(list.length)];

const months = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const weekdays = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

function name(v, least, names) {
  return names && random(3) === 0 ? names[v - least] : String(v);
}

// Of a list: its text, and its values.
function item(least, most, names) {
  const a = least + random(most - least + 1);
  if (a === most || random(3) > 0) return [name(a, least, names), [a]];
  const b = a + 1 + random(most - a), step = random(2) ? 1 + random(Math.min(5, b - a)) : 1;
  const values = [];
  for (let v = a; v <= b; v += step) values.push(v);
  return [`${name(a, least, names)}-${name(b, least, names)}${step > 1 ? `/${step}` : ""}`, values];
}

// cron-parser refuses lists that name a value twice.
function list(least, most, names) {
  const texts = [], taken = new Set();
  for (let n = 1 + random(3); n > 0; n--) {
    const [text, values] = item(least, most, names);
    if (values.some((v) => taken.has(v))) continue;
    values.forEach((v) => taken.add(v));
    texts.push(text);
  }
  return texts.join(",");
}

function field(least, most, { stars = 3, names, last } = {}) {
  const kind = random(10);
  if (kind < stars) return random(3) ? "*" : `*/${1 + random(Math.min(20, most))}`;
  if (last && kind === 9) return last();
  return list(least, most, names);
}

function expression() {
  // Times near those at which clocks are changed come often.
  const hour = random(2) ? field(0, 23) : pick(["*", "0", "1", "2", "3", "1-3", "0-2", "*/2", "2,3"]);
  const days = random(3) ? "*" : field(1, 31, { last: () => "L" });
  const week = random(3) ? "*" : field(0, 6, { names: weekdays, last: () => `${random(7)}${pick(["L", "#1", "#2", "#5"])}` });
  return [field(0, 59), hour, days, random(3) ? "*" : field(1, 12, { names: months }), week].join(" ");
}

function offset(zone, at) {
  const text = formatter(zone).formatToParts(at).find((p) => p.type === "timeZoneName").value;
  const m = /GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?/.exec(text);
  return m[1] ? (m[1] === "-" ? -1 : 1) * ((Number(m[2]) * 60 + Number(m[3])) * 60 + Number(m[4] ?? 0)) : 0;
}
const formatters = new Map();
function formatter(zone) {
  if (!formatters.has(zone)) formatters.set(zone, new Intl.DateTimeFormat("en-US", { timeZone: zone, timeZoneName: "longOffset" }));
  return formatters.get(zone);
}

const DAY = 86400e3;
const FROM = Date.UTC(2023, 0, 1), TO = Date.UTC(2037, 0, 1);

// The moments at which a zone's clocks are changed.
const changes = new Map();
function changesOf(zone) {
  if (changes.has(zone)) return changes.get(zone);
  const found = [];
  let previous = offset(zone, FROM);
  for (let at = FROM; at < TO; at += 7 * DAY) {
    const now = offset(zone, at);
    if (now !== previous) {
      let [low, high] = [at - 7 * DAY, at];
      while (high - low > 1000) {
        const middle = Math.floor((low + high) / 2000) * 1000;
        if (offset(zone, middle) === previous) low = middle;
        else high = middle;
      }
      found.push(high);
    }
    previous = now;
  }
  changes.set(zone, found);
  return found;
}

function ask(lines) {
  const { stdout } = spawnSync(driver, { input: lines.map((l) => `${l.join("\t")}\n`).join(""), maxBuffer: 1 << 30 });
  const found = stdout.toString().split("\n").slice(0, -1);
  if (found.length !== lines.length) throw new Error(`${found.length} answers to ${lines.length} questions`);
  return found;
}

// Node may have older rules than the system: zones for which they differ cannot be compared.
const known = Intl.supportedValuesOf("timeZone").concat("UTC");
const theirs = ask(known.map((zone) => ["", zone, FROM]));
const END = FROM + 14 * 365 * DAY;
const zones = known.filter((zone, i) => {
  const own = changesOf(zone).filter((x) => x < END - 7 * DAY).map((x) => Math.round(x / 1000));
  const system = theirs[i].split(" ").filter(Boolean).map(Number).filter((x) => x < END - 7 * DAY).map((x) => Math.round(x / 1000));
  return !theirs[i].startsWith("refused") && own.length === system.length && own.every((x, n) => Math.abs(x - system[n]) <= 1);
});
if (zones.length < known.length * 0.8) throw new Error(`only ${zones.length} of ${known.length} zones have the same rules in Node and here`);

function moment(zone) {
  const near = changesOf(zone);
  if (near.length > 0 && random(3) > 0) return pick(near) + (random(8 * 3600) - 4 * 3600) * 1000;
  if (random(10) === 0) return Date.UTC(2024 + 4 * random(3), 1, 27) + random(3 * 86400) * 1000; // before a leap day
  return FROM + random((TO - FROM) / 1000) * 1000;
}

function croner(expr, zone, after) {
  try {
    return new Cron(expr, { timezone: zone, paused: true }).nextRun(new Date(after))?.getTime() ?? -1;
  } catch (e) {
    return "refused";
  }
}

function parser(expr, zone, after) {
  try {
    return CronExpressionParser.parse(expr, { tz: zone, currentDate: new Date(after) }).next().getTime();
  } catch (e) {
    return "refused";
  }
}

// Whether clocks are changed near this moment: our rules differ from theirs there.
const isAtChange = (zone, at) => changesOf(zone).some((x) => x - 4 * 3600e3 <= at && at <= x + 4 * 3600e3);

// The next moment by our rules, minute by minute; undefined: not within four days.
function model(expr, zone, after) {
  const fields = CronExpressionParser.parse(expr, { tz: zone }).fields;
  const [minute, hour, day, , week] = expr.split(" ");
  const real = /^\*|,\*/.test(minute) || /^\*|,\*/.test(hour);
  const matches = (local) => {
    const d = new Date(local), length = new Date(Date.UTC(d.getUTCFullYear(), d.getUTCMonth() + 1, 0)).getUTCDate();
    const isDay = fields.dayOfMonth.values.includes(d.getUTCDate()) || (day === "L" && d.getUTCDate() === length);
    const single = /^(\d)(L|#(\d))$/.exec(week);
    const isWeek = single
      ? d.getUTCDay() === Number(single[1]) && (single[3] ? Math.ceil(d.getUTCDate() / 7) === Number(single[3]) : d.getUTCDate() + 7 > length)
      : fields.dayOfWeek.values.includes(d.getUTCDay());
    const byDays = day === "*" ? week === "*" || isWeek : week === "*" ? isDay : isDay || isWeek;
    return byDays && fields.month.values.includes(d.getUTCMonth() + 1) && fields.hour.values.includes(d.getUTCHours()) &&
      fields.minute.values.includes(d.getUTCMinutes());
  };
  const seen = new Set();
  const start = Math.floor(after / 60e3) * 60e3;
  let shown = start - 6 * 3600e3 + offset(zone, start - 6 * 3600e3) * 1000 - 60e3;
  for (let at = start - 6 * 3600e3; at < start + 4 * DAY; at += 60e3) {
    const local = at + offset(zone, at) * 1000;
    const from = real ? local : Math.min(shown + 60e3, local); // what clocks skip counts as shown now
    let fires = false;
    for (let l = from; l <= local; l += 60e3) {
      fires ||= matches(l) && (real || !seen.has(l));
      seen.add(l);
    }
    shown = local;
    if (fires && at > after) return at;
  }
  return undefined;
}

const cases = Array.from({ length: count }, () => {
  const zone = pick(zones);
  return { expr: expression(), zone, after: moment(zone) };
});
const answers = ask(cases.map((c) => [c.expr, c.zone, c.after])).map((l) => (l.startsWith("refused") ? l : Number(l)));

const iso = (v) => (typeof v === "number" && v >= 0 ? new Date(v).toISOString() : v);
const sums = { same: 0, change: 0, apart: 0, differ: 0 };
cases.forEach((c, i) => {
  const [a, b] = [croner(c.expr, c.zone, c.after), parser(c.expr, c.zone, c.after)];
  const ours = typeof answers[i] === "string" ? "refused" : answers[i];
  if (ours !== "refused" && ((a >= 0 && isAtChange(c.zone, a)) || isAtChange(c.zone, ours) || isAtChange(c.zone, c.after))) {
    const want = model(c.expr, c.zone, c.after);
    sums.change++;
    if (want !== undefined && want !== ours) {
      sums.differ++;
      console.log(`differs: ${c.expr} | ${c.zone} after ${iso(c.after)}: by the rules ${iso(want)}, here ${iso(ours)}`);
    }
  } else if (a !== b) {
    sums.apart++;
    if (process.env.APART) console.log(`apart: ${c.expr} | ${c.zone} after ${iso(c.after)}: croner ${iso(a)}, cron-parser ${iso(b)}, here ${iso(answers[i])}`);
  } else if (ours !== a) {
    sums.differ++;
    console.log(`differs: ${c.expr} | ${c.zone} after ${iso(c.after)}: both ${iso(a)}, here ${iso(answers[i])}`);
  } else {
    sums.same++;
  }
});
console.log(`seed ${seed}: ${sums.same} as both say, ${sums.change} at changes of clocks, ${sums.apart} where those two differ, ${sums.differ} wrong; ${zones.length} of ${known.length} zones`);
process.exit(sums.differ > 0 ? 1 : 0);
