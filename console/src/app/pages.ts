// The pages, and where they are. Each is loaded when it is first opened. To add one: a folder in src/pages, a line here.
import type { ComponentType } from "preact";

export type PageProps = Record<string, string>;
type Load = () => Promise<{ default: ComponentType<any> }>;

export interface Page {
  at: string;
  title: (params: PageProps) => string;
  load: Load;
  nav?: { label: string; icon: string; role: string /* one of these, empty: any */; group: "work" | "installation" };
}

export const PAGES: Page[] = [
  { at: "/", title: () => "Overview", load: () => import("../pages/overview/page.tsx"), nav: { label: "Overview", icon: "overview", role: "read", group: "work" } },
  { at: "/tasks", title: () => "Tasks", load: () => import("../pages/tasks/page.tsx"), nav: { label: "Tasks", icon: "tasks", role: "", group: "work" } },
  { at: "/tasks/:id", title: (p) => `Task ${p["id"]}`, load: () => import("../pages/task/page.tsx") },
  { at: "/approvals", title: () => "Approvals", load: () => import("../pages/approvals/page.tsx"), nav: { label: "Approvals", icon: "approvals", role: "", group: "work" } },
  { at: "/workflows", title: () => "Workflows", load: () => import("../pages/workflows/page.tsx"), nav: { label: "Workflows", icon: "workflows", role: "read define submit", group: "work" } },
  { at: "/workflows/:name", title: (p) => `Workflow ${p["name"]}`, load: () => import("../pages/workflows/one.tsx") },
  { at: "/workflows/:name/edit", title: (p) => `Edit workflow ${p["name"]}`, load: () => import("../pages/workflows/edit.tsx") },
  { at: "/schedules", title: () => "Schedules", load: () => import("../pages/schedules/page.tsx"), nav: { label: "Schedules", icon: "schedules", role: "read define", group: "work" } },
  { at: "/schedules/:name", title: (p) => `Schedule ${p["name"]}`, load: () => import("../pages/schedules/one.tsx") },
  { at: "/schedules/:name/edit", title: (p) => `Edit schedule ${p["name"]}`, load: () => import("../pages/schedules/edit.tsx") },
  { at: "/operations", title: () => "Operations", load: () => import("../pages/operations/page.tsx"), nav: { label: "Operations", icon: "operations", role: "read", group: "work" } },
  { at: "/operations/:id", title: (p) => `Operation ${p["id"]}`, load: () => import("../pages/operations/one.tsx") },
  { at: "/alerts", title: () => "Alerts", load: () => import("../pages/alerts/page.tsx"), nav: { label: "Alerts", icon: "alerts", role: "read", group: "installation" } },
  { at: "/agents", title: () => "Agents", load: () => import("../pages/agents/page.tsx"), nav: { label: "Agents", icon: "agents", role: "read", group: "installation" } },
  { at: "/nodes", title: () => "Nodes", load: () => import("../pages/nodes/page.tsx"), nav: { label: "Nodes", icon: "nodes", role: "", group: "installation" } },
  { at: "/messages", title: () => "Messages", load: () => import("../pages/messages/page.tsx"), nav: { label: "Messages", icon: "messages", role: "read", group: "installation" } },
  { at: "/submissions", title: () => "Refused submissions", load: () => import("../pages/submissions/page.tsx"), nav: { label: "Submissions", icon: "submissions", role: "read", group: "installation" } },
  { at: "/access", title: () => "Access", load: () => import("../pages/access/page.tsx"), nav: { label: "Access", icon: "access", role: "", group: "installation" } },
  { at: "/audit", title: () => "Audit", load: () => import("../pages/audit/page.tsx"), nav: { label: "Audit", icon: "audit", role: "repair", group: "installation" } },
];
