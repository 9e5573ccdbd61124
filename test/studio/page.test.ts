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
  lastMergeSteps,
  launchBrowser,
  line,
  mergeSteps,
  missingBrowser,
  openShop,
  project,
  prompt,
  runId,
  type Shop,
  said,
  small,
  writeMerge,
  writeQuestion,
  writeRun,
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
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, ...options });
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
    using merge = await writeMerge(shop.transcripts, small, mergeSteps);
    await merge.write(lastMergeSteps);
    (await writeRun(shop.transcripts, small, { status: "failed" })).journal.close();
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.[Symbol.asyncDispose]();
  });

  test("from the list to a session to an agent, by keyboard alone [STU-1]", async () => {
    const page = await openPage(at(""));
    const row = page.getByRole("row", { name: /Count the shelves/ });
    await expect.poll(() => row.textContent(), { timeout: 20_000 }).toContain("$0.75");
    expect(page.url()).not.toContain("token");
    await row.getByRole("link").focus();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { level: 1, name: "Count the shelves." }).waitFor();
    const conversation = page.getByRole("region", { name: "Conversation", exact: true });
    await expect.poll(() => conversation.textContent()).toContain("There are four shelves.");
    expect(await conversation.textContent()).toContain("in 100 · out 10 · $0.25");
    await page.keyboard.press("j");
    await page.getByRole("heading", { level: 2, name: "Measure the shelves", exact: true }).waitFor();
    expect(await page.locator(".ban.bad").textContent()).toContain("The ruler broke.");
    const chosen = page.getByRole("treeitem", { selected: true });
    await expect.poll(() => chosen.textContent()).toContain("Asks: rm -r old-shelves");
    await page.keyboard.press("g");
    await page.keyboard.press("a");
    await page.getByRole("heading", { level: 1, name: "Approvals" }).waitFor();
  });

  test("an agent's edits are differences, and every call says why it was allowed or refused [STU-1]", async () => {
    const page = await openPage(at(mainAgent));
    await page.locator(".diff .r").waitFor();
    expect(await page.locator(".diff .r").textContent()).toBe("−const shelves = 3;");
    expect(await page.locator(".diff .a").textContent()).toBe("+const shelves = 4;");
    const calls = page.locator(".call");
    expect(await calls.first().textContent()).toContain("refused: a rule denies it");
    expect(await calls.last().textContent()).toContain(
      "allowed: the rule Bash(ls:*) in .claude/settings.json allows it",
    );
    await page.getByText("Plan: what was decided").click();
    expect(await page.getByRole("row", { name: /permission mode/ }).textContent()).toBe(
      "permission modeplansettings",
    );
  });

  test("what the runtime checked of an agent's result stands beside it [VRF-2]", async () => {
    const page = await openPage(at(mainAgent));
    const section = page.locator(".p-side .sec", { hasText: "failed-check" });
    await section.waitFor();
    const text = await section.textContent();
    expect(text).toContain("on tree 5f1c0de5f1c0");
    expect(text).toMatch(/npm testpassed.*npm run lintfailed with exit code 3/);
    expect(text).toContain("The last test run is older than the last edit.");
  });

  test("answers are Markdown with coloured code, and nothing in them becomes HTML or a dangerous link [STU-1]", async () => {
    const id = "8f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const text = [
      "# Plan **now**",
      "- `one` & <img src=x onerror=alert(1)>",
      "- [good](https://example.com/a) and [bad](javascript:alert(1)) and ![shot](data:text/html,x)",
      "",
      "```ts",
      'const shelf: string = "oak"; // wood',
      "```",
      "",
      "| a | b |",
      "|---|---|",
      "| 1 | 2 |",
      "",
      "<script>alert(1)</script>",
    ].join("\n");
    writeFileSync(shop.files(id).transcript, prompt("u1", "Go.") + said("a1", text));
    const page = await openPage(at(session(id)));
    const answer = page.locator(".e-text .md");
    await answer.waitFor();
    expect(await answer.locator("h4 strong").textContent()).toBe("now");
    expect(await answer.locator("li").first().textContent()).toBe("one & <img src=x onerror=alert(1)>");
    expect(await answer.locator(".hljs-keyword").first().textContent()).toBe("const");
    expect(await answer.locator("td").count()).toBe(2);
    expect(await answer.textContent()).toContain("<script>alert(1)</script>");
    expect(await answer.locator("img, script, [onerror]").count()).toBe(0);
    const links = await answer
      .locator("a")
      .evaluateAll((found) => found.map((one) => one.getAttribute("href")));
    expect(links).toEqual(["https://example.com/a"]);
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
    // Markdown has its form while it is written, also in a block of code that is not closed yet.
    delta(" in `shelf.ts`.\n\n```ts\nlet a;\n\nlet b");
    await expect.poll(() => writing.locator("p code").allTextContents()).toEqual(["shelf.ts"]);
    await expect.poll(() => writing.locator("pre").allTextContents()).toEqual(["let a;\n\nlet b"]);
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

  test("teams of all sessions are listed with their tasks, and follow what happens [STU-1]", async () => {
    const page = await openPage(at("#/teams"));
    const row = page.getByRole("row", { name: /^.*shop.*Count the shelves/ });
    await expect.poll(() => row.textContent(), { timeout: 10_000 }).toContain("0 of 1");
    await openTeamStore(shop.teams, "shop").board.change(
      "1",
      { status: "completed" },
      { by: { name: "measurer", isLead: false } },
    );
    await expect.poll(() => row.textContent(), { timeout: 10_000 }).toContain("1 of 1");
    await row.getByRole("link").click();
    await page.getByRole("heading", { level: 1, name: "Team shop" }).waitFor();
  });

  test("results of evaluations in the folder are shown by agent and model, broken files with the reason [STU-1]", async () => {
    const folder = join(shop.root, "evals");
    mkdirSync(join(shop.root, "node_modules"), { recursive: true });
    mkdirSync(folder, { recursive: true });
    const one = {
      definition: "main",
      model: "offline",
      repetition: 1,
      turns: 2,
      durationMs: 900,
      costUsd: 0.5,
    };
    writeFileSync(
      join(folder, "shop.yaml.results.jsonl"),
      line({ ...one, key: "a", task: "counts", passed: true, score: 1, status: "completed" }) +
        line({
          ...{ ...one, key: "b", task: "sings", passed: false, score: 0, status: "completed" },
          reason: "the check ended with 1",
          sessionId: small,
        }),
    );
    writeFileSync(join(shop.root, "node_modules", "other.results.jsonl"), "");
    const page = await openPage(at("#/evals"));
    const section = page.getByRole("region", { name: "evals/shop.yaml.results.jsonl", exact: true });
    await section.waitFor();
    expect(await section.getByRole("row", { name: /main/ }).textContent()).toContain("1 of 20.50$1.00");
    expect(await page.getByText("1 file").count()).toBe(1);
    expect(await section.getByRole("list", { name: "Not passed" }).textContent()).toContain(
      "the check ended with 1",
    );
    await section.getByRole("link", { name: /sings/ }).click();
    await page.getByRole("heading", { level: 1, name: "Count the shelves." }).waitFor();
  });

  test("a session is downloaded as one file, which opens without the studio [STU-1]", async () => {
    const page = await openPage(at(session(small)));
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Export" }).click(),
    ]);
    const file = join(shop.root, "export.html");
    await download.saveAs(file);
    expect(download.suggestedFilename()).toBe(`retinue-${small.slice(0, 8)}.html`);
    const own = await openPage(pathToFileURL(file).href);
    await own.getByText("There are four shelves.").first().waitFor();
    expect(await own.getByRole("link", { name: "Export" }).count()).toBe(0);
  });

  test("a question is answered from the page, and a conversation forked from a message [STU-2]", async () => {
    const page = await openPage(at("#/approvals"));
    const question = page.getByRole("article", { name: /Bash: main/ });
    expect(await question.getByRole("group", { name: "Command" }).textContent()).toBe("rm -r old-shelves");
    await question.getByText("no limit").click();
    await question.getByLabel("at most times").fill("2");
    const answered = page.getByText(
      "allowed by ada (studio) for this session, Bash(rm -r old-shelves), used 0 of 2 times",
    );
    // It can be answered only a moment after it became the current one.
    await expect
      .poll(async () => {
        const button = question.getByRole("button", { name: /Allow for session/ });
        if ((await answered.count()) === 0) await button.click({ timeout: 500 }).catch(() => undefined);
        return answered.count();
      })
      .toBe(1);
    await page.goto(at(mainAgent));
    await page.getByRole("button", { name: "Fork before this prompt" }).waitFor();
    await page.getByRole("button", { name: "Fork after this answer" }).click();
    await page.getByRole("heading", { level: 1, name: /Count the shelves\. \(fork\)/ }).waitFor();
    expect(readFileSync(join(shop.files(small).directory, "acts.jsonl"), "utf8")).toMatch(
      /"approve".*"ada"/s,
    );
  });

  test("a key answers the current question, typing never does, and an edit is shown as a diff [STU-2]", async () => {
    writeFileSync(join(shop.root, "shelf.ts"), "// wood\nconst shelves = 3;\n");
    const input = { file_path: "shelf.ts", old_string: "= 3", new_string: "= 4" };
    writeQuestion(shop.files(small), { id: "1123456789ab", tool: "Edit", input, directory: shop.root });
    const page = await openPage(at("#/approvals"));
    const question = page.getByRole("article", { name: /Edit: main/ });
    await question.waitFor();
    expect(await question.locator(".diff .r").textContent()).toBe("2−const shelves = 3;");
    expect(await question.locator(".diff .a").textContent()).toBe("2+const shelves = 4;");
    expect(await page.title()).toBe("(1) Retinue");
    await question.getByLabel("Message to the agent").pressSequentially("add a shelf", { delay: 60 });
    expect(await question.count()).toBe(1);
    await page.getByRole("heading", { level: 1 }).click();
    const denied = page.getByText("denied by ada (studio): add a shelf");
    await expect
      .poll(async () => {
        if ((await denied.count()) === 0) await page.keyboard.press("d");
        return denied.count();
      })
      .toBe(1);
    await page.getByRole("heading", { name: "Nothing waits for you" }).waitFor();
  });

  test("agents that start together are asked about with what they would take and may do, as a table [BIL-2, STU-2]", async () => {
    const band = { low: 1, likely: 2, high: 3 };
    const right = { level: "full", tools: ["Edit", "Write"] } as const;
    const none = { level: "none", tools: [] } as const;
    const agent = {
      agentType: "painter",
      description: "Paint",
      model: "m",
      costUsd: band,
      tokens: { low: 10_000, likely: 40_000, high: 90_000 },
      durationMs: { low: 20_000, likely: 60_000, high: 240_000 },
      basis: { from: "history", runs: 4 },
      rights: { mode: "default", write: right, run: none, reach: none },
    } as const;
    const { costUsd, tokens, durationMs } = agent;
    const total = { costUsd, tokens, durationMs };
    writeQuestion(shop.files(small), {
      id: "4423456789ab",
      tool: "Agent",
      input: { agents: [] },
      everyTime: true,
      quote: { agents: [agent, agent], total, unpriced: 0, why: "quotes.askAboveAgents is 1", refused: [] },
    });
    const page = await openPage(at("#/approvals"));
    const card = page.getByRole("article", { name: /Agent: main/ });
    const quote = card.getByRole("group", { name: "What the agents would take and may do" });
    await quote.waitFor();
    const text = await quote.textContent();
    expect(text).toContain("2 agents, together likely $2.00 ($1.00 to $3.00)");
    expect(text).toContain("may writepainter: Edit, Write");
    expect(await quote.getByRole("row", { name: /2x painter/ }).textContent()).toContain("4 runs");
    expect(await card.textContent()).toContain("quotes.askAboveAgents is 1");
    expect(await card.getByRole("button", { name: /Allow for session/ }).count()).toBe(0);
    const denied = card.getByRole("button", { name: /^Deny/ });
    await expect
      .poll(async () => {
        if ((await card.count()) > 0) await denied.click({ timeout: 500 }).catch(() => undefined);
        return card.count();
      })
      .toBe(0);
  });

  test("hundreds of agents open with few rows in the page [STU-1]", async () => {
    writeLarge();
    const page = await openPage(at(session(large)));
    await page.getByRole("heading", { name: `Agents (${manyAgents + 1})` }).waitFor();
    expect(await page.locator(".tree li").count()).toBeLessThan(100);
    await page.locator(".p-tree").evaluate((pane) => pane.scrollTo(0, pane.scrollHeight / 2));
    await page.locator('[aria-posinset="150"]').waitFor();
  });

  test("of hundreds of agents the chosen one is in view, in the tree and in the timeline [STU-1]", async () => {
    writeLarge();
    const page = await openPage(at(`#/agent/${project}/${large}/a150`));
    await page.getByRole("treeitem", { selected: true }).filter({ hasText: "Visit shelf 150" }).waitFor();
    const isIn = (inner: string, outer: string): Promise<boolean> =>
      page.evaluate(
        `(() => { const [a, b] = [${JSON.stringify(inner)}, ${JSON.stringify(outer)}].map((name) => document.querySelector(name)?.getBoundingClientRect()); return a !== undefined && b !== undefined && a.top >= b.top && a.bottom <= b.bottom; })()`,
      );
    await expect.poll(() => isIn("[role=treeitem][aria-selected=true]", ".p-tree")).toBe(true);
    await expect.poll(() => isIn(".lane.sel .ground", ".lanes")).toBe(true);
  });

  test("a click on a bar of the timeline brings the conversation to that step [STU-1]", async () => {
    const id = "bf0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const steps = Array.from({ length: 60 }, (_, at) =>
      said(`s${at}`, `Step ${at}. ${"It is counted. ".repeat(20)}`, 2 + at),
    );
    writeFileSync(shop.files(id).transcript, prompt("u1", "Count.") + steps.join(""));
    const page = await openPage(at(session(id)));
    await page.getByText("Step 59.").waitFor();
    const box = await page.locator(".lanes-svg").boundingBox();
    if (box === null) throw new Error("There is no timeline.");
    await page.mouse.click(box.x + 168 + (box.width - 184) * 0.25, box.y + 32);
    const seen = (): Promise<string> =>
      page.evaluate(`[...document.querySelectorAll(".conversation > li")].filter((item) => {
        const { top, bottom } = item.getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight;
      }).map((item) => item.textContent).join("|")`);
    await expect.poll(seen).toMatch(/Step 1\d\./);
    expect(await seen()).not.toContain("Step 59.");
  });

  test("the timeline has times of day, without the pauses between prompts [STU-1]", async () => {
    const id = "9f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const run = (name: string, second: number): string =>
      prompt(`u${name}`, "Count.", second) +
      said(`a${name}`, "Counted.", second + 600) +
      ending(`e${name}`, { status: "completed", reason: "end_turn" }, second + 600);
    const twoHours = 7200;
    const nextDay = 86_400;
    writeFileSync(shop.files(id).transcript, run("1", 0) + run("2", twoHours) + run("3", nextDay));
    const page = await openPage(at(session(id)), { timezoneId: "UTC", locale: "en-GB" });
    await expect
      .poll(() => page.locator(".lanes-svg .ax").allTextContents())
      .toEqual(["10:05", "12:00", "12:05", "2 Oct", "10:05"]);
    await page.getByRole("img", { name: "from 10:00:00 to 10:10:00, 30:00 of work" }).waitFor();
  });

  test("a session that runs is stopped from its head, after it was asked once [STU-2]", async () => {
    const id = "8f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const { transcript } = shop.files(id);
    writeFileSync(transcript, prompt("u1", "Count."));
    const taken = takeOwnerLock(transcript);
    onTestFinished(() => {
      if (taken.type === "taken") taken.lock.release();
    });
    const page = await openPage(at(session(id)));
    await page.getByRole("button", { name: "Stop session" }).click();
    const asked = page.waitForRequest((request) => request.url().endsWith("/api/act"));
    await page.getByRole("button", { name: "Keep" }).click();
    await page.getByRole("button", { name: "Stop session" }).click();
    await page.getByRole("button", { name: "Stop it now" }).click();
    expect((await asked).postDataJSON()).toMatchObject({ sessionId: id, agentId: "main", action: "stop" });
  });

  test("a conversation follows its end until somebody scrolls up, and then says what is new [STU-1]", async () => {
    const id = "af0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
    const file = shop.files(id).transcript;
    const before = Array.from({ length: 80 }, (_, turn) =>
      said(`b${turn}`, `Turn ${turn} with\n\n${"a line\n\n".repeat(1 + (turn % 7))}`, turn),
    );
    writeFileSync(file, prompt("u1", "Tell.") + before.join(""));
    const page = await openPage(at(session(id)));
    const inView = (text: string): Promise<boolean> =>
      page.evaluate(
        `(() => { const box = document.querySelector(".talk").getBoundingClientRect(); const found = [...document.querySelectorAll(".e-text")].find((one) => one.textContent.includes(${JSON.stringify(text)}))?.getBoundingClientRect(); return found !== undefined && found.height > 0 && found.top < box.bottom && found.bottom > box.top; })()`,
      );
    await expect.poll(() => inView("Turn 79")).toBe(true);
    for (let more = 0; more < 4; more += 1) {
      appendFileSync(file, said(`m${more}`, `More ${more} to tell.`, 90 + more));
      await expect.poll(() => inView(`More ${more} to tell.`)).toBe(true);
    }
    await page.locator(".talk").hover();
    await page.mouse.wheel(0, -3000);
    await expect.poll(() => inView("More 3 to tell.")).toBe(false);
    appendFileSync(file, said("last", "The end of it.", 99));
    // The head of the turn, and its text.
    await page.getByRole("button", { name: "2 new" }).click();
    await expect.poll(() => inView("The end of it.")).toBe(true);
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
    const acting = page.getByRole("button", { name: /Send|Resume|Stop|Fork|Allow|Deny/ });
    expect(await acting.count()).toBe(0);
    await page.getByRole("link", { name: /Team shop/ }).click();
    await page.getByText("Begin at the door.").waitFor();
    await page.getByRole("link", { name: "Count the shelves." }).click();
    await page.getByRole("treeitem", { name: /Main agent/ }).click();
    await page.locator(".e-text", { hasText: "There are four shelves." }).waitFor();
    expect(await page.locator(".call").first().textContent()).toContain("refused: a rule denies it");
  });

  test.each([
    ["360 px, dark", { viewport: { width: 360, height: 800 }, colorScheme: "dark" }],
    ["1,000 px, light", { viewport: { width: 1000, height: 800 }, colorScheme: "light" }],
    ["1,280 px, dark", { viewport: { width: 1280, height: 800 }, colorScheme: "dark" }],
    ["2,560 px, light", { viewport: { width: 2560, height: 1200 }, colorScheme: "light" }],
  ] as const)("nothing is cut off at %s, and axe finds nothing [STU-1]", async (name, options) => {
    writeQuestion(shop.files(small), {
      id: `${name.length}aaaa${options.viewport.width}a`.padEnd(12, "b").slice(0, 12),
    });
    // The policy of the page keeps foreign scripts out, so that of the test needs a context without it.
    const page = await openPage(at(""), { ...options, bypassCSP: true });
    await page.addScriptTag({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
    for (const [hash, there] of [
      ["#/", "Count the shelves"],
      ["#/sessions", "Sessions of all folders"],
      ["#/approvals", "Why it asks"],
      ["#/teams", "Tasks done"],
      ["#/evals", "Evals"],
      [session(small), "There are four shelves."],
      [mainAgent, "a rule denies it"],
      [`#/team/${project}/${small}`, "Measure every shelf"],
      [`#/compare/${project}/${small}/${project}/${small}`, "Two sessions"],
      [`#/merge/${project}/${small}`, "Drop Node 18"],
      [`#/run/${project}/${small}/${runId}`, "The paint is out."],
    ] as const) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.getByText(there).first().waitFor({ state: "attached" });
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
      const found = (await page.evaluate("axe.run().then(({ violations }) => violations)")) as readonly {
        readonly id: string;
        readonly nodes: readonly { readonly html: string }[];
      }[];
      expect(found.map(({ id, nodes }) => `${hash} ${id} ${nodes[0]?.html}`)).toEqual([]);
    }
  });
});
