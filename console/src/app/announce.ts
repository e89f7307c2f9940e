// What screen readers are told of changes.
import { signal } from "@preact/signals";

export const announcement = signal("");

export function announce(text: string) {
  announcement.value = "";
  setTimeout(() => {
    announcement.value = text;
  }, 50);
}
