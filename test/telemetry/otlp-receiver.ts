import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface ReceivedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly status?: { readonly code?: number };
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface ReceivedMetric {
  readonly name: string;
  readonly unit: string;
  readonly points: readonly {
    readonly value: number;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
}

/** A collector of OTLP over HTTP in this process. */
export interface OtlpReceiver extends AsyncDisposable {
  readonly address: string;
  readonly spans: readonly ReceivedSpan[];
  readonly metrics: readonly ReceivedMetric[];
  readonly logs: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  /** Everything as it came. */
  readonly bodies: readonly string[];
}

interface Pair {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const metrics: ReceivedMetric[] = [];
  const logs: OtlpReceiver["logs"][number][] = [];
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const text = Buffer.concat(pieces).toString();
      bodies.push(text);
      take(JSON.parse(text));
      response.setHeader("content-type", "application/json").end("{}");
    });
  });

  // biome-ignore lint/suspicious/noExplicitAny: it is whatever the exporter sends
  function take(body: any): void {
    for (const { scopeSpans } of body.resourceSpans ?? [])
      for (const scope of scopeSpans)
        for (const span of scope.spans) spans.push({ ...span, attributes: attributesOf(span.attributes) });
    for (const { scopeMetrics } of body.resourceMetrics ?? [])
      for (const scope of scopeMetrics)
        for (const metric of scope.metrics)
          metrics.push({
            name: metric.name,
            unit: metric.unit,
            points: (metric.histogram ?? metric.sum).dataPoints.map((point: Record<string, unknown>) => ({
              value: Number(point["sum"] ?? point["asInt"] ?? point["asDouble"]),
              attributes: attributesOf(point["attributes"] as readonly Pair[]),
            })),
          });
    for (const { scopeLogs } of body.resourceLogs ?? [])
      for (const scope of scopeLogs)
        for (const log of scope.logRecords)
          logs.push({ name: log.eventName, attributes: attributesOf(log.attributes) });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `http://127.0.0.1:${port}`,
    spans,
    metrics,
    logs,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function attributesOf(pairs: readonly Pair[] = []): Readonly<Record<string, unknown>> {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, plain(value)]));
}

function plain(value: Readonly<Record<string, unknown>>): unknown {
  const { intValue, arrayValue } = value;
  if (intValue !== undefined) return Number(intValue);
  if (arrayValue !== undefined)
    return (arrayValue as { readonly values: readonly Readonly<Record<string, unknown>>[] }).values.map(
      plain,
    );
  return Object.values(value)[0];
}
