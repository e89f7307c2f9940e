// The definition of a workflow as a value. The server hands it out as it was stored, often YAML: the parser of that is
// loaded when it is first needed.
import { useEffect, useState } from "preact/hooks";
import type { Workflow } from "./types.ts";

export interface StepDefinition {
  name: string;
  after?: string[] | null;
  if?: string;
  agent?: string;
  action?: string;
  http?: { method?: string; path?: string };
  wait?: unknown;
  signal?: { name?: string | string[] };
  approve?: { by?: string | string[]; people?: number };
  task?: { workflow?: string };
  for_each?: unknown;
  repeat?: unknown;
  undo?: unknown;
  pivot?: boolean;
  on_failure?: string;
}

export interface Definition {
  workflow: string;
  steps: StepDefinition[];
  on_undo?: StepDefinition[];
  complete_by?: string;
  on_failure?: string;
  inputs?: Record<string, { type?: string; required?: boolean; default?: unknown }>;
  lock?: { key?: string; max?: number };
}

export function isDefinition(value: unknown): value is Definition {
  const steps = (value as { steps?: unknown } | null)?.steps;
  return Array.isArray(steps) && steps.every((s) => typeof (s as { name?: unknown } | null)?.name === "string");
}

// Null for a text that is not (yet) the text of a definition.
export async function parseDefinition(text: string, format: "yaml" | "json"): Promise<Definition | null> {
  try {
    const value: unknown = format === "json" ? JSON.parse(text) : (await import("yaml")).parse(text, { maxAliasCount: 100 });
    return isDefinition(value) ? value : null;
  } catch {
    return null;
  }
}

export const textOf = (stored: { format: "yaml" | "json"; text?: string; definition?: unknown }) =>
  stored.format === "yaml" ? (stored.text ?? "") : `${JSON.stringify(stored.definition, null, 2)}\n`;

// Undefined as long as it is not known, null if there is none.
export function useDefinition(stored: Workflow | undefined): Definition | null | undefined {
  const [found, setFound] = useState<{ of: Workflow; value: Definition | null }>();
  useEffect(() => {
    if (!stored || stored.definition) return;
    let isOpen = true;
    void parseDefinition(stored.text ?? "", "yaml").then((value) => { if (isOpen) setFound({ of: stored, value }); });
    return () => { isOpen = false; };
  }, [stored]);
  if (!stored) return undefined;
  if (stored.definition) return isDefinition(stored.definition) ? stored.definition : null;
  return found?.of === stored ? found.value : undefined;
}
