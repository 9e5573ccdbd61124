import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { createInspectionSource } from "@retinue/core/inspection/inspection-source.ts";
import { collectExport } from "@retinue/core/kernel/live/collect-export.ts";
import { createLiveText, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import { withTeam } from "@retinue/core/kernel/teams/mail-of-team.ts";
import { openTeamStore } from "@retinue/core/teams/team-store.ts";
import { exportPage, loadPage } from "@retinue/hosts/studio/export-page.ts";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  ending,
  launchBrowser,
  line,
  missingBrowser,
  openShop,
  project,
  prompt,
  type Shop,
  said,
  small,
} from "./sample-sessions.ts";

const large = "4f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const manyAgents = 300;
let shop: Shop;
let browser: Browser;

function writeLarge(): void {
  const files = shop.files(large);
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(files.transcript, prompt("u1", "Visit every shelf.") + said("a1", "All visited."));
  for (let at = 0; at < manyAgents; at += 1) {
    const file = files.agent(`a${at}`);
    writeFileSync(file.meta, line({ agentType: "Explore", description: `Visit shelf ${at}` }));
    const done = ending(`e${at}`, { status: "completed", reason: "end_turn" }, 9);
    writeFileSync(file.transcript, prompt(`p${at}`, "Visit.") + said(`s${at}`, "Seen.") + done);
  }
}

/** A page on which every error, and every request for something else, fails the test. */
async function openPage(address: string, options: Parameters<Browser["newPage"]>[0] = {}): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1100, height: 800 }, ...options });
  onTestFinished(() => page.close());
  const wrong: string[] = [];
  page.on("pageerror", (error) => wrong.push(error.message));
  page.on("console", (message) => {
    if (message.type() === "error") wrong.push(message.text());
  });
  page.on("request", (request) => {
    const isOwn = request.url().startsWith(shop.studio.origin) || request.url() === address;
    if (!isOwn) wrong.push(`asked for ${request.url()}`);
  });
  onTestFinished(() => expect(wrong).toEqual([]));
  await page.goto(address);
  return page;
}

const at = (hash: string): string => `${shop.studio.link}${hash}`;
const session = (id: string): string => `#/session/${project}/${id}`;
const mainAgent = `#/agent/${project}/${small}/main`;

