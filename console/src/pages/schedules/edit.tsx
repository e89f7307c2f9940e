// The editor of a schedule. The server finds its mistakes when it is stored.
import { useRef } from "preact/hooks";
import { call } from "../../api/client.ts";
import { textOf } from "../../api/definition.ts";
import { useResource } from "../../api/resource.ts";
import type { Schedule, WorkflowList } from "../../api/types.ts";
import { can } from "../../app/session.ts";
import { Empty, Failed, Loading } from "../../ui/basics.tsx";
import { choicesAt, placeAt } from "../../ui/complete.ts";
import { commandLine } from "../../ui/shell.ts";
import { TextPage, typeOf, type Format } from "../../ui/text_page.tsx";
import { SCHEDULE_SCHEMA } from "./schema.ts";

const template = (name: string) => `intact: 1
schedule: ${name}
workflow: my-workflow
cron: "30 2 * * *"
timezone: ${Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"}
input: {day: "\${ .local }"}
`;

export default function EditSchedulePage({ name }: { name: string }) {
  const at = `/v1/schedules/${encodeURIComponent(name)}`;
  const stored = useResource<Schedule>(at, 15_000);
  const opened = useRef<number | null>(null);
  opened.current ??= stored.data?.version ?? null;
  const workflows = useResource<WorkflowList>("/v1/workflows").data?.workflows ?? [];
  if (!can("define")) return <Empty isPage title="Your token may not store schedules">It needs the role define. <a href="/schedules">All schedules</a></Empty>;
  const isNew = stored.problem?.status === 404;
  if (!stored.data && !isNew) return stored.problem ? <Failed problem={stored.problem} retry={stored.reload} /> : <Loading rows={8} />;
  const format: Format = stored.data?.format ?? "yaml";
  const text = stored.data ? textOf(stored.data as Parameters<typeof textOf>[0]) : null;
  const nameOf = (t: string) => (format === "yaml" ? /^schedule:\s*["']?([a-z0-9_-]+)/m : /"schedule"\s*:\s*"([a-z0-9_-]+)"/).exec(t)?.[1] ?? null;
  return (
    <div class="page">
      <nav class="crumbs" aria-label="Path"><a href="/schedules">Schedules</a>{!isNew && <a href={`/schedules/${name}`}>{name}</a>}</nav>
      <header class="page-head"><h1>{isNew ? "New schedule" : `Edit ${name}`}</h1>{stored.data && <span class="chip">from version {stored.data.version}</span>}</header>
      <TextPage
        id={`schedule ${name}`} label={`Definition of ${name}`} format={format} validates={false}
        before={text} start={text ?? template(name === "new" ? "nightly" : name)} nameOf={nameOf}
        complete={(t, place) => {
          const found = placeAt(t, place);
          if (!found) return null;
          if (found.key === "workflow") return { from: found.from, choices: workflows.map((w) => ({ label: w.name, info: "", isKey: false, opens: "value" as const })) };
          return { from: found.from, choices: choicesAt(SCHEDULE_SCHEMA, found) };
        }}
        meanwhile={stored.data && opened.current !== stored.data.version ? `Version ${stored.data.version} was stored since you opened this page. What you store follows it, and does not contain it.` : null}
        store={async (t) => {
          const own = nameOf(t) ?? name;
          const made = await call<Schedule>(`/v1/schedules/${encodeURIComponent(own)}`, { method: "PUT", text: { type: typeOf(format), text: t } });
          return { name: made.name, version: made.version, href: `/schedules/${made.name}` };
        }}
        says={(of, first) => (first || of !== name ? `Stored as schedule ${of}.${first ? "" : ` ${name} stays as it is.`} ` : `Stored as version ${(stored.data?.version ?? 0) + 1} of ${of}. `) + "Its tasks are submitted in your name. Earlier moments are not caught up."}
        command={(of) => commandLine(["schedule", "put", `${of}.${format}`])}
      />
    </div>
  );
}
