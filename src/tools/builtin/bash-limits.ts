type Environment = Readonly<Record<string, string | undefined>>;

/** How long a command may run, and what to tell a model whose wish was cut. */
export interface TimeLimit {
  readonly milliseconds: number;
  readonly note?: string;
}

export function foregroundLimit(wished: number | undefined, environment: Environment): TimeLimit {
  const usual = positive(environment["BASH_DEFAULT_TIMEOUT_MS"]) ?? 120_000;
  const most = Math.max(positive(environment["BASH_MAX_TIMEOUT_MS"]) ?? 600_000, usual);
  return limitWish(wished, usual, most);
}

export function backgroundLimit(wished: number | undefined): TimeLimit {
  return limitWish(wished, 1_800_000, 7_200_000);
}

/** Characters of output that a model sees. */
export function outputLimit(environment: Environment): number {
  const wished = positive(environment["BASH_MAX_OUTPUT_LENGTH"]) ?? 30_000;
  return Math.min(128_000, Math.max(4_000, wished));
}

function limitWish(wished: number | undefined, usual: number, most: number): TimeLimit {
  if (wished === undefined || wished <= 0) return { milliseconds: usual };
  if (wished <= most) return { milliseconds: wished };
  return { milliseconds: most, note: `The time limit was cut to ${most} ms, the longest there is.` };
}

/** Node counts timers in 31 bits. */
const maxTimer = 2 ** 31 - 1;

function positive(value: string | undefined): number | undefined {
  const number = value === undefined || value.trim() === "" ? Number.NaN : Number(value);
  return Number.isInteger(number) && number > 0 ? Math.min(number, maxTimer) : undefined;
}
