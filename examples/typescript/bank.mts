/** An agent whose effects happen once, in PostgreSQL. */
import { Agent, PostgresBarrier, type PostgresClient, type PostgresPool, type Request } from "intact-client";

interface Payment {
  customer: string;
  amount: number;
}

/** For a pool of the package `pg`, or anything like it. */
export function bank<C extends PostgresClient>(pool: PostgresPool<C>): Agent {
  const barrier = new PostgresBarrier(pool);
  const book = (request: Request, customer: string, amount: number): Promise<unknown> =>
    barrier.once(request, async (db) => {
      const sql = "INSERT INTO payment(customer, amount) VALUES ($1, $2) RETURNING id";
      const { rows } = await db.query(sql, [customer, amount]);
      return rows[0];
    });
  return new Agent("bank")
    .action<Payment>("charge", (request) => book(request, request.input.customer, request.input.amount))
    .undo<Payment>("refund", (request) => book(request, request.forward.input.customer, -request.forward.input.amount));
}
