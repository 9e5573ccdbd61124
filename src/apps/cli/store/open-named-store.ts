import { openStore } from "../../../cluster/open-store.ts";
import type { Store } from "../../../cluster/store.ts";
import type { StoreAddress } from "./store-program.ts";

/** For commands that somebody waits for: a server that is away is reported after a few seconds. */
const patienceMs = 5_000;

export async function withStore<Result>(
  { url, tenant }: StoreAddress,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  await using store = await openStore(url, {
    outageMs: patienceMs,
    ...(tenant === undefined ? {} : { tenant }),
  });
  return await use(store);
}
