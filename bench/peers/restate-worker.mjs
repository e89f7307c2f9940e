// The worker of Restate: a task of three steps in both ways, and the other service.

import * as restate from "@restatedev/restate-sdk";
import { hands, step } from "./load.mjs";
import { serve } from "./processes.mjs";

// The package takes it for granted; Node has it from version 22 on.
Promise.withResolvers ??= () => {
    const made = {};
    made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
    return made;
};

const other = restate.service({
    name: "step",
    handlers: { do: () => step() },
});

const task = restate.service({
    name: "task",
    handlers: {
        inside: async (ctx) => {
            await ctx.run("first", step);
            await ctx.run("second", step);
            return ctx.run("third", step);
        },
        calls: async (ctx, input) => {
            await ctx.serviceClient(other).do(input);
            await ctx.serviceClient(other).do(input);
            return ctx.serviceClient(other).do(input);
        },
    },
});

serve({ ...hands, start: () => restate.serve({ services: [other, task], port: Number(process.argv[2]) }) });
