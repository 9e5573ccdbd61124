// @io
import type * as Api from "@opentelemetry/api";
import type { Attributes, Meter } from "@opentelemetry/api";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { version } from "@retinue/base/foundation/version.ts";
import { contextTokens, type Usage } from "../../conversation/usage.ts";
import { createPackageLoader, isNotFound } from "../../models/create-package-loader.ts";
import type { TelemetrySettings } from "./telemetry-settings.ts";

export type OtelApi = Pick<
  typeof Api,
  "trace" | "context" | "metrics" | "SpanKind" | "SpanStatusCode" | "ROOT_CONTEXT"
>;

/** Writes one event of the log. */
export type EmitLog = (name: string, attributes: Api.Attributes, context: Api.Context) => void;

/** What sessions measure with. */
export interface Telemetry {
  readonly api: OtelApi;
  readonly settings: TelemetrySettings;
  readonly tracer: Api.Tracer;
  readonly instruments: Instruments;
  readonly log: EmitLog;
  /** Sends what is left, within a limit. Never rejects. */
  shutdown(): Promise<void>;
}

export interface StartTelemetryOptions {
  readonly settings: TelemetrySettings;
  /** Starts exporters as the environment specifies; otherwise those of the program are used. */
  readonly startsExporters: boolean;
  /** Where packages may be installed besides this program's own place. */
  readonly directories: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly notice: ((text: string) => void) | undefined;
}

const sdkName = "@opentelemetry/sdk-node";
const apiName = "@opentelemetry/api";
const logsName = "@opentelemetry/api-logs";

/** Loads OpenTelemetry, which is not installed with this program; undefined where it is not there, which is reported. */
export async function startTelemetry(options: StartTelemetryOptions): Promise<Telemetry | undefined> {
  const { settings, directories, notice } = options;
  const load = createPackageLoader(directories);
  const report = (why: string): undefined => {
    notice?.(`${settings.askedBy} asks for telemetry, but ${why}`);
    return undefined;
  };
  try {
    const api = (await load(apiName)) as OtelApi;
    const log = settings.logs ? await openLog(load, { api, settings }) : undefined;
    const sdk = options.startsExporters ? await startSdk(await load(sdkName), options) : undefined;
    return {
      api,
      settings,
      tracer: api.trace.getTracer("retinue", version),
      instruments: createInstruments(api.metrics.getMeter("retinue", version), settings),
      log: log?.emit ?? (() => undefined),
      async shutdown() {
        if (sdk === undefined) return;
        const limitMs = settings.shutdownMs;
        let timer: NodeJS.Timeout | undefined;
        const limit = new Promise<void>((resolve) => {
          timer = setTimeout(resolve, limitMs);
        });
        await Promise.race([sdk.shutdown().catch(() => undefined), limit]);
        clearTimeout(timer);
        // What was registered for the whole process is given back, so that a later runtime can start anew.
        for (const part of [api.trace, api.metrics, api.context, log?.logs]) part?.disable();
      },
    };
  } catch (error) {
    const missing = [apiName, sdkName].find((name) => isNotFound(error, name));
    if (missing !== undefined)
      return report(
        `the package ${missing} is not installed. Install it beside retinue: npm install ${apiName} ${sdkName}`,
      );
    return report(`it could not be started: ${error instanceof Error ? error.message : String(error)}`);
  }
}

interface Sdk {
  start(): void;
  shutdown(): Promise<void>;
}

