import { setUpStore } from "@retinue/cluster/open-store.ts";
import { pruneAgents } from "@retinue/cluster/prune-agents.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { withStore } from "../../shared/with-store.ts";

/** `retinue store setup` */
export async function setUp(
  { host, store: address }: StoreContext,
  { role }: { readonly role?: string },
): Promise<number> {
  await setUpStore({
    url: address.url,
    tenant: address.tenant,
    role,
  });
  host.stdout.write(
    role === undefined ? "The store is ready.\n" : `The store is ready for the role ${role}.\n`,
  );
  return 0;
}

/** `retinue store workers` */
export async function listWorkers(
  { host, store: address }: StoreContext,
  { json }: { readonly json?: boolean },
): Promise<number> {
  return withStore(address, async (store) => {
    const workers = await store.engine.workers();
    if (json === true) host.stdout.write(`${JSON.stringify(workers, null, 2)}\n`);
    else if (workers.length === 0) host.stdout.write("No worker serves this store.\n");
    else
      for (const { id, running, slots, version, has, ailment } of workers) {
        const aside = ailment === undefined ? "" : `  takes no agents: ${stripControlCharacters(ailment)}`;
        host.stdout.write(
          `${id}  ${running}/${slots} agents  version ${version}${aside}  has ${has.join(", ")}\n`,
        );
      }
    return 0;
  });
}

/** `retinue store limit` */
export async function limit({ host, store: address }: StoreContext, text: string): Promise<number> {
  const max = text === "none" ? undefined : Number(text);
  if (max !== undefined && (!Number.isInteger(max) || max < 1))
    throw misuse(`The limit is a whole number from 1, or none, but got ${JSON.stringify(text)}.`);
  return withStore(address, async (store) => {
    await store.engine.limit(max);
    host.stdout.write(
      max === undefined ? "There is no limit now.\n" : `At most ${max} agents run concurrently now.\n`,
    );
    return 0;
  });
}

/** `retinue clean --store` */
export async function clean(
  { host, store: address }: StoreContext,
  { days, dryRun }: { readonly days: string; readonly dryRun?: boolean },
): Promise<number> {
  const age = Number(days);
  if (!Number.isFinite(age) || age < 0)
    throw misuse(`--days needs a number, but got ${JSON.stringify(days)}.`);
  return withStore(address, async (store) => {
    const before = Date.now() - age * 86_400_000;
    const removed = await pruneAgents(store, { before, isDryRun: dryRun === true });
    const verb = dryRun === true ? "would be removed" : "were removed";
    host.stdout.write(`${removed.length} agents that ended more than ${days} days ago ${verb}.\n`);
    return 0;
  });
}
