import { readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { metrics, trace } from "@opentelemetry/api";
import {
  readTelemetrySettings,
  readTraceParent,
  writeTraceParent,
} from "@retinue/core/kernel/telemetry/telemetry-settings.ts";
import { createSampleRuntime, type SampleRuntime } from "@retinue/testing/sample-runtime.ts";
import type { Step } from "@retinue/testing/script.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { installOnDemand } from "../on-demand/install-on-demand.ts";
import { call } from "../replay/scenarios.ts";
import { type OtlpReceiver, type ReceivedSpan, startOtlpReceiver } from "./otlp-receiver.ts";

const outer = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };
const long = "word ".repeat(3000);

/** Shows the trace context that it was started with, and that of the call. */
const server = `
process.stdin.on("data", (data) => {
  for (const line of String(data).split("\\n").filter(Boolean)) {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) continue;
    const tool = { name: "where", description: "x", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
    const text = JSON.stringify({ env: process.env.TRACEPARENT, meta: params?._meta?.traceparent });
    const result =
      method === "initialize" ? { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }
      : method === "tools/list" ? { tools: [tool] }
      : method === "tools/call" ? { content: [{ type: "text", text }] } : undefined;
    const answer = result === undefined ? { error: { code: -32601, message: "unknown" } } : { result };
    process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...answer }) + "\\n");
  }
});`;

const { folder, missing } = await installOnDemand("telemetry");
const skipped = missing === undefined ? "" : ` (skipped: ${missing})`;

