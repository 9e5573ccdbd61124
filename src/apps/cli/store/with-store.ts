import { openStore } from "../../../cluster/open-store.ts";
import type { Store } from "../../../cluster/store.ts";
import type { StoreAddress } from "./run-store-program.ts";

/** A server that is not there is reported after a few seconds; one that goes away for a while is waited for. */
const connectMs = 5_000;

export async function withStore<Result>(
  { url, tenant }: StoreAddress,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  await using store = await openStore(url, {
    connectMs,
    ...(tenant === undefined ? {} : { tenant }),
  });
  return await use(store);
}
