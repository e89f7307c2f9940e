import { PgBoss } from "pg-boss";
import pg from "pg";
import { poolOf, settingsOfWorker } from "./database.mjs";
import { closedLoop, input, output } from "./load.mjs";
import { serve } from "./processes.mjs";

const { folder, batch, workers, connections } = settingsOfWorker();
const ended = new Map(); // by task: whom to tell
const boss = new PgBoss({ ...poolOf(folder), max: connections, useListenNotify: true, supervise: true, schedule: false });
const own = new pg.Pool({ ...poolOf(folder), max: 1 });
boss.on("error", console.error);
let number = 0;

// What a job hands on to the next one: the task's input and its own output.
const then = (next) => (jobs) => boss.insert(next, jobs.map(({ data }) => ({ data: { ...data, output } })));

function last(jobs) {
    for (const { data } of jobs) {
        ended.get(data.task)();
        ended.delete(data.task);
    }
}

// No job is left that has not been completed in the database: all have ended, durably.
async function gone() {
    const text = "SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed') AS left";
    while ((await own.query({ name: "left", text })).rows[0].left);
}

serve({
    start: async () => {
        await boss.start();
        const how = { batchSize: batch, localConcurrency: workers, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5, burstWhenBatchFull: batch > 1 };
        for (const [queue, handler] of Object.entries({ first: then("second"), second: then("third"), third: async (jobs) => last(jobs) })) {
            await boss.createQueue(queue, { notify: true });
            await boss.work(queue, how, handler);
        }
    },
    run: (tasks, inFlight) =>
        closedLoop(tasks, inFlight, async (i) => {
            const task = ++number;
            const end = new Promise((resolve) => ended.set(task, resolve));
            await boss.send("first", { task, input });
            await end;
            if (inFlight === 1 || i === tasks - 1) await gone();
        }),
    stop: () => boss.stop({ graceful: false }),
});
