const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "min"],
] as const;

/** A span of time in its largest whole unit, such as `3 min`. */
export function describeAge(milliseconds: number): string {
  const [size, name] = units.find(([least]) => milliseconds >= least) ?? [1000, "s"];
  return `${Math.max(0, Math.floor(milliseconds / size))} ${name}`;
}
