// Compiled, and not run: what users' programs may say of the types, and what they may not. tests/libraries/types.sh compiles
// it as a module of each kind.
import { Agent, Client, Request, SqliteBarrier, StepError, WaitTimeout } from "intact-client";
import type { Handler, PostgresBarrier, PostgresClient, SqliteDatabase, Task, TestRequest, UndoRequest } from "intact-client";

interface Payment {
  customer: string;
  amount: number;
}

interface Receipt {
  receipt: number;
}

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

export async function charge(request: Request<Payment>): Promise<Receipt> {
  // @ts-expect-error a request to act has nothing to undo, and one to undo has: it has to be asked
  request.forward.input;
  if (request.input.amount > 1000) throw new StepError("declined", { effect: "none" });
  // @ts-expect-error no such member
  request.input.amuont;
  // @ts-expect-error what is asked cannot be changed
  request.input = { customer: "", amount: 1 };
  return { receipt: 17 };
}

export async function refund(request: UndoRequest<Payment, Receipt>): Promise<void> {
  const amount: number = request.forward.input.amount;
  same<typeof request.forward.output, Receipt | null>(true);
  same<typeof request.forward.in_doubt, boolean>(true);
  same<typeof request.input, unknown>(true);
  // @ts-expect-error there need not be an output
  request.forward.output.receipt;
  await request.call(() => fetchLike(amount));
}

declare function fetchLike(amount: number): Promise<void>;
declare const postgres: PostgresBarrier<PostgresClient>;
declare const sqlite: SqliteBarrier<SqliteDatabase>;

export const handler: Handler<Payment> = charge;

export const agent = new Agent("bank")
  .action("charge", charge)
  .action<Payment>("tip", (request) => request.input.customer)
  .action("once", (request: Request<Payment>) => postgres.once(request, (db) => db.query("SELECT 1")))
  .undo("refund", refund)
  .undo<Payment, Receipt>("untip", (request) => request.forward.output?.receipt ?? request.forward.input.amount)
  .undo<Payment>("undo-once", (request) => sqlite.once(request, () => request.forward.input.amount))
  .undo("any", (request) => request.forward.idempotency_key)
  // @ts-expect-error an action has nothing to undo
  .action("wrong", refund);

// @ts-expect-error requests are made by agents and by forTest
new Request({}, 1);

export async function tests(): Promise<void> {
  const request = Request.forTest({ input: { customer: "Ann", amount: 20 } });
  same<typeof request, TestRequest<{ customer: string; amount: number }, undefined>>(true);
  const receipt: Receipt = await charge(request);
  await charge(Request.forTest<Payment>({ input: { customer: "Ann", amount: 20 }, attempt: 2, resume: { at: 1 } }));
  await refund(Request.forTest({ forward: { input: { customer: "Ann", amount: 20 }, output: receipt } }));
  await refund(Request.forTest({ forward: { input: { customer: "Ann", amount: 20 }, in_doubt: true } }));
  // @ts-expect-error another input
  await charge(Request.forTest({ input: 7 }));
  // @ts-expect-error it asks to act
  await refund(Request.forTest({ input: 7 }));
  // @ts-expect-error no such member
  Request.forTest({ inputs: 7 });
  request.stop();
  request.expire();
  same<typeof request.isElsewhere, boolean>(true);
  void request.beats[0]?.progress;
}

export async function client(): Promise<void> {
  const client = new Client();
  const task = await client.wait<Payment, Receipt>("t-1");
  same<typeof task, Task<Payment, Receipt>>(true);
  const receipt: number | undefined = task.output?.receipt;
  const other: unknown = (await client.get("t-1")).output;
  if (task.state === "compensated") console.log(task.error?.code, task.steps[0]?.attempts[0]?.outcome, receipt, other);
  // @ts-expect-error no such state
  if (task.state === "done") return;
  const definition: Definition = { intact: 1, workflow: "w", steps: [] };
  const version: number = (await client.putWorkflow(definition)).version;
  await client.putWorkflow("intact: 1\nworkflow: w\n", "w");
  await client.submit("w", { id: "t-1", input: 1, reply_to: { to: "https://x/", events: "all" } });
  console.log((await client.why("t-1")).reasons.map((reason) => reason.text), version);
  await client.wait("t-2", { timeoutMs: 1 }).catch((e: unknown) => {
    if (e instanceof WaitTimeout) console.log(e.task.state);
  });
}

interface Definition {
  intact: 1;
  workflow: string;
  steps: unknown[];
}
