// Intact, each step a call to another process over HTTP: that of the agents, bench/agent.c if nothing else is said. `place` is "sqlite" or "postgres".

import { existsSync, readFileSync, rmSync } from "node:fs";
import { poster } from "./http.mjs";
import { closedLoop, input } from "./load.mjs";
import { ask, end, freePort, start, startWorker, until } from "./processes.mjs";

export const modes = {
    // Submitted in batches of 250, as whoever has many would; one in flight is submitted with a request that waits for its end.
    calls: { places: 512, lines: 250, tasks: 50000 },
    // Each task submitted by a request of its own that waits for its end, by the same client in JavaScript that Restate has.
    "calls-singly": { places: 256, inFlight: 512, tasks: 20000 },
    // The same with agents in JavaScript, in one process, as Restate's worker is.
    "calls-js": { places: 256, inFlight: 512, js: 1, tasks: 10000 },
};

async function startAgents({ dir, settings, source, build, url, env }) {
    if (settings.js) {
        const library = `${source}/build/typescript/dist/index.mjs`;
        return startWorker(dir, "./intact-worker.mjs", library, url, String(settings.places));
    }
    const child = start(dir, "agents", `${build}/bench/bench-agent`, [String(settings.places), "a", "b", "c"], env);
    return { child, pid: child.pid };
}

export async function open({ dir, place, settings, build, source, database }) {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const env = { INTACT_SERVER: url, INTACT_TOKEN: "", no_proxy: "*" };
    const program = `${build}/src/cli/intact`;
    const store = place === "postgres" ? ["--store", `host=${database.folder} user=intact dbname=postgres`] : [];
    const ready = `${dir}/server.out`;
    let server;
    const begin = async () => {
        rmSync(ready, { force: true });
        server = start(dir, "server", program, ["serve", "--open", "--data", `${dir}/data`, "--listen", `127.0.0.1:${port}`, ...store], env);
        await until("the server is ready", () => existsSync(ready) && readFileSync(ready, "utf8").length > 0);
    };
    await begin();
    await ask(program, ["workflow", "put", `${source}/bench/bench.json`], env);
    const agents = await startAgents({ dir, settings, source, build, url, env });
    const post = poster(url);
    const body = JSON.stringify({ workflow: "bench", input });
    const one = async () => {
        const { state } = JSON.parse(await post("/v1/tasks?wait=60s", body));
        if (state !== "processed") throw new Error(`a task has ended as ${state}`);
    };
    let turn = 0;
    const load = async (...args) => JSON.parse(await ask(`${build}/bench/bench-load`, args.map(String), env));
    return {
        server: () => [server.pid],
        workers: () => [agents.pid],
        run: (tasks, inFlight) => {
            if (!settings.lines) return closedLoop(tasks, inFlight, one);
            return inFlight === 1 ? load("one", tasks) : load("many", tasks, settings.lines, `turn${++turn}`);
        },
        killing: settings.js && {
            worker: agents,
            submit: (tasks) => post("/v1/tasks", `${body}\n`.repeat(tasks), "application/x-ndjson"),
            left: async () => {
                const some = async (state) => JSON.parse(await post(`/v1/tasks?limit=1&state=${state}`, "", undefined, "GET")).tasks.length;
                return (await some("pending")) || (await some("processing"));
            },
            kill: () => end(server, "SIGKILL"),
            begin,
        },
        close: async () => {
            await end(agents.child);
            await end(server);
            post.close();
        },
    };
}
