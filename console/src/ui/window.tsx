// A long list of rows of one height, of which only those in view are drawn.
import type { ComponentChildren, RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

const MORE = 8; // rows above and below those in view

export interface Range {
  first: number;
  last: number; // exclusive
}

export function rangeOf(top: number, height: number, row: number, total: number, more = MORE): Range {
  const first = Math.max(0, Math.floor(top / row) - more);
  return { first: Math.min(first, total), last: Math.min(total, Math.ceil((top + height) / row) + more) };
}

// The rows of `element`, which scrolls by itself, or with the page if `scroller` is null.
export function useRange(element: RefObject<HTMLElement>, row: number, total: number, ownScroll: boolean): Range {
  const [range, setRange] = useState<Range>({ first: 0, last: Math.min(total, 40) });
  const isDrawn = useRef(false);
  useEffect(() => {
    const list = element.current;
    if (!list) return;
    let asked = 0;
    const look = (more = MORE) => {
      asked = 0;
      const top = ownScroll ? list.scrollTop : -list.getBoundingClientRect().top;
      const height = ownScroll ? list.clientHeight : innerHeight - Math.max(0, -top);
      const next = rangeOf(Math.max(0, top), height, row, total, more);
      setRange((was) => (was.first === next.first && was.last === next.last ? was : next));
    };
    const ask = () => {
      asked ||= requestAnimationFrame(() => look());
    };
    const target = ownScroll ? list : window;
    target.addEventListener("scroll", ask, { passive: true });
    addEventListener("resize", ask);
    look(isDrawn.current ? MORE : 0); // what is seen comes first, the rows around it in a task of their own
    isDrawn.current = total > 0;
    ask();
    return () => {
      cancelAnimationFrame(asked);
      target.removeEventListener("scroll", ask);
      removeEventListener("resize", ask);
    };
  }, [row, total, ownScroll]);
  return { first: Math.min(range.first, total), last: Math.min(Math.max(range.last, 0), total) };
}

export function Windowed({ list, row, total, ownScroll = false, children, class: kind = "", ...rest }: {
  list: RefObject<HTMLDivElement>; row: number; total: number; ownScroll?: boolean; class?: string;
  children: (n: number) => ComponentChildren; role?: "rowgroup" | "list"; "aria-label"?: string; "aria-rowcount"?: number; tabIndex?: number;
}) {
  const { first, last } = useRange(list, row, total, ownScroll);
  const rows: ComponentChildren[] = [];
  for (let n = first; n < last; n += 1) rows.push(children(n));
  return (
    <div ref={list} class={kind} {...rest}>
      <div role="presentation" style={{ height: first * row }} />
      {rows}
      <div role="presentation" style={{ height: (total - last) * row }} />
    </div>
  );
}
