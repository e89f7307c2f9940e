// Dark or light: as the system has it, unless the person chose one.
import { signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";
const NAME = "intact-theme";

function stored(): Theme {
  try {
    const found = localStorage.getItem(NAME);
    return found === "light" || found === "dark" ? found : "auto";
  } catch {
    return "auto";
  }
}

export const theme = signal<Theme>(stored());

export function setTheme(next: Theme) {
  theme.value = next;
  try {
    localStorage.setItem(NAME, next);
  } catch {
    // Kept for this page only, then.
  }
  showTheme();
}

export function showTheme() {
  if (theme.value === "auto") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}
