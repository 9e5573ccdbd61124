import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { installOnDemand } from "../test/on-demand/install-on-demand.ts";
import { startOtlpReceiver } from "../test/telemetry/otlp-receiver.ts";
import { median, printTable } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, weighSubject } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

const few = 50;
const many = 200;
const rounds = 5;
/** A model that answers in a tenth of a second is a fast one; what measuring adds is held against such a turn. */
const turnMs = 100;
const limit = 1.03;

/** A turn with tracing and metrics on, sent to a collector, against the same without: the slope from 50 to 200 turns. */
export async function benchTelemetry(): Promise<boolean> {
  const { folder, missing } = await installOnDemand("telemetry");
  if (missing !== undefined) throw new Error(`The OpenTelemetry SDK is not installed: ${missing}`);
  using place = createWorkplace();
  symlinkSync(join(folder, "node_modules"), join(place.project, "node_modules"), "junction");
  await using provider = await startProvider({ deltaSize: 1000 });
  await using receiver = await startOtlpReceiver();
  const program = [programFile, "-p", "--trust", "--output-format", "json", "--model", "claude-sonnet-4-5"];
  const measuring = {
    OTEL_EXPORTER_OTLP_ENDPOINT: receiver.address,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_LOGS_EXPORTER: "none",
  };
  const subjects = { off: {}, on: measuring } as const;
  const names = ["off", "on"] as const;
  const times = new Map(names.map((name) => [name, { few: [] as number[], many: [] as number[] }]));
  for (let round = -1; round < rounds; round += 1)
    for (const [size, turns] of [
      ["few", few],
      ["many", many],
    ] as const)
      for (const name of names) {
        const prompt = `turns=${turns} folder=${place.project}`;
        const subject = { arguments: [...program, prompt], url: provider.url, environment: subjects[name] };
        const run = await weighSubject(subject, place);
        if (!run.output.includes("DONE")) throw new Error(`${name} did not finish: ${run.output}`);
        if (round >= 0) times.get(name)?.[size].push(run.cpuMs);
      }
  if (receiver.spans.length < many) throw new Error("The collector has heard nothing.");
  const slope = (name: (typeof names)[number]): number => {
    const own = times.get(name);
    return (median(own?.many ?? []) - median(own?.few ?? [])) / (many - few);
  };
  const added = slope("on") - slope("off");
  const row = (
    what: string,
    milliseconds: number,
    ratio: number,
    more: { readonly limit?: number } = {},
  ) => ({
    what,
    milliseconds,
    against: `a turn of ${turnMs} ms`,
    ratio,
    ...more,
  });
  return printTable(`One turn with telemetry, processor time (slope from ${few} to ${many} turns)`, [
    row("telemetry off", slope("off"), (turnMs + slope("off")) / (turnMs + slope("off"))),
    row("telemetry on", slope("on"), (turnMs + slope("off") + added) / (turnMs + slope("off")), { limit }),
  ]);
}
