// A plain queue of jobs in PostgreSQL: a task is three jobs, each of which adds the next one.

import { openLibrary } from "./database.mjs";

export const modes = { chained: { inFlight: 512, jobs: 24, connections: 25, queue: 500, tasks: 10000 } };
export const open = (context) => openLibrary("./graphile-worker-worker.mjs", context);
