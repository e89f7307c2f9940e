// Parts of a large page, drawn one after the other, so that the browser answers in between.
import { toChildArray, type ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

export function InTurn({ isLarge, children }: { isLarge: boolean; children: ComponentChildren }) {
  const parts = toChildArray(children);
  const [drawn, setDrawn] = useState(isLarge ? 0 : Infinity);
  useEffect(() => {
    if (drawn >= parts.length) return;
    const timer = setTimeout(() => setDrawn(drawn + 1));
    return () => clearTimeout(timer);
  }, [drawn, parts.length]);
  return <>{parts.slice(0, drawn)}</>;
}
