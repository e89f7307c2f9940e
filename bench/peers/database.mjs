// Peers that are a library over PostgreSQL: the worker is the engine, and has the load in itself, which is their fastest way.

import { end, startWorker } from "./processes.mjs";

export const poolOf = (folder) => ({ host: folder, user: "intact", database: "postgres" });
export const urlOf = (folder) => `postgresql://intact@localhost/postgres?host=${encodeURIComponent(folder)}`;

export async function openLibrary(module, { dir, settings, database }) {
    const worker = await startWorker(dir, module, JSON.stringify({ ...settings, folder: database.folder }));
    return {
        server: () => [],
        workers: () => [worker.pid],
        run: (tasks, inFlight) => worker.call("run", tasks, inFlight),
        close: async () => {
            await worker.call("stop").catch(() => {});
            await end(worker.child);
        },
    };
}

export const settingsOfWorker = () => JSON.parse(process.argv[2]);
