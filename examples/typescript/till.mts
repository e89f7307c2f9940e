/** Handlers that are tested without a server: till.test.mts. */
import { StepError, type Request, type UndoRequest } from "intact-client";

export interface Payment {
  amount: number;
}

export interface Receipt {
  receipt: string;
}

/** For `agent.action("charge", charge)`. */
export async function charge(request: Request<Payment>): Promise<Receipt> {
  if (request.input.amount > 1000) throw new StepError("declined", { message: "more than 1000 is not given", effect: "none" });
  return { receipt: request.idempotencyKey };
}

/** For `agent.undo("refund", refund)`. */
export async function refund(request: UndoRequest<Payment, Receipt>): Promise<{ returned: number }> {
  return { returned: request.forward.input.amount };
}
