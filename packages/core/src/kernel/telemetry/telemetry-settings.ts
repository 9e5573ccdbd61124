/** The environment's settings for measuring. */
export interface TelemetrySettings {
  readonly traces: boolean;
  readonly metrics: boolean;
  readonly logs: boolean;
  /** Metrics and events also under the names that dashboards for Claude Code know. */
  readonly claudeNames: boolean;
  readonly content: {
    /** What people and models say. */
    readonly prompts: boolean;
    readonly messages: boolean;
    /** What tools are called with, and what they give back. */
    readonly toolInputs: boolean;
    readonly toolResults: boolean;
  };
  readonly metricAttributes: { readonly sessionId: boolean; readonly version: boolean };
  /** The span that the session belongs to, from `TRACEPARENT`. */
  readonly parent?: TraceParent;
  readonly shutdownMs: number;
  /** Names the variable by which a person asked for it, so that it can be informed that it cannot be done. */
  readonly askedBy: string;
}

export interface TraceParent {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

type Environment = Readonly<Record<string, string | undefined>>;

const signals = ["traces", "metrics", "logs"] as const;
const defaultShutdownMs = 2_000;

/**
 * Reads the standard variables and those of Claude Code. Undefined where nothing is to be measured. Where Claude Code's
 * variable switches it on, each signal needs its exporter named, as there; otherwise an address alone means all of them.
 */
export function readTelemetrySettings(environment: Environment): TelemetrySettings | undefined {
  const enabled = environment.CLAUDE_CODE_ENABLE_TELEMETRY;
  const isClaude = isOn(enabled);
  const isOff = enabled !== undefined && enabled !== "" && !isClaude;
  if (isOff || isOn(environment.OTEL_SDK_DISABLED)) return undefined;
  const named = signals.filter((signal) => exporterOf(environment, signal) !== undefined);
  const hasAddress = signals.filter((signal) => addressOf(environment, signal) !== undefined);
  const wanted = signals.filter(
    (signal) =>
      named.includes(signal) || (!isClaude && hasAddress.includes(signal) && !isNone(environment, signal)),
  );
  if (wanted.length === 0) return undefined;
  return settingsOf(environment, { wanted, isClaude, askedBy: askedBy(environment, wanted[0] ?? "traces") });
}

/** The settings of a program that measures by its own means: content stays off unless the environment switches it on. */
export function programTelemetrySettings(environment: Environment): TelemetrySettings {
  const isClaude = isOn(environment.CLAUDE_CODE_ENABLE_TELEMETRY);
  return settingsOf(environment, { wanted: signals, isClaude, askedBy: "the option telemetry" });
}

function settingsOf(
  environment: Environment,
  {
    wanted,
    isClaude,
    askedBy,
  }: { readonly wanted: readonly string[]; readonly isClaude: boolean; readonly askedBy: string },
): TelemetrySettings {
  const parent = readTraceParent(environment.TRACEPARENT);
  return {
    traces: wanted.includes("traces"),
    metrics: wanted.includes("metrics"),
    logs: wanted.includes("logs"),
    claudeNames: isClaude,
    content: {
      prompts: isOn(environment.OTEL_LOG_USER_PROMPTS),
      messages: isOn(environment.OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT),
      toolInputs: isOn(environment.OTEL_LOG_TOOL_DETAILS),
      toolResults: isOn(environment.OTEL_LOG_TOOL_CONTENT),
    },
    metricAttributes: {
      sessionId: !isFalse(environment.OTEL_METRICS_INCLUDE_SESSION_ID),
      version: isOn(environment.OTEL_METRICS_INCLUDE_VERSION),
    },
    parent,
    shutdownMs: positive(environment.CLAUDE_CODE_OTEL_SHUTDOWN_TIMEOUT_MS) ?? defaultShutdownMs,
    askedBy,
  };
}

function exporterOf(environment: Environment, signal: string): string | undefined {
  const value = environment[`OTEL_${signal.toUpperCase()}_EXPORTER`]?.trim();
  return value === undefined || value === "" || value === "none" ? undefined : value;
}

function isNone(environment: Environment, signal: string): boolean {
  return environment[`OTEL_${signal.toUpperCase()}_EXPORTER`]?.trim() === "none";
}

function addressOf(environment: Environment, signal: string): string | undefined {
  const own = environment[`OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`];
  const value = own === undefined || own === "" ? environment.OTEL_EXPORTER_OTLP_ENDPOINT : own;
  return value === "" ? undefined : value;
}

function askedBy(environment: Environment, signal: string): string {
  if (isOn(environment.CLAUDE_CODE_ENABLE_TELEMETRY)) return "CLAUDE_CODE_ENABLE_TELEMETRY";
  const exporter = `OTEL_${signal.toUpperCase()}_EXPORTER`;
  return exporterOf(environment, signal) === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : exporter;
}

/** The W3C form: version, trace, span and flags. A malformed one counts as none, as the standard wants it. */
export function readTraceParent(text: string | undefined): TraceParent | undefined {
  const match = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/.exec(text ?? "");
  const [, traceId = "", spanId = "", flags = ""] = match ?? [];
  if (match === null || /^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  return { traceId, spanId, traceFlags: Number.parseInt(flags, 16) };
}

export function writeTraceParent({ traceId, spanId, traceFlags }: TraceParent): string {
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
}

function isOn(value: string | undefined): boolean {
  return value !== undefined && /^(?:1|true|yes|on)$/i.test(value.trim());
}

function isFalse(value: string | undefined): boolean {
  return value !== undefined && /^(?:0|false|no|off)$/i.test(value.trim());
}

function positive(value: string | undefined): number | undefined {
  const number = Number(value);
  return value !== undefined && value !== "" && Number.isFinite(number) && number > 0 ? number : undefined;
}
