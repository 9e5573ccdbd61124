import { fileURLToPath } from "node:url";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { Store } from "./store.ts";

export interface OpenStoreOptions {
  readonly tenant?: string;
  readonly schema?: string;
  /** How long calls wait for a server that cannot be reached before they fail. */
  readonly outageMs?: number;
  /** The same while the store is being opened; `outageMs` when absent. */
  readonly connectMs?: number;
  readonly workerName?: string;
}

/** Opens a store by its address: `postgres://…` for many machines, `file:///folder` for one process on this one. */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  if (/^postgres(ql)?:/.test(address)) {
    const { openPostgresStore } = await import("./postgres/open-postgres-store.ts");
    return openPostgresStore({ url: address, ...options });
  }
  if (address.startsWith("file:")) {
    const { openFileStore } = await import("./files/open-file-store.ts");
    return openFileStore(fileURLToPath(address));
  }
  throw new RetinueError("invalid-store-url", "The address of a store begins with postgres:// or file://.", {
    advice: "Write postgres://user@host:5432/database.",
  });
}