describe.skipIf(missing !== undefined)(`a session is measured${skipped}`, () => {
  let receiver: OtlpReceiver;
  let told: { readonly bash: string; readonly server: { readonly env: string; readonly meta: string } };
  let hooked: string;

  beforeAll(async () => {
    receiver = await startOtlpReceiver();
    const steps = [
      call("Agent", { description: "look", prompt: "look", subagent_type: "Explore" }),
      call("Read", { file_path: "secret.txt" }),
      { text: `${long} found` },
      call("Bash", { command: "echo $TRACEPARENT" }),
      call("Bash", { command: "rm x" }),
      call("mcp__s__where", {}),
      { ...call("Read", { file_path: "missing.txt" }), usage: { inputTokens: 76_500 } },
      "a summary",
      "done",
    ];
    await using sample = await start(receiver, steps, {
      CLAUDE_CODE_ENABLE_TELEMETRY: "1",
      OTEL_TRACES_EXPORTER: "otlp",
      OTEL_METRICS_EXPORTER: "otlp",
      OTEL_LOGS_EXPORTER: "otlp",
      TRACEPARENT: writeTraceParent({ ...outer, traceFlags: 1 }),
    });
    const { workspace, runtime } = sample;
    await workspace.write("secret.txt", "the secret\n");
    const script = await workspace.write("server.mjs", server);
    const hook = { type: "command", command: "echo $TRACEPARENT >> hooked.txt" };
    await workspace.write(
      ".claude/settings.json",
      JSON.stringify({
        hooks: { PreToolUse: [{ matcher: "Read", hooks: [hook] }] },
        enableAllProjectMcpServers: true,
      }),
    );
    await workspace.write(
      ".mcp.json",
      JSON.stringify({ mcpServers: { s: { command: process.execPath, args: [script] } } }),
    );
    const result = await runtime.run("Show no one.", { allowedTools: ["mcp__s"] }).result;
    expect(result).toMatchObject({ status: "completed", text: "done" });
    const said = (at: number): string => {
      const message = sample.requests[at]?.messages.at(-1);
      const [block] = typeof message?.content === "string" ? [] : (message?.content ?? []);
      const content = block?.type === "tool_result" ? block.content : "";
      return typeof content === "string"
        ? content
        : content.flatMap((part) => ("text" in part ? part.text : [])).join("");
    };
    told = { bash: said(4).trim(), server: JSON.parse(said(6)) };
    hooked = (await readFile(workspace.path("hooked.txt"), "utf8")).split("\n")[0] ?? "";
    await runtime.close();
  }, 60_000);
  afterAll(() => receiver[Symbol.asyncDispose]());

  const spanOf = (name: string, matches: (span: ReceivedSpan) => boolean = () => true): ReceivedSpan => {
    const found = receiver.spans.find((span) => span.name === name && matches(span));
    if (found === undefined)
      throw new Error(`${name} of ${receiver.spans.map((span) => span.name).join(", ")}`);
    return found;
  };
  const totalOf = (name: string, type?: string): number =>
    receiver.metrics
      .filter((metric) => metric.name === name)
      .flatMap(({ points }) => points)
      .filter(({ attributes }) => type === undefined || Object.values(attributes).includes(type))
      .reduce((sum, { value }) => sum + value, 0);

  test("spans of session, agents, model calls, tools and hooks hang together in the caller's trace [OTL-1]", () => {
    const session = spanOf("retinue.session");
    const main = spanOf("invoke_agent main");
    const tool = spanOf("execute_tool Agent");
    const child = spanOf("invoke_agent Explore");
    expect(new Set(receiver.spans.map(({ traceId }) => traceId))).toEqual(new Set([outer.traceId]));
    expect(session.parentSpanId).toBe(outer.spanId);
    expect(main.parentSpanId).toBe(session.spanId);
    expect(tool.parentSpanId).toBe(main.spanId);
    expect(child.parentSpanId).toBe(tool.spanId);
    expect(spanOf("execute_tool Read").parentSpanId).toBe(child.spanId);
    expect(spanOf("hook PreToolUse", ({ parentSpanId }) => parentSpanId === child.spanId)).toBeDefined();
    const summary = spanOf("compaction");
    expect(summary.parentSpanId).toBe(main.spanId);
    expect(spanOf("chat scripted", ({ parentSpanId }) => parentSpanId === summary.spanId)).toBeDefined();
  });

  test("attributes have the names of the GenAI conventions [OTL-1]", () => {
    const chat = spanOf("chat scripted");
    expect(chat.kind).toBe(3);
    expect(chat.attributes).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.provider.name": "scripted",
      "gen_ai.request.model": "scripted",
      "gen_ai.response.finish_reasons": ["tool_use"],
      "gen_ai.usage.input_tokens": expect.any(Number),
      "gen_ai.conversation.id": spanOf("retinue.session").attributes["gen_ai.conversation.id"],
    });
    expect(spanOf("execute_tool mcp__s__where").attributes).toMatchObject({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "mcp__s__where",
      "gen_ai.tool.type": "extension",
      "mcp.server.name": "s",
    });
    expect(spanOf("invoke_agent Explore").attributes).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "Explore",
      "retinue.status": "completed",
    });
    const failed = spanOf("execute_tool Read", ({ status }) => status?.code === 2);
    expect(failed.attributes["error.type"]).toBe("tool_error");
  });

  test("tokens, durations, agents and refusals are counted, also under Claude Code's names [OTL-1]", () => {
    expect(totalOf("gen_ai.client.token.usage", "input")).toBeGreaterThan(70_000);
    expect(totalOf("claude_code.token.usage", "output")).toBeGreaterThan(0);
    expect(totalOf("gen_ai.client.operation.duration")).toBeGreaterThan(0);
    expect(totalOf("retinue.agents.active")).toBe(0);
    expect(totalOf("retinue.tool.refusals")).toBe(1);
    expect(totalOf("claude_code.session.count")).toBe(1);
    expect(receiver.logs.map(({ name }) => name)).toEqual(
      expect.arrayContaining([
        "claude_code.user_prompt",
        "claude_code.api_request",
        "claude_code.tool_result",
      ]),
    );
  });

  test("what people, models and tools say stays here unless it is asked for [OTL-1]", () => {
    const sent = receiver.bodies.join("\n");
    for (const content of ["Show no one", "the secret", "secret.txt", "a summary", "found"])
      expect(sent).not.toContain(content);
  });

  test("hooks, servers and commands get the trace context of their span [OTL-1]", () => {
    const contextOf = (text: string) => readTraceParent(text) ?? { traceId: "", spanId: "" };
    expect(contextOf(told.bash)).toMatchObject({
      traceId: outer.traceId,
      spanId: spanOf("execute_tool Bash").spanId,
    });
    expect(contextOf(told.server.env).traceId).toBe(outer.traceId);
    expect(contextOf(told.server.meta).spanId).toBe(spanOf("execute_tool mcp__s__where").spanId);
    expect(contextOf(hooked).spanId).toBe(spanOf("hook PreToolUse").spanId);
  });

  test("contents are sent where they are asked for, and a question is a span of its own [OTL-1]", async () => {
    await using other = await startOtlpReceiver();
    await using sample = await start(
      other,
      [call("Bash", { command: "touch asked.txt" }), "done"],
      {
        OTEL_EXPORTER_OTLP_ENDPOINT: other.address,
        OTEL_LOG_USER_PROMPTS: "1",
        OTEL_LOG_TOOL_DETAILS: "1",
        OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT: "true",
      },
      { approver: { approve: async () => ({ type: "allow", for: "call" }) } },
    );
    await sample.runtime.run("Show everybody.").result;
    await sample.runtime.close();
    const named = (name: string) => other.spans.find((span) => span.name === name)?.attributes;
    expect(named("invoke_agent main")?.["retinue.prompt"]).toBe("Show everybody.");
    expect(named("execute_tool Bash")?.["gen_ai.tool.call.arguments"]).toContain("touch asked.txt");
    expect(named("chat scripted")?.["gen_ai.input.messages"]).toContain("Show everybody.");
    expect(named("permission Bash")).toMatchObject({ "retinue.permission.decision": "allowed" });
    expect(other.logs.map(({ name }) => name)).toContain("retinue.user_prompt");
  });
});

