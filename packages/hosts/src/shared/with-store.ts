import { openStore } from "@retinue/cluster/open-store.ts";
import type { Store } from "@retinue/cluster/store.ts";
import type { StoreAddress } from "./command-context.ts";

/** A server that is not there is reported after a few seconds; one that goes away for a while is waited for. */
const connectMs = 5_000;

/** Whether no other process can use the store meanwhile, so that this one has to run what it waits for. */
export function isForOneProcess({ url }: StoreAddress): boolean {
  return url.startsWith("file:");
}

export async function withStore<Result>(
  { url, tenant }: StoreAddress,
  use: (store: Store) => Promise<Result>,
): Promise<Result> {
  await using store = await openStore(url, {
    connectMs,
    tenant,
  });
  return await use(store);
}
