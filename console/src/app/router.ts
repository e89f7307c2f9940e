// Addresses and pages. Links are plain <a href>; those that stay in the console change the page without loading it anew.
import { computed, signal } from "@preact/signals";

const here = () => location.pathname + location.search;
export const address = signal(here());
export const path = computed(() => address.value.split("?")[0] as string);
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

export function navigate(href: string, { replace = false } = {}) {
  if (href === address.value) return;
  if (replace) history.replaceState(null, "", href);
  else {
    history.pushState(null, "", href);
    scrollTo(0, 0);
  }
  address.value = here();
}

export function startRouter() {
  addEventListener("popstate", () => {
    address.value = here();
  });
  document.addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a[href]");
    if (!(link instanceof HTMLAnchorElement) || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.target || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/v1/") || link.hasAttribute("download") || link.getAttribute("href")?.startsWith("#")) return;
    event.preventDefault();
    navigate(link.pathname + link.search);
  });
}

// "/tasks/:id" matches "/tasks/o-17" with {id: "o-17"}.
export function match(pattern: string, pathname: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = pathname.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (let n = 0; n < wanted.length; n += 1) {
    const name = wanted[n] as string;
    const part = given[n] as string;
    if (name.startsWith(":")) {
      try {
        found[name.slice(1)] = decodeURIComponent(part);
      } catch {
        return null;
      }
    } else if (name !== part) return null;
  }
  return found;
}
