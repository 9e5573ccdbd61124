import { describeOffset } from "@retinue/core/inspection/describe-duration.ts";

/** Money has two decimals, four below one cent; a sum of which a part is not known says so. */
export function money(usd: number, isWhole = true): string {
  const digits = usd > 0 && usd < 0.01 ? 4 : 2;
  return `${isWhole ? "" : "at least "}$${usd.toFixed(digits)}`;
}

/** 18:26, below a minute 11.8 s, below a tenth of a second 40 ms. */
export function duration(milliseconds: number | undefined): string {
  if (milliseconds === undefined) return "";
  if (milliseconds >= 86_400_000) return `${Math.floor(milliseconds / 86_400_000)} d`;
  if (milliseconds > 0 && milliseconds < 100) return `${Math.round(milliseconds)} ms`;
  return milliseconds < 60_000 ? `${(milliseconds / 1000).toFixed(1)} s` : describeOffset(milliseconds);
}

export function timeOfDay(at: number | undefined): string {
  return at === undefined ? "" : new Date(at).toLocaleTimeString([], { hour12: false });
}

/** Today the time, else the date. */
export function startOf(at: number | undefined): string {
  if (at === undefined) return "";
  const date = new Date(at);
  return date.toDateString() === new Date().toDateString()
    ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hour12: false })
    : date.toLocaleDateString([], { month: "short", day: "numeric" });
}

/** The last two folders of a path, and the branch. */
export function folderOf(cwd: string | undefined, branch: string | undefined): string {
  const short = cwd?.split(/[\\/]/).filter(Boolean).slice(-1).join("/");
  return [short, branch].filter(Boolean).join(" · ");
}

export function counted(count: number, one: string): string {
  return `${count} ${count === 1 ? one : `${one}s`}`;
}
