import type { RuntimeContext } from "./session-world.ts";

/** Removes what old sessions left, beside the work: it is begun once, and nobody waits for it but the end. */
export interface Tidying {
  begin(world: Pick<RuntimeContext, "discovered" | "environment">): void;
  end(): Promise<void>;
}

/** How long transcripts are kept where settings do not say. */
const defaultDays = 30;

export function createTidying(signal: AbortSignal, now: () => number): Tidying {
  let work: Promise<void> | undefined;
  async function tidy({
    discovered: { paths, settings },
    environment,
  }: Parameters<Tidying["begin"]>[0]): Promise<void> {
    const { cleanUp } = await import("../tasks/run-cleanup.ts");
    const olderThanDays = settings.settings.plain.cleanupPeriodDays ?? defaultDays;
    await cleanUp({ ...paths, olderThanDays, now: now(), dryRun: false, environment, signal });
  }
  return {
    begin(world) {
      // What cannot be removed today is tried again at the next start.
      work ??= tidy(world).catch(() => undefined);
    },
    end: async () => work,
  };
}
