import { EventEmitter } from "node:events";
import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";
import { poolOf, settingsOfWorker } from "./database.mjs";
import { closedLoop, input, output } from "./load.mjs";
import { serve } from "./processes.mjs";

const { folder, jobs, connections, queue } = settingsOfWorker();
const ended = new Map(); // by task: whom to tell
const pgPool = new pg.Pool({ ...poolOf(folder), max: connections });
const logger = new Logger(() => (level, message) => level === "error" && console.error(message));
let runner;
let number = 0;

// What a job hands on to the next one: the task's input and its own output.
const then = (next) => (payload, helpers) => helpers.addJob(next, { ...payload, output });

// No job is left in the database: all have ended, durably.
async function gone() {
    const text = "SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS left";
    while ((await pgPool.query({ name: "left", text })).rows[0].left);
}

serve({
    start: async () => {
        const utils = await makeWorkerUtils({ pgPool, logger });
        await utils.migrate();
        const events = new EventEmitter();
        // Told when the job has been done; the database is told at the same moment, which `gone` waits for.
        events.on("job:complete", ({ job, error }) => {
            if (error) console.error(error);
            if (job.task_identifier !== "third") return;
            ended.get(job.payload.task)();
            ended.delete(job.payload.task);
        });
        runner = await run({
            pgPool,
            logger,
            events,
            noHandleSignals: true,
            preset: { worker: { concurrentJobs: jobs, localQueue: { size: queue }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
            taskList: { first: then("second"), second: then("third"), third: async () => {} },
        });
    },
    run: (tasks, inFlight) =>
        closedLoop(tasks, inFlight, async (i) => {
            const task = ++number;
            const end = new Promise((resolve) => ended.set(task, resolve));
            await runner.addJob("first", { task, input });
            await end;
            if (inFlight === 1 || i === tasks - 1) await gone();
        }),
    stop: () => runner.stop(),
});
