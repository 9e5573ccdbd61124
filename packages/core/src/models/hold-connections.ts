import { createHttpFetch, type HttpFetch } from "./create-http-fetch.ts";

/** The connections of this process to providers of models, and how many hold them. */
let pool: { readonly http: HttpFetch; holders: number } | undefined;

/**
 * A share in the one pool of connections that this process has. Runtimes come and go in one process by the hundred, and
 * each with connections of its own would run out of descriptors; the last one that lets go closes them all.
 */
export function holdConnections(): HttpFetch {
  pool ??= { http: createHttpFetch(), holders: 0 };
  const held = pool;
  held.holders += 1;
  let isHeld = true;
  return {
    fetch: held.http.fetch,
    [Symbol.dispose]() {
      if (!isHeld) return;
      isHeld = false;
      held.holders -= 1;
      if (held.holders > 0) return;
      pool = undefined;
      held.http[Symbol.dispose]();
    },
  };
}
