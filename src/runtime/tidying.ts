import type { DiscoveredAgents } from "../definitions/discover-agents.ts";

/** Removes old transcripts beside the work: it is begun once, and nobody waits for it but the end. */
export interface Tidying {
  begin(discovered: DiscoveredAgents): void;
  end(): Promise<void>;
}

/** How long transcripts are kept where settings do not say. */
const usualDays = 30;

export function createTidying(signal: AbortSignal, now: () => number): Tidying {
  let work: Promise<void> | undefined;
  async function tidy({ paths, settings }: DiscoveredAgents): Promise<void> {
    const { cleanUpTranscripts } = await import("../journal/cleanup.ts");
    const cleanupPeriodDays = settings.settings.plain.cleanupPeriodDays ?? usualDays;
    await cleanUpTranscripts({ projects: paths.projects, cleanupPeriodDays, now: now(), signal });
  }
  return {
    begin(discovered) {
      // What cannot be removed today is tried again at the next start.
      work ??= tidy(discovered).catch(() => undefined);
    },
    end: async () => work,
  };
}
