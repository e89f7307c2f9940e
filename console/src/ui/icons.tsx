// The signs of the console, each 16 by 16. A state has a shape of its own, not only a colour.
import type { ComponentChildren } from "preact";

function Sign({ children, kind }: { children: ComponentChildren; kind?: string }) {
  return (
    <svg class={`sign ${kind ?? ""}`} viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

const line = { fill: "none", stroke: "currentColor", "stroke-width": "1.6", "stroke-linecap": "round", "stroke-linejoin": "round" } as const;
const cut = { fill: "none", stroke: "var(--surface)", "stroke-width": "1.7", "stroke-linecap": "round", "stroke-linejoin": "round" } as const;
const disc = <circle cx="8" cy="8" r="7" fill="currentColor" />;

const STATES: Record<string, ComponentChildren> = {
  pending: <circle cx="8" cy="8" r="6" {...line} stroke-dasharray="2.2 2.5" />,
  waiting: <circle cx="8" cy="8" r="6" {...line} stroke-dasharray="2.2 2.5" />,
  processing: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="M8 4a4 4 0 0 1 0 8z" fill="currentColor" /></>,
  running: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="M8 4a4 4 0 0 1 0 8z" fill="currentColor" /></>,
  processed: <>{disc}<path d="m5 8.3 2.1 2.100L11 6.2" {...cut} /></>,
  completed: <>{disc}<path d="m5 8.3 2.1 2.100L11 6.2" {...cut} /></>,
  compensating: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="M11 8H5.400m2-2.300L5.2 8l2.2 2.3" {...line} /></>,
  undoing: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="M11 8H5.400m2-2.300L5.2 8l2.2 2.3" {...line} /></>,
  compensated: <>{disc}<path d="M11.2 8H5.200m2.1-2.400L5 8l2.3 2.4" {...cut} /></>,
  undone: <>{disc}<path d="M11.2 8H5.200m2.1-2.400L5 8l2.3 2.4" {...cut} /></>,
  error: <><path d="M5.2 1h5.600L15 5.200v5.600L10.8 15H5.200L1 10.800V5.200z" fill="currentColor" /><path d="M8 4.600v4M8 11.200v.1" {...cut} /></>,
  failed: <><path d="M5.2 1h5.600L15 5.200v5.600L10.8 15H5.200L1 10.800V5.200z" fill="currentColor" /><path d="m5.8 5.8 4.4 4.400m0-4.4-4.4 4.4" {...cut} /></>,
  skipped: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="m6 5.6 2.5 2.400L6 10.400M10 5.600v4.8" {...line} /></>,
  paused: <><circle cx="8" cy="8" r="6.2" {...line} /><path d="M6.4 5.800v4.400M9.6 5.800v4.4" {...line} /></>,
  closed: <><rect x="2" y="2" width="12" height="12" rx="2.5" {...line} /><path d="M5 8h6" {...line} /></>,
  doubt: <><path d="M8 1.3 15.2 14H.8z" fill="currentColor" stroke="currentColor" stroke-linejoin="round" /><path d="M6.5 7c.2-2 3-1.9 3 0 0 1.2-1.5 1.2-1.5 2.500M8 11.900v.1" {...cut} stroke-width="1.4" /></>,
  acknowledged: <><circle cx="8" cy="8" r="6.2" {...line} /><circle cx="8" cy="8" r="2" fill="currentColor" /></>,
};

export function StateSign({ state }: { state: string }) {
  return <Sign kind={`s-${state}`}>{STATES[state] ?? STATES["pending"]}</Sign>;
}

const SIGNS: Record<string, ComponentChildren> = {
  overview: <path d="M2.5 13.500v-4m3.7 4v-7m3.7 7v-9m3.6 9v-6" {...line} />,
  tasks: <path d="M2.5 4h1m2.5 0h7.500M2.5 8h1m2.5 0h7.500M2.5 12h1m2.5 0h7.5" {...line} />,
  approvals: <path d="M8 2.200a2.6 2.6 0 1 1 0 5.2 2.6 2.6 0 0 1 0-5.200M2.8 13.800c.3-3 2.4-4.4 5.2-4.4 1 0 1.9.2 2.6.5M10.5 12.200l1.4 1.4 2.4-2.6" {...line} />,
  workflows: <><path d="M2 2.500h4v4H2zM10 2.500h4v4h-4zM10 9.500h4v4h-4z" {...line} /><path d="M6 4.500h4M4 6.500v5h6" {...line} /></>,
  schedules: <path d="M2.5 3.500h11v10h-11zM2.5 6.700h11M5.5 2v2.500m5-2.500v2.500M8 8.500v2l1.5 1" {...line} />,
  messages: <path d="M2.5 3.500h11v9h-11zM3 4l5 4.500L13 4" {...line} />,
  submissions: <path d="M2.5 9v4.500h11V9M8 2v6.500m-2.500-2.300L8 8.700l2.500-2.500" {...line} />,
  access: <path d="M5.2 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6M8.200 8h6.300v2.500M11.500 8v2" {...line} />,
  edit: <path d="M3 13l.7-3L11 2.700 13.300 5 6 12.300zM9.500 4.200l2.300 2.300" {...line} />,
  operations: <path d="M2.5 3.500h11v3h-11zm0 6h11v3h-11zM5 5h.1M5 11h.1" {...line} />,
  alerts: <path d="M8 2a3.8 3.8 0 0 1 3.8 3.800c0 3.2 1.2 4.2 1.7 4.700h-11c.5-.5 1.7-1.5 1.7-4.700A3.8 3.8 0 0 1 8 2m-1.5 10.700c.4 1.3 2.6 1.3 3 0" {...line} />,
  agents: <path d="M3 6h10v7H3zM8 6V3m0-.5v.1M6 9.200v.6M10 9.200v.6" {...line} />,
  nodes: <path d="M2.5 2.800h11v4h-11zm0 6.400h11v4h-11zM5 4.800h.1M5 11.200h.1" {...line} />,
  audit: <path d="M4 1.800h5.500L12.5 5v9.200H4zM6.2 7.500h4m-4 3h4" {...line} />,
  search: <path d="M7 2.500a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9m3.3 7.8 3.4 3.4" {...line} />,
  copy: <path d="M5.5 5.500h8v8h-8zM10.5 3v-.5h-8v8H3" {...line} />,
  done: <path d="m3 8.5 3.3 3.300L13 4.5" {...line} />,
  close: <path d="m3.5 3.5 9 9m0-9-9 9" {...line} />,
  right: <path d="m6 3.5 4.5 4.500L6 12.5" {...line} />,
  down: <path d="M3.5 6 8 10.5 12.5 6" {...line} />,
  up: <path d="M3.5 10 8 5.500l4.5 4.5" {...line} />,
  plus: <path d="M8 3v10M3 8h10" {...line} />,
  minus: <path d="M3 8h10" {...line} />,
  fit: <path d="M2.5 6V2.500H6m4 0h3.500V6m0 4v3.500H10m-4 0H2.500V10" {...line} />,
  menu: <path d="M2.5 4h11m-11 4h11m-11 4h11" {...line} />,
  sun: <path d="M8 5.200a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.600M8 1.500v1m0 11v1M1.5 8h1m11 0h1M3.4 3.400l.7.7m7.8 7.8.7.7m0-9.2-.7.7m-7.8 7.8-.7.7" {...line} />,
  moon: <path d="M13 9.500A5.5 5.5 0 1 1 6.5 3a4.6 4.6 0 0 0 6.5 6.500z" {...line} />,
  auto: <><circle cx="8" cy="8" r="5.5" {...line} /><path d="M8 2.500a5.5 5.5 0 0 1 0 11z" fill="currentColor" /></>,
  out: <path d="M6 2.500H2.500v11H6M7 8h7m-2.5-2.700L14.2 8l-2.7 2.7" {...line} />,
  more: <path d="M3.5 8h.1M8 8h.1m4.4 0h.1" {...line} stroke-width="2.2" />,
  terminal: <path d="m3 4.5 3.5 3.500L3 11.500M8.5 12H13" {...line} />,
  warning: <path d="M8 2 14.5 13.500h-13zM8 6.500V9m0 2.200v.1" {...line} />,
  info: <><circle cx="8" cy="8" r="6" {...line} /><path d="M8 7.500V11m0-6v.1" {...line} /></>,
  filter: <path d="M2 3.500h12L9.5 8.700v4.300l-3-1.500V8.700z" {...line} />,
  clock: <path d="M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2m0 2.800V8l2.2 1.5" {...line} />,
};

export function Icon({ name }: { name: string }) {
  return <Sign>{SIGNS[name]}</Sign>;
}

export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" width="26" height="26" aria-hidden="true" focusable="false">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-line" d="M9 12h10.500a4.5 4.5 0 0 1 0 9H13m2.6-3.500L12 21l3.6 3.5" />
      <circle class="mark-dot" cx="9" cy="12" r="2.6" />
    </svg>
  );
}
