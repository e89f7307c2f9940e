// Lines of measure.mjs, several rounds of each peer: the table with medians and spreads, what Intact is beside each, and whether the
// goals are held. Needs no packages. Usage: table.mjs [FILE...]; without one it reads standard input.

import { readFileSync } from "node:fs";

// What of Intact each is compared with: the same database. Rate and CPU of all batches and of a request a task apart.
const besides = (peer) => (/^(restate|intact-sqlite)$/.test(peer) ? "intact-sqlite" : "intact-postgres");

function rowsOf(files) {
    const rows = [];
    for (const file of files) {
        readFileSync(file, "utf8")
            .split("\n")
            .forEach((line, i) => {
                if (!line.trim()) return;
                try {
                    const row = JSON.parse(line);
                    if (!row.peer || !row.mode || !(row.tasks_per_s > 0 || row.back_s > 0)) throw new Error("peer, mode or tasks_per_s is missing");
                    rows.push(row);
                } catch (error) {
                    console.error(`table: ${file || "standard input"}, line ${i + 1}: ${error.message}`);
                    process.exit(2);
                }
            });
    }
    return rows;
}

function median(values) {
    const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
    const half = sorted.length >> 1;
    return sorted.length % 2 ? sorted[half] : sorted.length ? (sorted[half - 1] + sorted[half]) / 2 : undefined;
}

// By "peer/mode" and what was set, in the order in which they came: each field's median, and `spread` of the rate.
function medians(rows) {
    const groups = new Map();
    for (const row of rows) {
        const name = [`${row.peer}/${row.mode}`, ...Object.entries(row.set ?? {}).map(([key, value]) => `${key}=${value}`)].join(" ");
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(row);
    }
    for (const [name, group] of groups) {
        const fields = Object.keys(group[0]).filter((key) => typeof group[0][key] === "number");
        const found = Object.fromEntries(fields.map((field) => [field, median(group.map((row) => row[field]))]));
        const rates = group.map((row) => row.tasks_per_s);
        groups.set(name, { ...found, peer: group[0].peer, rounds: group.length, spread: `${figure(Math.min(...rates))}-${figure(Math.max(...rates))}` });
    }
    return groups;
}

function figure(value) {
    if (value === undefined) return "";
    if (value === 0) return "0";
    return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toPrecision(2);
}

function print(table) {
    const widths = table[0].map((_, i) => Math.max(...table.map((row) => row[i].length)));
    const line = (row) => `| ${row.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join(" | ")} |`;
    console.log(line(table[0]));
    console.log(`|${widths.map((width, i) => (i ? `${"-".repeat(width + 1)}:` : "-".repeat(width + 2))).join("|")}|`);
    table.slice(1).forEach((row) => console.log(line(row)));
}

const ratio = (a, b) => (a > 0 && b > 0 ? figure(a / b) : "");

// CPU of all that is neither an agent or worker nor who submits. A library's engine is its worker.
const engineCpu = (row) => (row.server_cpu_s_per_1000 || row.worker_cpu_s_per_1000) + row.database_cpu_s_per_1000;

// What two cores have to share: on a machine that does other things, too, it says more than the rate.
const allCpu = (row) => row.server_cpu_s_per_1000 + row.database_cpu_s_per_1000 + row.worker_cpu_s_per_1000 + row.client_cpu_s_per_1000;

function compare(groups) {
    const table = [["beside", "Intact's", "times the tasks/s", "times less engine's CPU", "times less CPU in all", "times lower p50"]];
    for (const [name, peer] of groups) {
        if (peer.peer.startsWith("intact")) continue;
        for (const mode of ["calls", "calls-singly", "calls-js"]) {
            const intact = groups.get(`${besides(peer.peer)}/${mode}`);
            if (!intact) continue;
            table.push([
                name,
                `${besides(peer.peer)}/${mode}`,
                ratio(intact.tasks_per_s, peer.tasks_per_s),
                ratio(engineCpu(peer), engineCpu(intact)),
                ratio(allCpu(peer), allCpu(intact)),
                ratio(peer.p50_ms, intact.p50_ms),
            ]);
        }
    }
    if (table.length > 1) print([...table]);
}

function goals(groups) {
    const check = (peer, intact, what, value, held, goal) => {
        const [p, i] = [groups.get(peer), groups.get(intact)];
        if (!p || !i) return;
        const found = value(i, p);
        console.log(`${held(found) ? "held:    " : "not held:"} ${what}: ${figure(found)} (goal ${goal}), ${intact} beside ${peer}`);
    };
    const rate = (i, p) => i.tasks_per_s / p.tasks_per_s;
    for (const mode of ["restate/calls", "restate/inside"]) {
        check(mode, "intact-sqlite/calls", "tasks a second, times", rate, (x) => x >= 10, "10");
        check(mode, "intact-sqlite/calls", "server CPU a task, times less", (i, p) => engineCpu(p) / engineCpu(i), (x) => x >= 20, "20");
        check(mode, "intact-sqlite/calls", "p50 of one in flight, part of", (i, p) => i.p50_ms / p.p50_ms, (x) => x < 0.2, "below 0.2");
    }
    check("dbos/inside", "intact-postgres/calls", "tasks a second, times", rate, (x) => x >= 10, "10");
}

// Of those that were killed.
function recoveries(groups) {
    const fields = ["killed_with", "back_s", "ended_s", "repeated_steps"];
    print([
        ["killed and started again", "rounds", "with tasks", "goes on after s", "all ended after s", "steps done twice"],
        ...[...groups].map(([name, row]) => [name, String(row.rounds), ...fields.map((field) => figure(row[field]))]),
    ]);
}

const rows = rowsOf(process.argv.length > 2 ? process.argv.slice(2) : [0]);
const killed = medians(rows.filter((row) => row.back_s));
const groups = medians(rows.filter((row) => row.tasks_per_s));
if (!rows.length) {
    console.error("table: there are no lines of measurements");
    process.exit(2);
}
if (killed.size) recoveries(killed);
if (!groups.size) process.exit(0);
print([
    ["", "rounds", "tasks/s", "from-to", "p50 ms", "p99 ms", "server CPU", "database CPU", "worker CPU", "client CPU", "peak MiB", "idle MiB", "database MiB"],
    ...[...groups].map(([name, row]) => [
        name,
        String(row.rounds),
        figure(row.tasks_per_s),
        row.spread,
        ...["p50_ms", "p99_ms", "server_cpu_s_per_1000", "database_cpu_s_per_1000", "worker_cpu_s_per_1000", "client_cpu_s_per_1000"].map((field) => figure(row[field])),
        ...["rss_mib", "idle_mib", "database_mib"].map((field) => figure(row[field])),
    ]),
]);
console.log("p50 and p99: one in flight. CPU: seconds for 1000 tasks.\n");
compare(groups);
console.log("");
goals(groups);
