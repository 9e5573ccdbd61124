import { type HeaderReader, readRetryAfter } from "./read-retry-after.ts";

/** How much of a quota is used, from 0 to 1, and how long it is until there is a new one. */
export interface QuotaReport {
  readonly used: number;
  readonly resetsInMs: number;
}

/** A limit that is free again sooner is a rate, which requests wait for anyway. */
const shortestMs = 600_000;

/** No provider counts over a longer time: what says so is a mistake, or comes from a clock that is wrong. */
export const maxQuotaMs = 45 * 86_400_000;

/**
 * What the headers of an answer of a model say about the quota that is used up first; undefined where they name none. That of
 * another family of models says nothing about this one.
 */
export function readQuotaReport(header: HeaderReader, model = ""): QuotaReport | undefined {
  const reports = [...unifiedWindows(header, model), ...countedWindows(header).filter(isLong)];
  return reports.filter(isPlausible).toSorted((a, b) => b.used - a.used)[0];
}

/**
 * Of a refusal with status 429: how long until there is a new quota. Undefined where it is only a rate that was exceeded, and
 * where nothing states when there is a new one.
 */
export function readQuotaReset(header: HeaderReader): number | undefined {
  if (header("anthropic-ratelimit-unified-status") === "rejected") {
    const reset = untilSeconds(header("anthropic-ratelimit-unified-reset"), clockOf(header));
    return [reset, readRetryAfter(header)].find((wait) => wait !== undefined && wait <= maxQuotaMs);
  }
  const used = countedWindows(header).filter((report) => report.used >= 1 && isPlausible(report));
  const waits = [readRetryAfter(header) ?? 0, ...used.map(({ resetsInMs }) => resetsInMs)];
  const longest = Math.max(...waits);
  return longest > shortestMs && longest <= maxQuotaMs ? longest : undefined;
}

function isPlausible({ used, resetsInMs }: QuotaReport): boolean {
  return used >= 0 && resetsInMs <= maxQuotaMs;
}

function isLong({ resetsInMs }: QuotaReport): boolean {
  return resetsInMs > shortestMs;
}

/** The windows of a subscription: of five hours, of seven days, and of families of models. */
const unifiedNames = ["5h", "7d", ...["opus", "sonnet"].map((family) => `7d_${family}`)];

function unifiedWindows(header: HeaderReader, model: string): readonly QuotaReport[] {
  const clock = clockOf(header);
  return unifiedNames.flatMap((name) => {
    const [, family = ""] = name.split("_");
    if (!model.toLowerCase().includes(family)) return [];
    const written = header(`anthropic-ratelimit-unified-${name}-utilization`);
    const used = written === undefined || written.trim() === "" ? Number.NaN : Number(written);
    if (!Number.isFinite(used)) return [];
    const resetsInMs = untilSeconds(header(`anthropic-ratelimit-unified-${name}-reset`), clock);
    return resetsInMs === undefined ? [] : [{ used, resetsInMs }];
  });
}

/** Limits that are counted in requests or tokens, in the headers of Anthropic and of OpenAI. */
function countedWindows(header: HeaderReader): readonly QuotaReport[] {
  const clock = clockOf(header);
  const kinds = ["requests", "tokens", "input-tokens", "output-tokens"];
  const makers = [
    { nameOf: (kind: string, what: string) => `anthropic-ratelimit-${kind}-${what}`, read: untilMoment },
    { nameOf: (kind: string, what: string) => `x-ratelimit-${what}-${kind}`, read: readDuration },
  ];
  return makers.flatMap(({ nameOf, read }) =>
    kinds.flatMap((kind) => {
      // Of most kinds there is no limit, and then nothing else.
      const limit = header(nameOf(kind, "limit"));
      if (limit === undefined) return [];
      const remaining = header(nameOf(kind, "remaining"));
      const used = 1 - Number(remaining || Number.NaN) / Number(limit || Number.NaN);
      const resetsInMs = read(header(nameOf(kind, "reset")), clock);
      return Number.isFinite(used) && resetsInMs !== undefined ? [{ used, resetsInMs }] : [];
    }),
  );
}

/** Points in time are measured by the clock of the one that answers, so that a wrong clock on this machine does no harm. */
function clockOf(header: HeaderReader): number {
  return Date.parse(header("date") ?? "");
}

function untilSeconds(written: string | undefined, clock: number): number | undefined {
  if (written === undefined || written.trim() === "") return undefined;
  const seconds = Number(written);
  return Number.isNaN(seconds) ? untilMoment(written, clock) : positive(seconds * 1000 - clock);
}

function untilMoment(written: string | undefined, clock: number): number | undefined {
  const moment = Date.parse(written ?? "");
  return positive(moment - clock);
}

/** `1h2m3.5s`, `6m0s`, `20ms`, a number of seconds, or a moment. */
function readDuration(written: string | undefined, clock: number): number | undefined {
  if (written === undefined || written.trim() === "") return undefined;
  const text = written.trim();
  if (/^\d+(\.\d+)?$/.test(text)) {
    const seconds = Number(text);
    return seconds > 1_000_000_000 ? positive(seconds * 1000 - clock) : seconds * 1000;
  }
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return untilMoment(text, clock);
  const parts = text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g);
  return [...parts].reduce((sum, [, count, unit]) => sum + Number(count) * (unitMs.get(unit ?? "") ?? 0), 0);
}

const unitMs: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

function positive(milliseconds: number): number | undefined {
  return Number.isNaN(milliseconds) ? undefined : Math.max(0, milliseconds);
}
