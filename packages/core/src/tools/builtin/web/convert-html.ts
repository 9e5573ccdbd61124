// @io
import { existsSync } from "node:fs";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { tidyLines } from "./strip-tags.ts";

export interface ConvertedPage {
  readonly text: string;
  readonly title?: string;
}

/** A page as Markdown: its article where there is one, else all of it. May throw, or take very long, on odd markup. */
export async function convertHtml(html: string, url: string): Promise<ConvertedPage> {
  const [{ parseHTML }, readability, { default: Turndown }] = await Promise.all([
    import("linkedom"),
    import("@mozilla/readability"),
    import("turndown"),
  ]);
  // In a bundle, what a CommonJS package exports is under `default` only.
  const { Readability } =
    "default" in readability ? (readability.default as typeof readability) : readability;
  // Pages without head or body confuse the parser, so what is in them is put into a page that has both.
  const { document: given } = parseHTML(/<html[\s>]/i.test(html) ? html : wrapped(html));
  // Takes out what no reader sees, and makes links whole.
  for (const element of given.querySelectorAll(unseen)) element.remove();
  for (const element of given.querySelectorAll("[style]")) {
    if (/display\s*:\s*none|visibility\s*:\s*hidden/i.test(element.getAttribute("style") ?? ""))
      element.remove();
  }
  for (const link of given.querySelectorAll("a[href]")) {
    const target = URL.parse(link.getAttribute("href") ?? "", url);
    const isWeb = target !== null && /^(?:https?|mailto):$/.test(target.protocol);
    if (isWeb) link.setAttribute("href", target.href);
    else link.removeAttribute("href");
  }
  const title = (given.querySelector("title")?.textContent ?? "").replace(/\s+/g, " ").trim();
  for (const element of given.querySelectorAll("title")) element.remove();
  const everything: string = (given.querySelector("body") ?? given.documentElement).innerHTML;
  const { document } = parseHTML(wrapped(everything));
  const length = document.body.textContent.trim().length;
  const article = new Readability(document, { keepClasses: true }).parse();
  const isWorthIt = article !== null && (article.length ?? 0) >= Math.min(500, length / 2);
  const { document: part } = parseHTML(wrapped(isWorthIt ? (article.content ?? everything) : everything));
  const markdown = createTurndown(Turndown).turndown(part.body);
  const text = markdown.replace(/\n{3,}/g, "\n\n").trim();
  return title === "" ? { text } : { text, title };
}

function wrapped(body: string): string {
  return `<!doctype html><html><head></head><body>${body}</body></html>`;
}

const unseen =
  "script, style, noscript, template, svg, iframe, object, embed, canvas, img, [hidden], [aria-hidden=true]";

interface TurndownConstructor {
  new (options: object): TurndownLike;
}

interface TurndownLike {
  addRule(
    name: string,
    rule: { filter: string[]; replacement: (content: string, node: unknown) => string },
  ): unknown;
  turndown(node: unknown): string;
}

function createTurndown(Turndown: unknown): TurndownLike {
  // Its types ask for the DOM of a browser, which is not part of this program's types.
  const service = new (Turndown as TurndownConstructor)({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
    hr: "---",
  });
  service.addRule("cell", {
    filter: ["th", "td"],
    replacement: (content) => ` ${tidyLines(content).replaceAll("\n", " ").replaceAll("|", "\\|")} |`,
  });
  service.addRule("row", {
    filter: ["tr"],
    replacement: (content, node) =>
      `|${content}\n${isFirstRow(node) ? `|${" --- |".repeat((node as RowElement).children.length)}\n` : ""}`,
  });
  service.addRule("table", { filter: ["table"], replacement: (content) => `\n\n${content.trim()}\n\n` });
  service.addRule("tablePart", { filter: ["thead", "tbody", "tfoot"], replacement: (content) => content });
  return service;
}

interface RowElement {
  readonly children: { readonly length: number };
  readonly parentNode: { readonly nodeName: string; readonly previousElementSibling: unknown } | null;
  readonly previousElementSibling: unknown;
}

function isFirstRow(node: unknown): boolean {
  const row = node as RowElement; // The rule's filter lets only rows through.
  if (row.previousElementSibling !== null) return false;
  return row.parentNode?.nodeName === "TABLE" || row.parentNode?.previousElementSibling === null;
}

export interface ConversionOptions {
  readonly signal: AbortSignal;
  readonly limitMs: number;
}

const task = "retinue-html-conversion";

/** How long a thread waits for the next page: starting one and loading the parsers takes longer than most pages. */
const idleMs = 10_000;

/**
 * Converts a page in a thread of its own: some markup keeps the parsers busy for minutes, and only a thread can be
 * ended. Undefined when it failed, took too long, ran out of memory, or was aborted. This file is the thread's program too,
 * so it must be imported dynamically: only then is it a file of its own in a bundle.
 */
export async function runHtmlConversion(
  html: string,
  url: string,
  { signal, limitMs }: ConversionOptions,
): Promise<ConvertedPage | undefined> {
  if (!isOwnFile()) return undefined;
  const worker = takeThread();
  const ended = Promise.withResolvers<ConvertedPage | undefined>();
  const give = () => ended.resolve(undefined);
  const timer = setTimeout(give, limitMs);
  signal.addEventListener("abort", give, { once: true });
  if (signal.aborted) give();
  worker.once("message", ended.resolve).once("exit", give);
  worker.postMessage({ html, url });
  let page: ConvertedPage | undefined;
  try {
    page = await ended.promise;
    return page;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", give);
    worker.off("message", ended.resolve).off("exit", give);
    // One that did not answer may be busy for ever.
    if (page === undefined) await worker.terminate();
    else keepThread(worker);
  }
}

/** In a bundle of a program this file is that program, which a thread would run a second time. */
function isOwnFile(): boolean {
  // Bundles in the form of CommonJS have no such address.
  const here: string | undefined = import.meta.url;
  if (here === undefined) return false;
  return ["../../bin/retinue.js", "../../../../../../bin/retinue.js"].some((path) =>
    existsSync(new URL(path, here)),
  );
}

/** At most one thread waits for the next page, and none keeps the program from ending. */
let idle: { readonly worker: Worker; readonly timer: NodeJS.Timeout } | undefined;

function takeThread(): Worker {
  if (idle === undefined) {
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { task },
      env: {},
      execArgv: [],
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: 512 },
    });
    worker.on("error", () => undefined);
    worker.once("exit", () => {
      if (idle?.worker !== worker) return;
      clearTimeout(idle.timer);
      idle = undefined;
    });
    return worker;
  }
  const { worker, timer } = idle;
  idle = undefined;
  clearTimeout(timer);
  worker.ref();
  return worker;
}

function keepThread(worker: Worker): void {
  worker.unref();
  if (idle !== undefined) {
    void worker.terminate();
    return;
  }
  const timer = setTimeout(() => {
    idle = undefined;
    void worker.terminate();
  }, idleMs).unref();
  idle = { worker, timer };
}

if (isRecord(workerData) && workerData["task"] === task) {
  parentPort?.on("message", (page: { readonly html: string; readonly url: string }) => {
    void convertHtml(page.html, page.url).then(
      (converted) => parentPort?.postMessage(converted),
      () => parentPort?.postMessage(undefined),
    );
  });
}