describe.skipIf(missingBrowser !== undefined)("the page of the studio in a browser (needs Chromium)", () => {
  beforeAll(async () => {
    shop = await openShop();
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.[Symbol.asyncDispose]();
  });

  test("from the list to a session to an agent, by keyboard alone [STU-1]", async () => {
    const page = await openPage(at(""));
    const link = page.getByRole("link", { name: /Count the shelves/ });
    await expect.poll(() => link.textContent(), { timeout: 20_000 }).toContain("$0.75");
    await link.focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Count the shelves." }).waitFor();
    const parts = page.getByRole("region");
    expect(await parts.filter({ hasText: "There are four shelves." }).count()).toBe(1);
    expect(await page.getByRole("region", { name: /Failed/ }).textContent()).toContain("The ruler broke.");
    const rows = page.getByRole("list", { name: "Agents", exact: true }).getByRole("link");
    await rows.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Measure the shelves" }).waitFor();
    expect(await page.locator("header").textContent()).toContain("The ruler broke.");
  });

  test("an agent's edits are differences, and every call says why it was allowed or refused [STU-1]", async () => {
    const page = await openPage(at(mainAgent));
    await page.locator(".diff .removed").waitFor();
    expect(await page.locator(".diff .removed").textContent()).toBe("- const shelves = 3;\n");
    expect(await page.locator(".diff .added").textContent()).toBe("+ const shelves = 4;\n");
    const calls = page.locator(".call");
    expect(await calls.first().textContent()).toContain("Refused: a rule denies it");
    expect(await calls.last().textContent()).toContain(
      "Allowed: the rule Bash(ls:*) in .claude/settings.json allows it.",
    );
    await page.getByText("Plan: what was decided").click();
    expect(await page.getByRole("row", { name: /permission mode/ }).textContent()).toBe(
      "permission modeplansettings",
    );
  });

  test("what a model writes in another process appears while it is written [STU-1]", async () => {
    const id = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const files = shop.files(id);
    writeFileSync(files.transcript, prompt("u1", "Go."));
    const taken = takeOwnerLock(files.transcript);
    const live = createLiveText(liveFiles(files));
    onTestFinished(() => {
      live.close();
      if (taken.type === "taken") taken.lock.release();
    });
    const delta = (text: string) =>
      live.onEvent("main", { type: "model-streamed", event: { type: "text-delta", index: 0, text } });
    const page = await openPage(at(`#/agent/${project}/${id}/main`));
    const writing = page.getByRole("group", { name: "Being written" });
    delta("Once upon");
    await expect.poll(() => writing.textContent(), { timeout: 10_000 }).toBe("Once upon");
    delta(" a time");
    await expect.poll(() => writing.textContent()).toBe("Once upon a time");
    appendFileSync(files.transcript, said("a1", "Once upon a time."));
    live.onEvent("main", {
      type: "run-ended",
      ending: { status: "completed" } as never, // Only its type is read.
    });
    await expect.poll(() => writing.count()).toBe(0);
    const conversation = page.getByRole("region", { name: "Conversation" });
    await expect.poll(() => conversation.textContent()).toContain("Once upon a time.");
  });

  test("the team's members, board and mail are shown and follow what happens [STU-1]", async () => {
    const page = await openPage(at(session(small)));
    await page.getByRole("link", { name: /Team shop/ }).click();
    await page.getByRole("row", { name: /Measure every shelf.*measurer/ }).waitFor();
    expect(await page.getByRole("list", { name: /Members/ }).textContent()).toContain("measurer");
    const mail = page.getByRole("region", { name: "Mail" });
    expect(await mail.textContent()).toContain("team-lead → measurer: Begin at the door.");
    await openTeamStore(shop.teams, "shop").send("team-lead", { from: "measurer", body: "The ruler broke." });
    await expect.poll(() => mail.textContent()).toContain("measurer → team-lead: The ruler broke.");
  });

  test("a question is answered from the page, and a conversation forked from a message [STU-2]", async () => {
    const page = await openPage(at(session(small)));
    const question = page.getByRole("article", { name: /Question/ });
    await question.getByLabel("Allow for").selectOption("session");
    await question.getByLabel("at most times").fill("2");
    await question.getByRole("button", { name: "Allow" }).click();
    await page.getByText(/allowed by ada \(studio\) for this session, used 0 of 2 times/).waitFor();
    await page.goto(at(mainAgent));
    await page.getByRole("button", { name: "Fork before this prompt" }).waitFor();
    await page.getByRole("button", { name: "Fork after this answer" }).click();
    await page.getByRole("heading", { level: 1, name: /Count the shelves\. \(fork\)/ }).waitFor();
    expect(readFileSync(join(shop.files(small).directory, "acts.jsonl"), "utf8")).toMatch(
      /"approve".*"ada"/s,
    );
  });

  test("hundreds of agents open with few rows in the page [STU-1]", async () => {
    writeLarge();
    const page = await openPage(at(session(large)));
    await page.getByRole("heading", { name: `Agents (${manyAgents + 1})` }).waitFor();
    expect(await page.locator(".rows li").count()).toBeLessThan(100);
    await page.evaluate("scrollTo(0, document.body.scrollHeight / 2)");
    await page.locator('li[aria-posinset="150"]').waitFor();
  });

  test("an exported session is the same page, from a file, without a network [STU-1, LIM-4]", async () => {
    const place = { transcripts: shop.transcripts, sessionId: small };
    const inspection = await createInspectionSource({ ...place, now: Date.now }).load();
    const file = join(shop.root, "session.html");
    const data = await collectExport(withTeam(inspection, shop.teams), place);
    writeFileSync(file, exportPage(data, loadPage()));
    const page = await openPage(pathToFileURL(file).href);
    await page.getByRole("heading", { level: 1, name: "Count the shelves." }).waitFor();
    expect(await page.getByText("A snapshot of").count()).toBe(1);
    expect(await page.getByRole("button").count()).toBe(0);
    await page.getByRole("link", { name: /Team shop/ }).click();
    await page.getByText("Begin at the door.").waitFor();
    await page.getByRole("link", { name: "Count the shelves." }).click();
    await page.getByRole("link", { name: /Main agent/ }).click();
    await page.getByText("There are four shelves.").waitFor();
    expect(await page.locator(".call").first().textContent()).toContain("Refused: a rule denies it");
  });

  test.each([
    ["400 px, dark", { viewport: { width: 400, height: 800 }, colorScheme: "dark" }],
    ["2,000 px, light", { viewport: { width: 2000, height: 1000 }, colorScheme: "light" }],
  ] as const)("nothing is cut off at %s, and axe finds nothing serious [STU-1]", async (_, options) => {
    // The policy of the page keeps foreign scripts out, so that of the test needs a context without it.
    const page = await openPage(at(""), { ...options, bypassCSP: true });
    await page.addScriptTag({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
    for (const [hash, there] of [
      ["#/", "Count the shelves"],
      [session(small), "There are four shelves."],
      [mainAgent, "a rule denies it"],
      [`#/team/${project}/${small}`, "Measure every shelf"],
      [`#/compare/${project}/${small}/${project}/${small}`, "Two sessions"],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.getByText(there).first().waitFor({ state: "attached" });
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
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
