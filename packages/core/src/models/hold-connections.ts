import { createHttpFetch, type HttpFetch, type Proxies } from "./create-http-fetch.ts";

/** The connections of this process to providers of models, by the proxies they use, and how many hold them. */
const pools = new Map<string, { readonly http: HttpFetch; holders: number }>();

/**
 * A share in the one pool of connections that this process has for these proxies. Runtimes come and go in one process by
 * the hundred, and each with connections of its own would run out of descriptors; disposing of the last share closes them all.
 */
export function holdConnections(proxies?: Proxies): HttpFetch {
  const key = JSON.stringify(proxies ?? null);
  const pool = pools.get(key) ?? { http: createHttpFetch(proxies), holders: 0 };
  pools.set(key, pool);
  pool.holders += 1;
  let isHeld = true;
  return {
    fetch: pool.http.fetch,
    [Symbol.dispose]() {
      if (!isHeld) return;
      isHeld = false;
      pool.holders -= 1;
      if (pool.holders > 0) return;
      pools.delete(key);
      pool.http[Symbol.dispose]();
    },
  };
}
