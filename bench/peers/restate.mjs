// Restate: its server of one node, with its configuration in restate.toml, and a worker in JavaScript.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { poster } from "./http.mjs";
import { closedLoop, input } from "./load.mjs";
import { childrenOf, end, freePort, start, startWorker, until } from "./processes.mjs";

export const modes = {
    // The steps run inside its worker: ctx.run.
    inside: { inFlight: 512, partitions: 1, handler: "inside", tasks: 5000 },
    // Each step is a call to another service, through Restate.
    calls: { inFlight: 512, partitions: 1, handler: "calls", tasks: 2500 },
};

// The package of npm is a small program that starts the real one: that is what we want to start, watch and kill.
function program() {
    const require = createRequire(import.meta.url);
    return require.resolve(`@restatedev/restate-server-${process.platform}-${process.arch}/bin/restate-server`);
}

export async function open({ dir, settings, source }) {
    const [ingress, admin, node, service] = [await freePort(), await freePort(), await freePort(), await freePort()];
    const env = {
        TMPDIR: dir,
        RESTATE_CONFIG: `${source}/bench/peers/restate.toml`,
        RESTATE_BASE_DIR: `${dir}/data`,
        RESTATE_DEFAULT_NUM_PARTITIONS: String(settings.partitions),
        RESTATE_BIND_ADDRESS: `127.0.0.1:${node}`,
        RESTATE_INGRESS__BIND_ADDRESS: `127.0.0.1:${ingress}`,
        RESTATE_ADMIN__BIND_ADDRESS: `127.0.0.1:${admin}`,
    };
    let server;
    const begin = () => (server = start(dir, "server", program(), [], env));
    begin();
    const worker = await startWorker(dir, "./restate-worker.mjs", String(service));
    const ask = poster(`http://127.0.0.1:${admin}`);
    const body = JSON.stringify({ uri: `http://127.0.0.1:${service}` });
    await until("Restate takes the worker", () => ask("/deployments", body).then(() => true, () => false));
    const post = poster(`http://127.0.0.1:${ingress}`);
    const given = JSON.stringify(input);
    return {
        server: () => [server.pid],
        workers: () => [worker.pid],
        // Answered when the task has ended and its output is in Restate's log.
        run: (tasks, inFlight) => closedLoop(tasks, inFlight, () => post(`/task/${settings.handler}`, given)),
        killing: {
            worker,
            submit: (tasks) => closedLoop(tasks, 64, () => post(`/task/${settings.handler}/send`, given)),
            left: async () => {
                const query = JSON.stringify({ query: "SELECT count(*) AS n FROM sys_invocation WHERE status <> 'completed'" });
                return JSON.parse(await ask("/query", query).catch(() => '{"rows": [{"n": -1}]}')).rows[0].n;
            },
            kill: () => end(server, "SIGKILL"),
            begin,
        },
        close: async () => {
            await end(worker.child);
            await end(server);
            ask.close();
            post.close();
        },
    };
}
