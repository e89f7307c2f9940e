// What is not well with an agent, in a few words: null if all is.
import type { Agent } from "../../api/types.ts";
import { plural } from "../../ui/format.ts";

export interface Trouble {
  grade: "bad" | "fair";
  text: string;
  since?: string | null;
}

export function agentTrouble(agent: Agent): Trouble | null {
  const { breaker, instances, waiting_steps: waiting } = agent;
  if (breaker.state === "open") return { grade: "bad", text: `has an open breaker${breaker.by_hand ? ", opened by hand" : ""}`, since: breaker.since };
  if (!agent.connected && waiting > 0) return { grade: "bad", text: `is not connected, and ${plural(waiting, "step waits", "steps wait")} for it` };
  if (breaker.state === "half-open") return { grade: "fair", text: "is being tried: its breaker is half-open", since: breaker.since };
  const ill = (instances ?? []).filter((i) => i.health === "ill").length;
  if (ill > 0) return { grade: "fair", text: `has ${plural(ill, "ill instance")} of ${(instances ?? []).length}` };
  if (!agent.connected) return { grade: "fair", text: "is not connected" };
  return null;
}
