// Agents of Intact in JavaScript, with the project's library: all three in one process, as Restate's worker is one.

import { hands, step } from "./load.mjs";
import { serve } from "./processes.mjs";

const [library, server, places] = process.argv.slice(2);

serve({
    ...hands,
    start: async () => {
        const { Agent } = await import(library);
        for (const name of ["a", "b", "c"]) {
            const agent = new Agent(name, { server, places: Number(places), instance: `${name}-1`, token: "" });
            agent.action("do", step);
            agent.start();
        }
    },
});
