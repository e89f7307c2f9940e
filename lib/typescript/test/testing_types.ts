/** The types of intact-client/testing, as programs use them; compiled by tests/libraries/types.sh, not run. */
import { Agent, StepError } from "intact-client";
import { startServer, type Clock, type Ended, type Server, type Task } from "intact-client/testing";

export async function uses(): Promise<void> {
  const server: Server = await startServer({ at: "2026-01-01T09:00:00Z", clock: "waits", definitions: ["order.yaml"] });
  server.agent(new Agent("payment"));
  server.agent("shipping", { ship: new StepError("no-address"), weigh: (request) => request.input }, { recall: null });
  const task: Task = await server.submit("order", { input: { total: 20 } });
  const clock: Clock = await server.advance("2d", { regardless: true });
  await server.advance(new Date(), { patienceMs: 100 });
  await startServer({ startWithinMs: 1_000, endWithinMs: 1_000 });
  const end: Ended = await task.expect("compensated", { error: "no-address", within: "3d", steps: { ship: "failed" } });
  console.log(clock.now, clock.next, end.tookMs, end.steps["ship"]);
  // @ts-expect-error no such mode
  await startServer({ clock: "fast" });
  await server.close();
}