test("without variables nothing is registered, and an option uses what the program has [OTL-1]", async () => {
  await using sample = await createSampleRuntime(["done"], { telemetry: "environment" });
  await sample.runtime.run("x").result;
  expect(
    Reflect.get(trace.getTracerProvider(), "getDelegate")?.call(trace.getTracerProvider()).constructor.name,
  ).toBe("NoopTracerProvider");
  const names: string[] = [];
  const provider = {
    getTracer: () => ({
      startSpan(name: string) {
        names.push(name);
        return trace.wrapSpanContext({ ...outer, traceFlags: 1 });
      },
    }),
  };
  trace.setGlobalTracerProvider(provider as never);
  try {
    await using own = await createSampleRuntime(["done"], { telemetry: true });
    await own.runtime.run("x").result;
    expect(names).toEqual(["retinue.session", "invoke_agent main", "chat scripted"]);
  } finally {
    trace.disable();
    metrics.disable();
  }
});

describe("what the environment asks for", () => {
  test.each([
    [{}, undefined],
    [{ CLAUDE_CODE_ENABLE_TELEMETRY: "1" }, undefined],
    [{ CLAUDE_CODE_ENABLE_TELEMETRY: "0", OTEL_TRACES_EXPORTER: "otlp" }, undefined],
    [{ OTEL_TRACES_EXPORTER: "otlp", OTEL_SDK_DISABLED: "true" }, undefined],
    [{ OTEL_TRACES_EXPORTER: "none" }, undefined],
    [{ OTEL_TRACES_EXPORTER: "console" }, { traces: true, metrics: false, logs: false, claudeNames: false }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "http://x" }, { traces: true, metrics: true, logs: true }],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: "http://x", OTEL_LOGS_EXPORTER: "none" },
      { traces: true, metrics: true, logs: false },
    ],
    [
      {
        CLAUDE_CODE_ENABLE_TELEMETRY: "1",
        OTEL_METRICS_EXPORTER: "otlp",
        OTEL_EXPORTER_OTLP_ENDPOINT: "http://x",
      },
      { traces: false, metrics: true, logs: false, claudeNames: true },
    ],
    [
      { OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_INCLUDE_SESSION_ID: "false" },
      { metricAttributes: { sessionId: false } },
    ],
  ])("%j [OTL-1]", (environment, expected) => {
    const settings = readTelemetrySettings(environment);
    if (expected === undefined) expect(settings).toBeUndefined();
    else expect(settings).toMatchObject(expected);
  });

  test.each([
    "",
    "00-0-0-00",
    `00-${"0".repeat(32)}-b7ad6b7169203331-01`,
    `ff-${outer.traceId}-${outer.spanId}-01`,
  ])("%j is no trace context [OTL-1]", (text) => {
    expect(readTraceParent(text)).toBeUndefined();
  });
});

/** The SDK is installed for the project, as users do. */
async function start(
  receiver: OtlpReceiver,
  steps: readonly Step[],
  environment: Readonly<Record<string, string>>,
  options: Parameters<typeof createSampleRuntime>[1] = {},
): Promise<SampleRuntime> {
  const sample = await createSampleRuntime(steps, {
    telemetry: "environment",
    durability: "os",
    trusted: true,
    modelOptions: { facts: { contextWindow: 80_000, maxOutputTokens: 4_000 } },
    env: {
      PATH: process.env["PATH"],
      RETINUE_LOCAL_MODELS: "0",
      OTEL_EXPORTER_OTLP_ENDPOINT: receiver.address,
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      ...environment,
    },
    ...options,
  });
  await symlink(join(folder, "node_modules"), sample.workspace.path("node_modules"), "junction");
  return sample;
}
