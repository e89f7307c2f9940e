// A plain queue of jobs in PostgreSQL: a task is three jobs, each of which adds the next one. Jobs are taken, added and ended in batches.

import { openLibrary } from "./database.mjs";

export const modes = { chained: { inFlight: 512, batch: 100, workers: 1, connections: 10, tasks: 5000 } };
export const open = (context) => openLibrary("./pg-boss-worker.mjs", context);
