// The rows of a list that comes in pages, and what is shown when there are none.
import type { ComponentChildren } from "preact";
import type { Paged } from "../api/paged.ts";
import { Age, Button, Failed, Loading, Text } from "./basics.tsx";
import { Icon } from "./icons.tsx";

export function PagedList<T>({ of, empty, children }: { of: Paged<T>; empty: ComponentChildren; children: (rows: T[]) => ComponentChildren }) {
  if (of.rows === undefined) return of.problem ? <Failed problem={of.problem} retry={of.reload} /> : <Loading rows={5} />;
  return (
    <>
      {of.problem && <p class="note warning" role="alert"><Icon name="warning" /><Text>{of.problem.message}</Text></p>}
      {of.stillSince && <p class="note still">Read <Age at={of.stillSince} />. The list is not read again by itself while further pages are shown. <Button kind="quiet" onClick={of.reload}>Read it again</Button></p>}
      {of.rows.length === 0 ? empty : children(of.rows)}
      {of.hasMore && <div><Button onClick={of.more} isBusy={of.isReading}>Show more</Button></div>}
    </>
  );
}
