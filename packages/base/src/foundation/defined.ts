/** The keys of a record that have a value: where `undefined` is possible, the key is optional. */
export type Defined<T> = { [K in keyof T as undefined extends T[K] ? never : K]: T[K] } & {
  [K in keyof T as undefined extends T[K] ? K : never]?: Exclude<T[K], undefined>;
};

/** Drops the keys whose value is undefined, so that the rest can be spread over defaults or counted. */
export function defined<T extends object>(record: T): Defined<T> {
  // Object.fromEntries forgets the types of the keys, and makes even `__proto__` a plain key.
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>;
}