/** The SDK reads the standard variables itself; it is given only what they do not say. */
async function startSdk(loaded: unknown, { settings, environment }: StartTelemetryOptions): Promise<Sdk> {
  const { NodeSDK } = loaded as { readonly NodeSDK: new (options: object) => Sdk };
  const { traces, metrics, logs } = settings;
  const wanted = { TRACES: traces, METRICS: metrics, LOGS: logs };
  const standard = Object.entries(environment).filter(([name]) => name.startsWith("OTEL_"));
  const before = new Map<string, string | undefined>();
  const set = (name: string, value: string | undefined): void => {
    if (!before.has(name)) before.set(name, process.env[name]);
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  };
  // It looks at the variables of the process only; those of settings files count as well.
  for (const [name, value] of standard) set(name, value);
  for (const [signal, isWanted] of Object.entries(wanted)) {
    const name = `OTEL_${signal}_EXPORTER`;
    if (!isWanted) set(name, "none");
    else if ((environment[name] ?? "") === "") set(name, "otlp");
  }
  try {
    const sdk = new NodeSDK({
      serviceName: environment.OTEL_SERVICE_NAME ?? "retinue",
      // Nothing of the program's own is instrumented but what is measured here.
      instrumentations: [],
      autoDetectResources: false,
    });
    sdk.start();
    return sdk;
  } finally {
    for (const [name, value] of before) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}

/** Events have the names of Claude Code where its variable switches them on, and our own otherwise. */
async function openLog(
  load: (name: string) => Promise<unknown>,
  { api, settings }: { readonly api: OtelApi; readonly settings: TelemetrySettings },
): Promise<{ readonly emit: EmitLog; readonly logs: Logs } | undefined> {
  const loaded = await load(logsName).catch(() => undefined);
  const logs = isRecord(loaded) ? loaded.logs : undefined;
  if (!isLogs(logs)) return undefined;
  const prefix = settings.claudeNames ? "claude_code" : "retinue";
  return {
    logs,
    emit(name, attributes, context) {
      const eventName = `${prefix}.${name}`;
      const all = { ...attributes, "event.name": name };
      const record = { eventName, body: eventName, attributes: all, context: context ?? api.ROOT_CONTEXT };
      logs.getLogger("retinue", version).emit(record);
    },
  };
}

interface Logs {
  getLogger(name: string, version: string): { emit(record: object): void };
  disable(): void;
}

function isLogs(value: unknown): value is Logs {
  return typeof value === "object" && value !== null && "getLogger" in value;
}

/** What is counted. */
interface Instruments {
  /** One model call: its tokens, cost and duration. */
  modelCall(call: {
    readonly usage: Usage;
    readonly cost: number | undefined;
    readonly seconds: number;
    readonly attributes: Attributes;
    readonly model: string;
  }): void;
  /** A model call that failed. */
  modelFailure(seconds: number, attributes: Attributes): void;
  agentStarted(attributes: Attributes): void;
  agentEnded(seconds: number, attributes: Attributes): void;
  toolCall(seconds: number, attributes: Attributes): void;
  refusal(attributes: Attributes): void;
  sessionStarted(attributes: Attributes): void;
}

/** The names of the GenAI conventions where there are some, and our own where not; for Claude Code's dashboards also theirs. */
function createInstruments(meter: Meter, { claudeNames }: TelemetrySettings): Instruments {
  const tokens = meter.createHistogram("gen_ai.client.token.usage", { unit: "{token}" });
  const duration = meter.createHistogram("gen_ai.client.operation.duration", { unit: "s" });
  const cost = meter.createCounter("retinue.cost.usage", { unit: "USD" });
  const active = meter.createUpDownCounter("retinue.agents.active", { unit: "{agent}" });
  const agents = meter.createHistogram("retinue.agent.duration", { unit: "s" });
  const tools = meter.createHistogram("retinue.tool.duration", { unit: "s" });
  const refusals = meter.createCounter("retinue.tool.refusals", { unit: "{call}" });
  const claude = claudeNames
    ? {
        tokens: meter.createCounter("claude_code.token.usage", { unit: "tokens" }),
        cost: meter.createCounter("claude_code.cost.usage", { unit: "USD" }),
        sessions: meter.createCounter("claude_code.session.count"),
      }
    : undefined;
  return {
    modelCall({ usage, cost: paid, seconds, attributes, model }) {
      tokens.record(contextTokens(usage), { ...attributes, "gen_ai.token.type": "input" });
      tokens.record(usage.outputTokens, { ...attributes, "gen_ai.token.type": "output" });
      duration.record(seconds, attributes);
      if (paid !== undefined) cost.add(paid, attributes);
      if (claude === undefined) return;
      const own = { ...sessionPart(attributes), model };
      for (const [type, count] of claudeTokens(usage)) claude.tokens.add(count, { ...own, type });
      if (paid !== undefined) claude.cost.add(paid, own);
    },
    modelFailure: (seconds, attributes) => duration.record(seconds, attributes),
    agentStarted: (attributes) => active.add(1, attributes),
    agentEnded(seconds, { "error.type": error, ...attributes }) {
      active.add(-1, attributes);
      agents.record(seconds, error === undefined ? attributes : { ...attributes, "error.type": error });
    },
    toolCall: (seconds, attributes) => tools.record(seconds, attributes),
    refusal: (attributes) => refusals.add(1, attributes),
    sessionStarted: (attributes) => claude?.sessions.add(1, sessionPart(attributes)),
  };
}

function claudeTokens(usage: Usage): readonly (readonly [string, number])[] {
  return [
    ["input", usage.inputTokens],
    ["output", usage.outputTokens],
    ["cacheRead", usage.cacheReadTokens],
    ["cacheCreation", usage.cacheWriteTokens],
  ];
}

function sessionPart({ "session.id": id, "app.version": version }: Attributes): Attributes {
  return {
    ...(id === undefined ? {} : { "session.id": id }),
    ...(version === undefined ? {} : { "app.version": version }),
  };
}
