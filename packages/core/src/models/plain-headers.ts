type GivenHeaders = NonNullable<RequestInit["headers"]> | PlainHeaders;

/**
 * The `Headers` of `fetch`, as far as requests to models need it. Touching the built-in class makes Node load all of
 * its own HTTP client, a sixth of what a short run costs; requests here go through node:http.
 */
export class PlainHeaders {
  readonly #values = new Map<string, string>();

  constructor(given?: GivenHeaders) {
    if (given === undefined) return;
    const rows = Symbol.iterator in given ? given : Object.entries(given);
    for (const [name, value] of rows) this.append(name ?? "", value ?? "");
  }

  append(name: string, value: string): void {
    const key = keyOf(name);
    const before = this.#values.get(key);
    const added = clean(name, value);
    this.#values.set(key, before === undefined ? added : `${before}, ${added}`);
  }

  set(name: string, value: string): void {
    this.#values.set(keyOf(name), clean(name, value));
  }

  get(name: string): string | null {
    // A name that is kept is a valid one.
    return this.#values.get(name) ?? this.#values.get(keyOf(name)) ?? null;
  }

  /** Sorted by name. */
  [Symbol.iterator](): IterableIterator<[string, string]> {
    return [...this.#values].sort(([a], [b]) => (a < b ? -1 : 1))[Symbol.iterator]();
  }
}

function keyOf(name: string): string {
  if (!/^[!#$%&'*+\-.^_`|~\w]+$/.test(name))
    throw new TypeError(`${JSON.stringify(name)} is an invalid header name.`);
  return name.toLowerCase();
}

/** What a line of a request can carry; the value itself may be a key, so it is not shown. */
function clean(name: string, value: string): string {
  const trimmed = String(value).replace(/^[\t\n\r ]+|[\t\n\r ]+$/g, "");
  if (/[\0\r\n]|[^\0-\xff]/.test(trimmed)) {
    const what = "a line break or a character that headers cannot carry";
    throw new TypeError(`The value of the header ${name} contains ${what}.`);
  }
  return trimmed;
}
