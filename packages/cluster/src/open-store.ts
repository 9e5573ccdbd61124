import { parse, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { SetUpOptions } from "./postgres/postgres-store-options.ts";
import type { Store } from "./store.ts";

export interface OpenStoreOptions {
  readonly tenant?: string | undefined;
  readonly schema?: string | undefined;
  /** How long calls wait for a server that cannot be reached before they fail. */
  readonly outageMs?: number | undefined;
  /** The same while the store is being opened; `outageMs` when absent. */
  readonly connectMs?: number | undefined;
  readonly workerName?: string | undefined;
}

export const openingChecks = {
  tenant: checks.filled,
  schema: checks.filled,
  outageMs: checks.amount,
  connectMs: checks.amount,
  workerName: checks.filled,
};

/** Opens a store by its address: `postgres://…` for many machines, `file:///folder` for one process on this one. */
export async function openStore(address: string, options: OpenStoreOptions = {}): Promise<Store> {
  checkArgument("The first argument of openStore()", checks.filled, address);
  checkTable("openStore", openingChecks, options);
  if (/^postgres(ql)?:/.test(address)) {
    const { openPostgresStore } = await import("./postgres/open-postgres-store.ts");
    return openPostgresStore({ url: address, ...options });
  }
  if (address.startsWith("file:")) {
    const folder = storeFolder(address);
    const { openFileStore } = await import("./files/open-file-store.ts");
    return openFileStore(folder);
  }
  throw new RetinueError("invalid-store-url", "The address of a store begins with postgres:// or file://.", {
    advice: "Write postgres://user@host:5432/database.",
  });
}

/** Makes or updates the tables of a PostgreSQL store. Safe to run again, and while workers run. */
export async function setUpStore(options: SetUpOptions): Promise<void> {
  const table = {
    url: checks.filled,
    schema: checks.filled,
    tenant: checks.filled,
    role: checks.filled,
    tls: checks.anything,
  };
  checkTable("setUpStore", table, options);
  checkArgument("The option url of setUpStore()", checks.filled, options.url);
  if (!/^postgres(ql)?:/.test(options.url))
    throw new RetinueError("invalid-store-url", "Only a PostgreSQL store has to be set up.", {
      advice: "Write postgres://user@host:5432/database.",
    });
  const { setUpPostgres } = await import("./postgres/set-up-postgres.ts");
  await setUpPostgres(options);
}

/** A URL takes `file://` and `file:notes` for the root of the file system or a folder in it, which is never meant. */
export function storeFolder(address: string): string {
  const folder = /^file:\/\/(localhost)?\/[^?#]+$/.test(address) ? pathOf(address) : undefined;
  if (folder !== undefined && parse(folder).root !== resolve(folder)) return folder;
  throw new RetinueError(
    "invalid-store-url",
    `The address ${JSON.stringify(address)} names no folder for a store.`,
    {
      advice: "Write the full path of the folder after file://, such as file:///var/lib/retinue.",
    },
  );
}

/** Undefined for what is no path, such as one with an encoded slash. */
function pathOf(address: string): string | undefined {
  try {
    return fileURLToPath(address);
  } catch {
    return undefined;
  }
}
