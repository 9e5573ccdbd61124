import type { RuntimeSetup } from "../options/runtime-options.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Telemetry } from "./start-telemetry.ts";
import { programTelemetrySettings, readTelemetrySettings } from "./telemetry-settings.ts";

/** Measures one session: its facts, for what measures in them, and the end. */
export interface SessionTelemetry {
  readonly facts: RuntimeContext;
  end(): void;
}

export interface TelemetrySource {
  measure(facts: RuntimeContext): Promise<SessionTelemetry | undefined>;
  /** Sends what is left. */
  end(): Promise<void>;
}

/** Starts measuring with the first session that is to be measured; until then nothing of it is loaded. */
export function createTelemetrySource({
  telemetry: wanted = false,
}: Pick<RuntimeSetup, "telemetry">): TelemetrySource {
  let starting: Promise<Telemetry | undefined> | undefined;

  async function start(facts: RuntimeContext): Promise<Telemetry | undefined> {
    const { environment } = facts;
    const settings =
      wanted === true ? programTelemetrySettings(environment) : readTelemetrySettings(environment);
    if (settings === undefined) return undefined;
    const { startTelemetry } = await import("./start-telemetry.ts");
    return startTelemetry({
      settings,
      environment,
      startsExporters: wanted === "environment",
      // A package of the project is the project's code, so it is loaded only where that may run.
      directories: facts.trusted ? [facts.discovered.paths.cwd] : [],
      notice: facts.notice,
    });
  }

  return {
    async measure(facts) {
      if (wanted === false) return undefined;
      starting ??= start(facts);
      const telemetry = await starting;
      if (telemetry === undefined) return undefined;
      const { openSessionTelemetry } = await import("./open-session-telemetry.ts");
      return openSessionTelemetry(telemetry, facts);
    },
    end: async () => (await starting)?.shutdown(),
  };
}
