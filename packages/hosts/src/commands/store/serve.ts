import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { openStore, storeFolder } from "@retinue/cluster/open-store.ts";
import { type ServeSessionsOptions, serveSessions } from "@retinue/cluster/serve-sessions.ts";
import type { Store, Worker } from "@retinue/cluster/store.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import { createMemoryReturn } from "../../shared/create-memory-return.ts";
import { folderOptionsOf } from "../../shared/flags.ts";
import { misuse } from "../../shared/misuse.ts";
import { readAcceptedRights } from "../../shared/read-accepted-rights.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";

export interface ServeStoreOptions {
  readonly concurrency: string;
  readonly queue?: readonly string[];
  readonly has?: readonly string[];
  readonly folder?: readonly string[];
  readonly acceptRights?: string;
  readonly workspaces?: string;
  readonly grace: string;
}

/** `retinue serve`: takes agents from the store until a signal comes, then hands over what it runs. */
export async function serve(
  { host, session, store: address }: StoreContext,
  options: ServeStoreOptions,
): Promise<number> {
  const slots = positive("--concurrency", options.concurrency);
  const graceMs = positive("--grace", options.grace) * 1000;
  const log = (text: string): void => host.stderr.write(`retinue: ${stripControlCharacters(text)}\n`);
  const stop = Promise.withResolvers<void>();
  const forget = host.onInterrupt(() => stop.resolve());
  await using store = await openStore(
    address.url,
    address.tenant === undefined ? {} : { tenant: address.tenant },
  );
  const { queue = [], has = [], folder = [], workspaces } = options;
  const worker = await startWorker({ host, session, store: address }, store, {
    slots,
    queues: queue,
    has,
    folders: folder,
    accepts: options.acceptRights === undefined ? undefined : readAcceptedRights(options.acceptRights),
    workspaces,
    onRunning: createMemoryReturn(),
  });
  log(`worker ${worker.id} serves ${store.label} with ${slots} places`);
  try {
    await stop.promise;
    log("shutting down: agents are handed over at the end of their turn");
    await worker.drain(graceMs);
    return 0;
  } finally {
    forget();
    host.leaveSoon?.();
  }
}

/** Makes this process a worker with the options of the command. */
export function startWorker(
  { host, session, store: { url } }: Pick<StoreContext, "host" | "session" | "store">,
  store: Store,
  options: Omit<ServeSessionsOptions, "runtime" | "onError">,
): Promise<Worker> {
  const log = (text: string): void => host.stderr.write(`retinue: ${stripControlCharacters(text)}\n`);
  // The store's address may hold a password, which agents need not know.
  const { RETINUE_STORE: _, ...environment } = host.environment;
  // Folders belong to the session that an agent is started with.
  const { additionalDirectories: _folders, ...given } = folderOptionsOf(session);
  return serveSessions(store, {
    ...options,
    runtime: {
      home: host.home,
      env: environment,
      platform: host.platform,
      entrypoint: "worker",
      // As every command, a worker obeys settings files in full, unless it is started with fewer of them.
      settingSources: ["user", "project", "local"],
      ...given,
      disallowedTools: [...(given.disallowedTools ?? []), ...storeRules(url)],
      onWarning: log,
    },
    onError: (error, agent) => log(`${agent === undefined ? "" : `${agent}: `}${describeError(error)}`),
  });
}

/** Who could write to a store in a folder could answer questions in a person's place. */
function storeRules(url: string): readonly string[] {
  return url.startsWith("file:") ? [`Edit(/${storeFolder(url)}/**)`] : [];
}

function positive(name: string, text: string): number {
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value <= 10_000) return value;
  throw misuse(`${name} needs a whole number from 1 to 10000, but got ${JSON.stringify(text)}.`);
}

function describeError(error: unknown): string {
  if (error instanceof RetinueError || isRetinueError(error)) return error.message;
  return error instanceof Error ? error.message : String(error);
}
