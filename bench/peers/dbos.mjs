// DBOS: a library over PostgreSQL. The steps run inside of its worker; it has no other mode.

import { openLibrary } from "./database.mjs";

export const modes = { inside: { inFlight: 64, connections: 20, tasks: 2000 } };
export const open = (context) => openLibrary("./dbos-worker.mjs", context);
