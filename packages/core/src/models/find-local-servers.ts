// @io

import { createHttpFetch } from "./create-http-fetch.ts";
import type { LocalPlace, LocalServer } from "./local-models.ts";

export interface LocalSearchOptions {
  readonly fetch?: typeof globalThis.fetch;
  /** How long all of them together have to answer. */
  readonly limitMs?: number;
}

/** A server on this machine answers immediately, or is not there. */
const defaultLimitMs = 150;

/** More than any list of models needs. */
const maxAnswer = 1_000_000;

/** Asks all places at the same time for their models; one that is silent, slow or answers something else is not there. */
export async function findLocalServers(
  places: readonly LocalPlace[],
  { fetch, limitMs = defaultLimitMs }: LocalSearchOptions = {},
): Promise<readonly LocalServer[]> {
  using http = createHttpFetch();
  const limit = new AbortController();
  const stopClock = startClock(limitMs, () => limit.abort());
  try {
    const answers = await Promise.all(places.map((place) => ask(place, fetch ?? http.fetch, limit.signal)));
    return answers.flatMap((server) => server ?? []);
  } finally {
    stopClock();
  }
}

const ticks = 15;

/** Counts in small steps, so that time in which this process itself was busy, and read nothing, counts as one step. */
function startClock(limitMs: number, atEnd: () => void): () => void {
  let left = ticks;
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return;
    clearInterval(timer);
    atEnd();
  }, limitMs / ticks);
  return () => clearInterval(timer);
}

async function ask(
  { provider, name, address, list, read }: LocalPlace,
  fetch: typeof globalThis.fetch,
  signal: AbortSignal,
): Promise<LocalServer | undefined> {
  try {
    const response = await fetch(`${address}${list}`, { signal, headers: { accept: "application/json" } });
    const text = await readShort(response);
    if (!response.ok || text === undefined) return undefined;
    const models = read(JSON.parse(text));
    return models.length === 0 ? undefined : { provider, name, address, models };
  } catch {
    // Whatever went wrong, there is no server of this kind at this place.
    return undefined;
  }
}

async function readShort({ body }: Response): Promise<string | undefined> {
  if (body === null) return undefined;
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > maxAnswer) return undefined;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
