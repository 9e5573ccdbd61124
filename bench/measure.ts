/** Runs the subjects in turn, round after round, so that a busy moment of the machine hits all of them alike. */
export async function measureInTurn<Name extends string>(
  subjects: Readonly<Record<Name, () => unknown>>,
  { rounds, warmUp }: { readonly rounds: number; readonly warmUp: number },
): Promise<Record<Name, number>> {
  // Object.keys forgets the literal type of its keys.
  const names = Object.keys(subjects) as Name[];
  const times = new Map<Name, number[]>(names.map((name) => [name, []]));
  for (let round = -warmUp; round < rounds; round += 1) {
    for (const name of names) {
      const start = performance.now();
      await subjects[name]();
      if (round >= 0) times.get(name)?.push(performance.now() - start);
    }
  }
  return Object.fromEntries(names.map((name) => [name, median(times.get(name) ?? [])])) as Record<
    Name,
    number
  >;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

export interface Row {
  readonly what: string;
  readonly milliseconds: number;
  readonly against: string;
  readonly ratio: number;
  /** The most the ratio may be; rows without one only inform. */
  readonly limit?: number;
}

export function printTable(title: string, rows: readonly Row[]): boolean {
  console.log(`\n${title}`);
  const widest = Math.max(...rows.map((row) => row.what.length));
  for (const { what, milliseconds, against, ratio, limit } of rows) {
    const verdict =
      limit === undefined ? "" : `  limit ${limit.toFixed(1)}  ${ratio <= limit ? "ok" : "TOO SLOW"}`;
    console.log(
      `  ${what.padEnd(widest)} ${milliseconds.toFixed(1).padStart(9)} ms  ${ratio.toFixed(2).padStart(6)} x ${against}${verdict}`,
    );
  }
  return rows.every(({ ratio, limit }) => limit === undefined || ratio <= limit);
}
