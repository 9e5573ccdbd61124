import { appendFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Studio, startStudio } from "../../src/apps/studio/start-studio.ts";
import { sessionFiles } from "../../src/journal/session-files.ts";
import { takeOwnerLock } from "../../src/storage/owner-lock.ts";

const browserFile = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(
  (file) => existsSync(file),
);
const flags = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

const project = "-work-shop";
const small = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const large = "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
let root = "";
let transcripts = "";
let studio: Studio;
let browser: Browser;

const line = (value: object): string => `${JSON.stringify(value)}\n`;
const stamp = (second: number): string => new Date(Date.UTC(2026, 9, 1, 10, 0, second)).toISOString();
const prompt = (uuid: string, text: string, second = 0) =>
  line({ type: "user", uuid, timestamp: stamp(second), message: { role: "user", content: text } });
const answer = (uuid: string, content: readonly object[], second = 1) =>
  line({
    type: "assistant",
    uuid,
    timestamp: stamp(second),
    costUSD: 0.25,
    durationMs: 900,
    message: { id: uuid, model: "claude-sonnet-5", content, usage: { input_tokens: 100, output_tokens: 10 } },
  });
const said = (uuid: string, text: string, second = 1) => answer(uuid, [{ type: "text", text }], second);
const ending = (uuid: string, runEnding: object, second = 2) =>
  line({
    type: "system",
    subtype: "turn_duration",
    uuid,
    timestamp: stamp(second),
    durationMs: 2000,
    runEnding,
  });

function writeSmall(): void {
  const files = sessionFiles(transcripts, small);
  mkdirSync(files.subagents, { recursive: true });
  const edit = {
    file_path: "/shop/shelf.ts",
    old_string: "const shelves = 3;",
    new_string: "const shelves = 4;",
  };
  writeFileSync(
    files.transcript,
    prompt("u1", "Count the shelves.") +
      line({
        type: "retinue-plan",
        timestamp: stamp(0),
        plan: {
          model: { value: "claude-sonnet-5", from: "the call" },
          policy: { mode: "plan", allow: [] },
          modeFrom: "settings",
        },
      }) +
      answer("a1", [{ type: "tool_use", id: "t1", name: "Edit", input: edit }]) +
      line({
        type: "user",
        uuid: "u2",
        timestamp: stamp(2),
        toolCall: { durationMs: 0, denied: "a rule denies it" },
        message: {
          role: "user",
          content: [{ type: "tool_result", tool_use_id: "t1", content: "no", is_error: true }],
        },
      }) +
      said("a2", "There are four shelves.", 3) +
      ending("e1", { status: "completed", reason: "end_turn" }, 4),
  );
  const failed = files.agent("afailed");
  writeFileSync(failed.meta, line({ agentType: "Explore", description: "Measure the shelves" }));
  writeFileSync(
    failed.transcript,
    prompt("f1", "Measure.") +
      said("f2", "I try.") +
      ending("f3", { status: "failed", reason: "error", error: "The ruler broke." }),
  );
}

/** A thousand agents with a few events each. */
function writeLarge(): void {
  const files = sessionFiles(transcripts, large);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.transcript, prompt("u1", "Visit every shelf.") + said("a1", "All visited."));
  for (let at = 0; at < 1000; at += 1) {
    const file = files.agent(`a${at}`);
    writeFileSync(file.meta, line({ agentType: "Explore", description: `Visit shelf ${at}` }));
    const turns = Array.from({ length: 1 }, (_, turn) => {
      const id = `${at}-${turn}`;
      const result = { type: "tool_result", tool_use_id: `t${id}`, content: "ok" };
      return (
        answer(
          `a${id}`,
          [{ type: "tool_use", id: `t${id}`, name: "Read", input: { file_path: `/shelf/${id}` } }],
          turn * 2,
        ) +
        line({
          type: "user",
          uuid: `r${id}`,
          timestamp: stamp(turn * 2 + 1),
          message: { role: "user", content: [result] },
        })
      );
    });
    writeFileSync(
      file.transcript,
      prompt(`p${at}`, "Visit.") +
        turns.join("") +
        ending(`e${at}`, { status: "completed", reason: "end_turn" }, 9),
    );
  }
}

async function openPage(hash: string, options: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 }, ...options });
  onTestFinished(() => page.close());
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (!request.url().startsWith(studio.origin)) wrong.push(`asked for ${request.url()}`);
  });
  onTestFinished(() => expect(wrong).toEqual([]));
  await page.goto(`${studio.link}${hash}`);
  return page;
}

const session = (id: string): string => `#/session/${project}/${id}`;

