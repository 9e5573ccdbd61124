export type HeaderReader = (name: string) => string | undefined;

/**
 * How long the provider asks us to wait, in milliseconds. Points in time are measured from the `date` header of the
 * same answer, so that a wrong clock on this machine does no harm.
 */
export function readRetryAfter(header: HeaderReader): number | undefined {
  return (
    positive(Number(header("retry-after-ms") || Number.NaN)) ??
    readSecondsOrDate(header("retry-after"), header("date")) ??
    readLimitReset(header)
  );
}

function readSecondsOrDate(value: string | undefined, date: string | undefined): number | undefined {
  if (value === undefined || value.trim() === "") return undefined;
  const seconds = Number(value);
  return Number.isNaN(seconds) ? millisecondsUntil(value, date) : positive(seconds * 1000);
}

/** Of the limits that are used up, the one that is free again last. */
function readLimitReset(header: HeaderReader): number | undefined {
  const waits = limits.flatMap((limit) => {
    if (Number(header(`anthropic-ratelimit-${limit}-remaining`) ?? 1) > 0) return [];
    const wait = millisecondsUntil(header(`anthropic-ratelimit-${limit}-reset`), header("date"));
    return wait === undefined ? [] : [wait];
  });
  return waits.length === 0 ? undefined : Math.max(...waits);
}

const limits = ["requests", "tokens", "input-tokens", "output-tokens"] as const;

function millisecondsUntil(moment: string | undefined, date: string | undefined): number | undefined {
  if (moment === undefined || date === undefined) return undefined;
  return positive(Date.parse(moment) - Date.parse(date));
}

function positive(milliseconds: number): number | undefined {
  return Number.isFinite(milliseconds) && milliseconds >= 0 ? milliseconds : undefined;
}
