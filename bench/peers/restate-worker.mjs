// The worker of Restate: a task of three steps in both ways, and the other service.

import * as restate from "@restatedev/restate-sdk";
import { output } from "./load.mjs";
import { serve } from "./processes.mjs";

// The package takes it for granted; Node has it from version 22 on.
Promise.withResolvers ??= () => {
    const made = {};
    made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
    return made;
};

const step = restate.service({
    name: "step",
    handlers: { do: async () => output },
});

const task = restate.service({
    name: "task",
    handlers: {
        inside: async (ctx) => {
            await ctx.run("first", () => output);
            await ctx.run("second", () => output);
            return ctx.run("third", () => output);
        },
        calls: async (ctx, input) => {
            await ctx.serviceClient(step).do(input);
            await ctx.serviceClient(step).do(input);
            return ctx.serviceClient(step).do(input);
        },
    },
});

serve({ start: () => restate.serve({ services: [step, task], port: Number(process.argv[2]) }) });
