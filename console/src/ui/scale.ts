// The scale of a timeline: which time is at which pixel, and where its marks are, from milliseconds to days.
const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3, 3600e3,
  7200e3, 10800e3, 21600e3, 43200e3, 86400e3, 172800e3, 604800e3, 1209600e3, 2592000e3, 7776000e3, 31536000e3,
];

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

export interface View {
  from: number;
  to: number;
}

export const MIN_SPAN = 10;

export const at = (view: View, width: number, time: number) => ((time - view.from) / (view.to - view.from)) * width;
export const timeAt = (view: View, width: number, x: number) => view.from + (x / width) * (view.to - view.from);

export function stepOf(view: View, width: number, apart = 96): number {
  const wanted = ((view.to - view.from) / Math.max(width, 1)) * apart;
  return STEPS.find((s) => s >= wanted) ?? (STEPS[STEPS.length - 1] as number);
}

// Marks at whole seconds, minutes and days of the reader's zone; `offset` is that zone's, in minutes west of UTC.
export function marks(view: View, width: number, offset = new Date(view.from).getTimezoneOffset()): number[] {
  const step = stepOf(view, width);
  const shift = offset * 60e3;
  const first = Math.ceil((view.from - shift) / step) * step + shift;
  const found: number[] = [];
  for (let t = first; t <= view.to && found.length < 500; t += step) found.push(t);
  return found;
}

// Around a point that stays where it is; never beyond `whole`, and never narrower than MIN_SPAN.
export function zoom(view: View, factor: number, around: number, whole: View): View {
  const most = whole.to - whole.from;
  const span = Math.min(most, Math.max(MIN_SPAN, (view.to - view.from) * factor));
  const share = (around - view.from) / (view.to - view.from);
  return clamp({ from: around - span * share, to: around + span * (1 - share) }, whole);
}

export const pan = (view: View, by: number, whole: View): View => clamp({ from: view.from + by, to: view.to + by }, whole);

function clamp(view: View, whole: View): View {
  const span = Math.min(view.to - view.from, whole.to - whole.from);
  const from = Math.min(Math.max(view.from, whole.from), whole.to - span);
  return { from, to: from + span };
}

// What a mark says: as much of the moment as its step needs.
export function label(time: number, step: number): string {
  const d = new Date(time);
  const day = () => `${d.getDate()} ${MONTHS[d.getMonth()]}`;
  const two = (n: number) => String(n).padStart(2, "0");
  const clock = `${two(d.getHours())}:${two(d.getMinutes())}`;
  if (step >= 86400e3) return day();
  if (step >= 60e3) return clock === "00:00" ? day() : clock;
  if (step >= 1e3) return `${clock}:${two(d.getSeconds())}`;
  return `${two(d.getSeconds())}.${String(d.getMilliseconds()).padStart(3, "0")}`;
}
