import { randomUUID } from "node:crypto";
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { createLiveText, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import { startStudio } from "@retinue/hosts/studio/start-studio.ts";
import type { Browser, Page } from "playwright-core";
import {
  answer,
  ending,
  launchBrowser,
  line,
  missingBrowser,
  openShop,
  project,
  prompt,
  result,
  type Shop,
  said,
} from "../test/studio/sample-sessions.ts";
import { median } from "./measure.ts";
import { startProvider } from "./provider.ts";
import { programFile, weighSubject } from "./run-subject.ts";
import { createWorkplace } from "./workplace.ts";

interface Figure {
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly limit?: number;
}

/** The live page with many agents and events, and what it costs the process that is looked at. */
export async function benchStudio(): Promise<boolean> {
  const figures = [...(await measurePage()), ...(await measureAttached())];
  console.log("\nThe studio");
  for (const { what, value, unit, limit } of figures) {
    const verdict = limit === undefined ? "" : `  limit ${limit}  ${value <= limit ? "ok" : "TOO MUCH"}`;
    console.log(`  ${what.padEnd(62)} ${value.toFixed(1).padStart(8)} ${unit}${verdict}`);
  }
  return figures.every(({ value, limit }) => limit === undefined || value <= limit);
}

async function measurePage(): Promise<readonly Figure[]> {
  if (missingBrowser !== undefined) {
    console.log(`The page is not measured: ${missingBrowser}.`);
    return [];
  }
  await using shop = await openShop();
  const browser = await launchBrowser();
  try {
    return [...(await measureStreaming(shop, browser)), ...(await measureLarge(shop, browser))];
  } finally {
    await browser.close();
  }
}

const streaming = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const streamingAgents = 50;
const deltaMs = 50;
const probes = 200;

/** Fifty agents that write a piece of text twenty times a second each, and an answer now and then. */
async function measureStreaming(shop: Shop, browser: Browser): Promise<readonly Figure[]> {
  const files = shop.files(streaming);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.transcript, prompt("u1", "Go."));
  const ids = Array.from({ length: streamingAgents }, (_, at) => `a${at}`);
  const locks = ids.map((id) => {
    writeFileSync(files.agent(id).meta, line({ agentType: "Explore", description: `Look ${id}` }));
    writeFileSync(files.agent(id).transcript, prompt(`p${id}`, "Look."));
    return takeOwnerLock(files.agent(id).transcript);
  });
  const live = createLiveText(liveFiles(files));
  const onEvent = (id: string, text: string): void =>
    live.onEvent(id, { type: "model-streamed", event: { type: "text-delta", index: 0, text } });
  const page = await openPage(browser, `${shop.studio.link}#/session/${project}/${streaming}`);
  await page.getByRole("heading", { name: `Agents (${streamingAgents + 1})` }).waitFor();
  await page.evaluate(noteMarks);
  let round = 0;
  const timer = setInterval(() => {
    round += 1;
    for (const id of ids) onEvent(id, `piece ${round} of some text, `);
    const done = ids[round % streamingAgents] ?? "";
    appendFileSync(files.agent(done).transcript, said(`s${round}`, "An answer.", round % 60));
  }, deltaMs);
  // A process looks for viewers twice a second.
  await pause(1500);
  const sentAt = new Map<string, number>();
  for (let probe = 0; probe < probes; probe += 1) {
    await pause(70);
    const mark = `mark-${probe}-`;
    sentAt.set(mark, Date.now());
    onEvent(ids[probe % streamingAgents] ?? "", ` ${mark} `);
  }
  await pause(1000);
  clearInterval(timer);
  const seen = (await page.evaluate("[...window.marks]")) as readonly (readonly [string, number])[];
  const times = seen.map(([mark, at]) => at - (sentAt.get(mark) ?? at)).toSorted((a, b) => a - b);
  live.close();
  for (const taken of locks) if (taken.type === "taken") taken.lock.release();
  await page.close();
  return [
    { what: `text to pixel, ${streamingAgents} agents streaming, median`, value: median(times), unit: "ms" },
    {
      what: `text to pixel, ${streamingAgents} agents streaming, 95 % of ${times.length}`,
      value: times[Math.floor(times.length * 0.95)] ?? Number.NaN,
      unit: "ms",
      limit: 100,
    },
  ];
}

/** Notes when each mark is first painted; both ends have the same clock. */
const noteMarks = `
  window.marks = new Map();
  new MutationObserver(() => {
    const found = document.body.textContent.match(/mark-\\d+-/g) ?? [];
    const fresh = found.filter((mark) => !window.marks.has(mark));
    for (const mark of fresh) window.marks.set(mark, Number.NaN);
    if (fresh.length > 0)
      requestAnimationFrame(() => { for (const mark of fresh) window.marks.set(mark, Date.now()); });
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
`;

const large = "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const largeAgents = 1000;
/** An answer with a call and its result, and what begins and ends a run: a hundred events for each agent. */
const turnsOfLarge = 49;

