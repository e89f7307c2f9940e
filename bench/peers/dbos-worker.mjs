import { DBOS } from "@dbos-inc/dbos-sdk";
import { settingsOfWorker, urlOf } from "./database.mjs";
import { closedLoop, input, step } from "./load.mjs";
import { serve } from "./processes.mjs";

const { folder, connections } = settingsOfWorker();

const task = DBOS.registerWorkflow(
    async () => {
        await DBOS.runStep(step, { name: "first" });
        await DBOS.runStep(step, { name: "second" });
        return DBOS.runStep(step, { name: "third" });
    },
    { name: "task" },
);

serve({
    start: async () => {
        DBOS.setConfig({ name: "peer", systemDatabaseUrl: urlOf(folder), systemDatabasePoolSize: connections, runAdminServer: false, logLevel: "error" });
        await DBOS.launch();
    },
    run: (tasks, inFlight) =>
        closedLoop(tasks, inFlight, async () => {
            const handle = await DBOS.startWorkflow(task)(input);
            await handle.getResult(); // its output is in the database
        }),
    stop: () => DBOS.shutdown(),
});
