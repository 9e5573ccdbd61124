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
  if (Math.round(milliseconds) === 0) return "0 s";
  if (milliseconds < 100) return `${Math.round(milliseconds)} ms`;
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

/** Files of the folder of a session without that folder. */
export function withoutFolder(text: string, folder: string | undefined): string {
  if (folder === undefined || folder === "" || folder === "/") return text;
  const own = folder.replace(/[\\/]+$/, "");
  const short = text.replaceAll(`${own}/`, "").replaceAll(`${own}\\`, "");
  return short.replaceAll(own, ".");
}

/** The first line of a text in Markdown as plain words. */
export function plainLine(text: string): string {
  return text
    .replace(/^\s{0,3}(?:#{1,6}|>|[-*+])\s+/gm, "")
    .replace(/(\*\*|__|~~|`)(?=\S)(.+?)(?<=\S)\1/g, "$2")
    .replace(/\[([^\]]+)\]\([^)]*\)/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}