async function measureLarge(shop: Shop, browser: Browser): Promise<readonly Figure[]> {
  const files = shop.files(large);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.transcript, prompt("u1", "Visit every shelf.") + said("a1", "All visited."));
  for (let at = 0; at < largeAgents; at += 1) {
    const file = files.agent(`a${at}`);
    writeFileSync(file.meta, line({ agentType: "Explore", description: `Visit shelf ${at}` }));
    const turns = Array.from({ length: turnsOfLarge }, (_, turn) => {
      const id = `${at}-${turn}`;
      const call = { type: "tool_use", id: `t${id}`, name: "Read", input: { file_path: `/shelf/${id}` } };
      return answer(`a${id}`, [call], turn) + result(`r${id}`, `t${id}`, { durationMs: 5 }, turn);
    });
    const done = ending(`e${at}`, { status: "completed", reason: "end_turn" }, 59);
    writeFileSync(file.transcript, prompt(`p${at}`, "Visit.") + turns.join("") + done);
  }
  const page = await openPage(browser, `${shop.studio.link}#/session/${project}/${large}`);
  const heading = page.getByRole("heading", { name: "Visit every shelf." });
  await heading.waitFor();
  const first = await sinceStart(page);
  await page.getByRole("heading", { name: `Agents (${largeAgents + 1})` }).waitFor({ timeout: 60_000 });
  const whole = await sinceStart(page);
  await page.evaluate(
    "document.querySelector('.p-tree').scrollTo(0, document.querySelector('.p-tree').scrollHeight / 2)",
  );
  await page.locator('[aria-posinset="500"]').waitFor();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("HeapProfiler.collectGarbage");
  const { usedSize } = await cdp.send("Runtime.getHeapUsage");
  const memory = rendererMiB();
  await page.close();
  return [
    { what: "1,000 agents, 100,000 events: first paint", value: first, unit: "ms", limit: 1000 },
    { what: "the same, everything", value: whole, unit: "ms" },
    { what: "the same, JavaScript heap of the tab", value: usedSize / 2 ** 20, unit: "MiB", limit: 150 },
    { what: "the same, private memory of the tab's process", value: memory, unit: "MiB", limit: 150 },
  ];
}

async function openPage(browser: Browser, address: string): Promise<Page> {
  // Asking the page needs a context without its policy, which lets no text run as a script.
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  await page.goto(address, { waitUntil: "commit" });
  return page;
}

async function sinceStart(page: Page): Promise<number> {
  return Number(
    await page.evaluate("new Promise((done) => requestAnimationFrame(() => done(performance.now())))"),
  );
}

/** What the largest renderer of a browser holds for itself; 0 where the system does not say. */
function rendererMiB(): number {
  const sizes = readdirSync("/proc").flatMap((pid) => {
    try {
      if (!/^\d+$/.test(pid) || !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("--type=renderer"))
        return [];
      const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
      const sizes = [...rollup.matchAll(/^Private_\w+: +(\d+) kB/gm)].map(([, size]) => Number(size));
      return [sizes.reduce((sum, size) => sum + size, 0) / 1024];
    } catch {
      return [];
    }
  });
  return Math.max(0, ...sizes);
}

const few = 50;
const many = 200;
const rounds = 3;
/** A model that answers in a tenth of a second is a fast one; what watching adds is held against such a turn. */
const turnMs = 100;

/** Processor time of a turn with a studio that follows the session, against the same without. */
async function measureAttached(): Promise<readonly Figure[]> {
  using place = createWorkplace();
  await using provider = await startProvider({ deltaSize: 40 });
  const times = {
    off: { few: [] as number[], many: [] as number[] },
    on: { few: [] as number[], many: [] as number[] },
  };
  const folder = place.project.replace(/[^A-Za-z0-9]/g, "-");
  const projects = join(place.home, ".claude/projects");
  const studio = await startStudio({
    scope: { projects, project: folder },
    host: "127.0.0.1",
    port: 0,
    token: "0123456789abcdef0123",
    acting: { user: "bench", program: { file: "", arguments: [] }, environment: {}, cwd: place.project },
    log: () => undefined,
  });
  for (let round = -1; round < rounds; round += 1)
    for (const [size, turns] of [
      ["few", few],
      ["many", many],
    ] as const)
      for (const name of ["off", "on"] as const) {
        const id = randomUUID();
        const stop = new AbortController();
        if (name === "on") {
          const address = `${studio.origin}/api/agent?project=${folder}&id=${id}`;
          const headers = { authorization: "Bearer 0123456789abcdef0123" };
          const response = await fetch(address, { headers, signal: stop.signal });
          void drain(response);
        }
        const words = ["-p", "--output-format", "json", "--model", "claude-sonnet-4-5", "--session-id", id];
        const subject = {
          arguments: [programFile, ...words, `turns=${turns} folder=${place.project}`],
          url: provider.url,
        };
        const run = await weighSubject(subject, place);
        stop.abort();
        if (!run.output.includes("DONE")) throw new Error(`${name} did not finish: ${run.output}`);
        if (round >= 0) times[name][size].push(run.cpuMs);
      }
  await studio.close();
  const slope = (name: "off" | "on"): number =>
    (median(times[name].many) - median(times[name].few)) / (many - few);
  const added = slope("on") - slope("off");
  return [
    { what: "processor time of a turn, no studio", value: slope("off"), unit: "ms" },
    { what: "processor time of a turn, studio attached", value: slope("on"), unit: "ms" },
    {
      what: `what a studio adds to a turn of ${turnMs} ms`,
      value: (100 * Math.max(0, added)) / (turnMs + slope("off")),
      unit: "%",
      limit: 3,
    },
  ];
}

async function drain(response: Response): Promise<void> {
  try {
    for await (const _ of response.body ?? []);
  } catch {
    // It was aborted.
  }
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}
