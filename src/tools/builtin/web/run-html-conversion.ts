import { parentPort, Worker, workerData } from "node:worker_threads";
import { isRecord } from "../../../foundation/json-record.ts";
import { type ConvertedPage, convertHtml } from "./convert-html.ts";

export interface ConversionOptions {
  readonly signal: AbortSignal;
  readonly limitMs: number;
}

const task = "retinue-html-conversion";

/**
 * Converts a page in a thread of its own: some markup keeps the parsers busy for minutes, and only a thread can be
 * ended. Undefined when it took too long, ran out of memory, or was aborted. This file is the thread's program too, so
 * it must be imported dynamically: only then is it a file of its own in a bundle.
 */
export async function runHtmlConversion(
  html: string,
  url: string,
  { signal, limitMs }: ConversionOptions,
): Promise<ConvertedPage | undefined> {
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { task, html, url },
    env: {},
    execArgv: [],
    stdout: true,
    stderr: true,
    resourceLimits: { maxOldGenerationSizeMb: 512 },
  });
  const ended = Promise.withResolvers<ConvertedPage | undefined>();
  const give = () => ended.resolve(undefined);
  const timer = setTimeout(give, limitMs);
  signal.addEventListener("abort", give, { once: true });
  if (signal.aborted) give();
  worker.once("message", ended.resolve).on("error", give).once("exit", give);
  try {
    return await ended.promise;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", give);
    await worker.terminate();
  }
}

if (isRecord(workerData) && workerData["task"] === task) {
  parentPort?.postMessage(await convertHtml(String(workerData["html"]), String(workerData["url"])));
}