describe.skipIf(browserFile === undefined)("the page of the studio in a browser (needs Chromium)", () => {
  beforeAll(async () => {
    root = mkdtempSync(join(tmpdir(), "retinue-studio-page-"));
    transcripts = join(root, project);
    mkdirSync(transcripts);
    writeSmall();
    studio = await startStudio({
      scope: { projects: root },
      host: "127.0.0.1",
      port: 0,
      token: "0123456789abcdef0123",
      acting: {
        user: "ada",
        program: { file: process.execPath, arguments: ["-e", "0"] },
        environment: {},
        cwd: root,
      },
      log: () => undefined,
    });
    browser = await chromium.launch({ executablePath: browserFile ?? "", args: flags });
  });
  afterAll(async () => {
    await browser?.close();
    await studio?.close();
    rmSync(root, { recursive: true, force: true });
  });

  test("from the list to a session to an agent, by keyboard alone [STU-1]", async () => {
    const page = await openPage("");
    const link = page.getByRole("link", { name: /Count the shelves/ });
    await expect.poll(() => link.textContent(), { timeout: 20_000 }).toContain("$0.75");
    await link.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Count the shelves." }).waitFor();
    expect(await page.getByRole("region", { name: "Answer" }).textContent()).toContain(
      "There are four shelves.",
    );
    expect(await page.getByRole("region", { name: /Failed/ }).textContent()).toContain("The ruler broke.");
    const rows = page.getByRole("list", { name: "Agents", exact: true }).getByRole("link");
    await rows.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Measure the shelves" }).waitFor();
    expect(await page.locator("header").textContent()).toContain("The ruler broke.");
  });

  test("an agent's edits are shown as differences, refusals with their reason, the plan with its origins [STU-1]", async () => {
    const page = await openPage(`#/agent/${project}/${small}/main`);
    await page.locator(".diff .removed").waitFor();
    expect(await page.locator(".diff .removed").textContent()).toBe("- const shelves = 3;\n");
    expect(await page.locator(".diff .added").textContent()).toBe("+ const shelves = 4;\n");
    expect(await page.locator(".call").textContent()).toContain("Refused: a rule denies it");
    await page.getByText("Plan: what was decided").click();
    expect(await page.getByRole("row", { name: /permission mode/ }).textContent()).toBe(
      "permission modeplansettings",
    );
  });

  test("what fifty agents write is on the screen without being asked for [STU-1]", async () => {
    const id = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = sessionFiles(transcripts, id);
    mkdirSync(files.subagents, { recursive: true });
    writeFileSync(files.transcript, prompt("u1", "Go."));
    const locks = Array.from({ length: 50 }, (_, at) => {
      writeFileSync(files.agent(`a${at}`).meta, line({ agentType: "Explore", description: `Look ${at}` }));
      writeFileSync(files.agent(`a${at}`).transcript, prompt(`p${at}`, "Look."));
      return takeOwnerLock(files.agent(`a${at}`).transcript);
    });
    onTestFinished(() => {
      for (const taken of locks) if (taken.type === "taken") taken.lock.release();
    });
    // Asking the page needs a context without its policy, which lets no text run as a script.
    const page = await openPage(session(id), { bypassCSP: true });
    await page.getByRole("heading", { name: "Agents (51)" }).waitFor();
    // The page notes when the cost of all has grown; both ends have the same clock.
    await page.evaluate(`
      window.seen = new Map();
      new MutationObserver(() => {
        const cost = document.querySelector(".figures dd").textContent;
        if (!window.seen.has(cost)) requestAnimationFrame(() => window.seen.set(cost, Date.now()));
      }).observe(document.body, { subtree: true, childList: true, characterData: true });
    `);
    const times: number[] = [];
    for (let round = 1; round <= 10; round += 1) {
      const start = Date.now();
      for (let at = 0; at < 50; at += 1)
        appendFileSync(files.agent(`a${at}`).transcript, said(`s${round}-${at}`, `Step ${round}`, round));
      const cost = `$${(round * 12.5).toFixed(2)}`;
      await page.waitForFunction(`window.seen.has(${JSON.stringify(cost)})`);
      times.push(Number(await page.evaluate(`window.seen.get(${JSON.stringify(cost)})`)) - start);
    }
    const sorted = times.toSorted((a, b) => a - b);
    console.log(`event to pixel: median ${sorted[5]} ms, most ${sorted[9]} ms`);
    // The figure is 100 ms; other tests run beside this one.
    expect(sorted[5]).toBeLessThan(2000);
  });

  test("a thousand agents open with few rows in the page [STU-1]", { timeout: 60_000 }, async () => {
    writeLarge();
    const page = await openPage("");
    await page.getByRole("link", { name: /Visit every shelf/ }).waitFor();
    const start = Date.now();
    await page.goto(`${studio.link}${session(large)}`);
    await page.getByRole("heading", { name: "Agents (1001)" }).waitFor({ timeout: 60_000 });
    const took = Date.now() - start;
    expect(await page.locator(".rows li").count()).toBeLessThan(100);
    await page.evaluate("scrollTo(0, document.body.scrollHeight / 2)");
    await page.locator('li[aria-posinset="500"]').waitFor();
    const memory = await page
      .context()
      .newCDPSession(page)
      .then((cdp) => cdp.send("Runtime.getHeapUsage"));
    console.log(`1,000 agents: ${took} ms, heap ${Math.round(memory.usedSize / 1e6)} MB`);
    expect(memory.usedSize).toBeLessThan(150 * 1024 * 1024);
  });

  test.each([
    ["400 px, dark", { viewport: { width: 400, height: 800 }, colorScheme: "dark" }],
    ["2,000 px, light", { viewport: { width: 2000, height: 1000 }, colorScheme: "light" }],
  ] as const)("nothing is cut off at %s, and axe finds nothing serious [STU-1]", async (_, options) => {
    const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
    for (const [hash, there] of [
      ["", "Count the shelves"],
      [session(small), "There are four shelves."],
      [`#/agent/${project}/${small}/main`, "a rule denies it"],
      [`#/compare/${project}/${small}/${project}/${small}`, "Two sessions"],
    ] as const) {
      // The policy of the page keeps foreign scripts out, so that of the test needs a context without it.
      const page = await openPage(hash, { ...options, bypassCSP: true });
      await page.getByText(there).first().waitFor({ state: "attached" });
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      await page.addScriptTag({ path: axe });
      const found = (await page.evaluate("axe.run().then(({ violations }) => violations)")) as readonly {
        readonly id: string;
        readonly impact: string;
        readonly nodes: readonly { readonly html: string }[];
      }[];
      const serious = found.filter(({ impact }) => impact === "serious" || impact === "critical");
      expect(serious.map(({ id, nodes }) => `${hash} ${id} ${nodes[0]?.html}`)).toEqual([]);
    }
  });
});
