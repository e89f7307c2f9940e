// An agent in TypeScript: the agent "report", which adds up pages that a service has, and takes long. It calls the service
// again when that fails, tells how far it is, and goes on where an earlier attempt was cut off.
//
//     INTACT_SERVER=http://127.0.0.1:7420 PAGES=http://127.0.0.1:8000 node report.mjs report-1
//
// docs/typescript.md tells more.
import { Again, Agent, StepError } from "intact-client";

interface Input {
  pages: number;
}

interface State {
  done: number;
  sum: number;
}

const service = process.env["PAGES"] ?? "http://127.0.0.1:8000";
const agent = new Agent("report", { instance: process.argv[2] ?? "report-1", places: 4 });

async function read(page: number, signal: AbortSignal): Promise<number> {
  const answer = await fetch(`${service}/${page}`, { signal });
  if (answer.status === 503) throw new Again("busy", 1000 * Number(answer.headers.get("retry-after") ?? 0));
  if (!answer.ok) throw new StepError("pages", { message: `page ${page}: ${answer.status}`, effect: "none" });
  return Number(await answer.text());
}

agent.action<Input>("add-up", async (request) => {
  const state = (request.resume as State | undefined) ?? { done: 0, sum: 0 };
  const from = state.done;
  while (state.done < request.input.pages) {
    // Cut off by the deadline, or when the task is to be undone; and again while the service is away or busy.
    state.sum += await request.call(() => read(state.done + 1, request.signal), { most: 5000 });
    state.done++;
    request.heartbeat({ done: state.done, of: request.input.pages }, "adding up", state);
  }
  return { sum: state.sum, from };
});

process.exit((await agent.run()) ? 0 : 1);
