// Measures one peer in one of its modes, and prints one line of JSON. Started by bench/peers/run, which says the usage, and where
// things are: PEERS_WORK (an empty folder), PEERS_SOURCE, PEERS_BUILD, PEERS_DATABASE (a PostgreSQL server's folder).

import { readFileSync } from "node:fs";
import { cpuOfFamily, cpuSeconds, familyMib, leave, peakMib, residentMib, sleep, until } from "./processes.mjs";

const modules = {
    "intact-sqlite": "./intact.mjs",
    "intact-postgres": "./intact.mjs",
    restate: "./restate.mjs",
    dbos: "./dbos.mjs",
    "graphile-worker": "./graphile-worker.mjs",
    "pg-boss": "./pg-boss.mjs",
};

class Usage extends Error {}

function options(words) {
    const found = { one: 300, set: {}, idle: 3 };
    const numbers = { "--tasks": "tasks", "--one": "one", "--idle": "idle" };
    for (let i = 0; i < words.length; i++) {
        if (words[i] === "--json") continue; // it is all that we print
        if (words[i] === "--killed") {
            found.killed = true;
            continue;
        }
        if (words[i] in numbers) {
            const n = Number(words[++i]);
            if (!Number.isInteger(n) || n < 1) throw new Usage(`${words[i - 1]}: ${words[i] ?? "nothing"} is no number above 0`);
            found[numbers[words[i - 1]]] = n;
        } else if (words[i] === "--set") {
            const [name, value] = (words[++i] ?? "").split("=");
            if (!name || value === undefined) throw new Usage("--set wants NAME=VALUE");
            found.set[name] = Number.isNaN(Number(value)) ? value : Number(value);
        } else if (!words[i].startsWith("-") && !found.peer) {
            [found.peer, found.mode] = words[i].split("/");
        } else throw new Usage(`${words[i]} is not understood`);
    }
    return found;
}

function databaseOf(folder) {
    return folder && { folder, pid: Number(readFileSync(`${folder}/data/postmaster.pid`, "utf8").split("\n")[0]) };
}

const sum = (pids, of) => pids.reduce((total, pid) => total + of(pid), 0);
const round = (value, digits) => (value === undefined ? undefined : Number(value.toFixed(digits)));

// Kills the server with so many tasks in flight, when a third of their steps are done, and starts it again at once.
async function killAmidst({ worker, submit, left, kill, begin }, tasks) {
    const steps = () => worker.call("steps");
    await submit(10); // warm
    await until("the first tasks have ended", async () => (await steps()) >= 30 && !(await left()));
    const before = await steps();
    await worker.call("hold");
    await submit(tasks);
    await worker.call("release");
    await until("a third of the steps is done", async () => (await steps()) - before >= tasks);
    await kill();
    let reached = -1; // what the worker was at in that moment is not to be taken for a sign of life
    await until("the worker has nothing left", async () => {
        const last = reached;
        reached = await steps();
        await sleep(300);
        return last === reached;
    });
    const start = performance.now();
    await begin();
    await until("work goes on", async () => (await steps()) > reached);
    const back = performance.now() - start;
    await until("all have ended", async () => (await steps()) - before >= 3 * tasks && (await left()) === 0, 600);
    const ended = performance.now() - start;
    const repeated = (await steps()) - before - 3 * tasks;
    return { killed_with: tasks, back_s: round(back / 1000, 2), ended_s: round(ended / 1000, 2), repeated_steps: repeated };
}

async function measure({ peer: name, mode: wanted, tasks: count, one: singly, idle, set, killed }) {
    if (!modules[name]) throw new Usage(`no peer is called ${name}; there are ${Object.keys(modules).join(", ")}`);
    const { modes, open } = await import(modules[name]);
    const mode = wanted ?? Object.keys(modes)[0];
    if (!modes[mode]) throw new Usage(`${name} has no mode ${mode}; it has ${Object.keys(modes).join(", ")}`);
    const settings = { ...modes[mode], ...set };
    const unknown = Object.keys(set).find((key) => !(key in modes[mode]));
    if (unknown) throw new Usage(`${name}/${mode} has no setting ${unknown}; it has ${Object.keys(modes[mode]).join(", ")}`);
    const tasks = count ?? settings.tasks;
    const database = databaseOf(process.env.PEERS_DATABASE);
    const peer = await open({
        dir: process.env.PEERS_WORK,
        source: process.env.PEERS_SOURCE,
        build: process.env.PEERS_BUILD,
        place: name.split("-")[1],
        settings,
        database,
    });
    if (killed) {
        if (!peer.killing) throw new Usage(`--killed is for restate and calls-js of Intact, whose steps are counted, and not for ${name}/${mode}`);
        return { peer: name, mode, ...(await killAmidst(peer.killing, count ?? 2000)) };
    }
    const engine = () => (peer.server().length ? peer.server() : peer.workers());
    const spent = () => ({
        server: sum(peer.server(), cpuSeconds),
        database: database ? cpuOfFamily(database.pid) : 0,
        worker: sum(peer.workers(), cpuSeconds),
        client: cpuSeconds(process.pid),
    });

    await peer.run(Math.ceil(tasks / 10), settings.inFlight); // warm
    const one = await peer.run(singly, 1);
    await sleep(idle * 1000);
    const idleMib = sum(engine(), residentMib);

    let databaseMib = 0;
    const look = () => (databaseMib = Math.max(databaseMib, database ? familyMib(database.pid) : 0));
    const timer = setInterval(look, 1000);
    const before = spent();
    const many = await peer.run(tasks, settings.inFlight);
    const after = spent();
    clearInterval(timer);
    look();
    const cpu = (of) => round(((after[of] - before[of]) * 1000) / tasks, 3);
    const rss = sum(engine(), peakMib);
    await peer.close();
    return {
        peer: name,
        mode,
        settings,
        set,
        tasks,
        tasks_per_s: round(tasks / many.seconds, 1),
        p50_ms: round(one.p50_ms, 3),
        p99_ms: round(one.p99_ms, 3),
        server_cpu_s_per_1000: cpu("server"),
        database_cpu_s_per_1000: cpu("database"),
        worker_cpu_s_per_1000: cpu("worker"),
        client_cpu_s_per_1000: cpu("client"),
        rss_mib: round(rss, 1),
        idle_mib: round(idleMib, 1),
        database_mib: round(databaseMib, 1),
    };
}

try {
    console.log(JSON.stringify(await measure(options(process.argv.slice(2)))));
    await leave(0);
} catch (error) {
    console.error(`peers: ${error instanceof Usage ? error.message : error.stack}`);
    await leave(error instanceof Usage ? 2 : 1);
}
