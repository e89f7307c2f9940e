// The API's types, by short names. openapi.d.ts is made from docs/openapi.yaml (`node check.mjs`).
import type { components } from "./openapi.d.ts";

type Schemas = components["schemas"];
export type TaskState = Schemas["TaskState"];
export type StepState = Schemas["StepState"];
export type Task = Schemas["Task"];
export type TaskSummary = Schemas["TaskSummary"];
export type TaskPage = Schemas["TaskPage"];
export type TaskChange = Schemas["TaskChange"];
export type Step = Schemas["Step"];
export type Attempt = Schemas["Attempt"];
export type ItemPage = Schemas["ItemPage"];
export type Why = Schemas["Why"];
export type Reason = Schemas["Reason"];
export type Alert = Schemas["Alert"];
export type AlertPage = Schemas["AlertPage"];
export type Agent = Schemas["Agent"];
export type AgentList = Schemas["AgentList"];
export type NodeList = Schemas["NodeList"];
export type Stats = Schemas["Stats"];
export type Filter = Schemas["Filter"];
export type Operation = Schemas["Operation"];
export type OperationPage = Schemas["OperationPage"];
export type DryRun = Schemas["DryRun"];
export type AuditEntry = Schemas["AuditEntry"];
export type ApprovalList = Schemas["ApprovalList"];
export type MessagePage = Schemas["MessagePage"];
export type Workflow = Schemas["Workflow"];
export type WorkflowList = Schemas["WorkflowList"];
export type WorkflowStored = Schemas["WorkflowStored"];
export type Mistake = Schemas["Mistake"];
export type Approval = ApprovalList["approvals"][number];
export type Schedule = Schemas["Schedule"];
export type SchedulePage = Schemas["SchedulePage"];
export type ScheduleMoments = Schemas["ScheduleMoments"];
export type ScheduleRun = Schemas["ScheduleRun"];
export type ScheduleBackfill = Schemas["ScheduleBackfill"];
export type TargetList = Schemas["TargetList"];
export type SubmissionPage = Schemas["SubmissionPage"];
export type StoredSubmission = Schemas["StoredSubmission"];
export type SubmissionsDone = Schemas["SubmissionsDone"];
export type Token = Schemas["Token"];
export type TokenList = Schemas["TokenList"];
export type CreatedToken = Schemas["CreatedToken"];
export type AgentSaid = Schemas["AgentSaid"];
export type AgentSettings = Schemas["AgentSettings"];

// A browser that is signed in.
export interface SignedIn {
  id: string;
  token: string;
  created_at: string;
  expires_at: string;
  address: string;
  current: boolean;
}

export interface Session {
  name: string;
  person: string;
  groups: string[];
  roles: string[];
  expires_at: string | null;
  open?: boolean;
}

// The last hour, in equal parts; the newest last.
export interface Overview {
  at: string;
  window: string;
  resolution: string;
  series: {
    at: string;
    submitted: number;
    processed: number;
    compensated: number;
    error: number;
    p50_ms: number | null;
    p99_ms: number | null;
  }[];
}
