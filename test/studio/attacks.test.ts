import { mkdirSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import type { ConversationEntry } from "@retinue/core/inspection/conversation-fold.ts";
import type { SessionUpdate } from "@retinue/core/kernel/live/session-update.ts";
import { type Studio, startStudio } from "@retinue/hosts/studio/start-studio.ts";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  answer,
  ending,
  followStudio,
  launchBrowser,
  line,
  missingBrowser,
  openShop,
  project,
  prompt,
  result,
  runId,
  type Shop,
  said,
  shopToken,
  small,
  stamp,
  writeMerge,
  writeQuestion,
  writeRun,
} from "./sample-sessions.ts";

const headers = { authorization: `Bearer ${shopToken}` };
const hostile = "5f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const unknown = "9f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
let shop: Shop;

beforeAll(async () => {
  shop = await openShop();
});
afterAll(async () => {
  await shop?.[Symbol.asyncDispose]();
});

/** With the path as it is written, which `fetch` would tidy up. */
function ask(path: string): Promise<{ readonly status: number | undefined; readonly policy: unknown }> {
  const { hostname: host, port } = new URL(shop.studio.origin);
  return new Promise((resolve, reject) => {
    request({ host, port, path, headers }, (response) => {
      response.resume();
      response.on("end", () =>
        resolve({ status: response.statusCode, policy: response.headers["content-security-policy"] }),
      );
    })
      .on("error", reject)
      .end();
  });
}

describe("requests", () => {
  test.each([
    ["//", 404],
    ["//evil.test/page.js", 404],
    ["http://[", 400],
    ["http://evil.test/page.js", 400],
    ["*", 400],
    ["/../../etc/passwd", 404],
    [`/api/inspection?project=__proto__&id=${small}`, 400],
    [`/api/inspection?project=${project}%00&id=${small}`, 400],
    [`/api/inspection?project=${project}&id=${unknown}`, 409],
    [`/api/export?project=${project}&id=${unknown}`, 409],
    [`/api/entry?project=${project}&id=${small}&agent=..%2Fmain&index=0`, 400],
    [`/api/entry?project=${project}&id=${small}&agent=main&index=99999`, 404],
    [`/api/entry?project=${project}&id=${small}&agent=main&index=x`, 404],
  ])("%s gets %i, with the policy [STU-1]", async (path, status) => {
    const { status: given, policy } = await ask(path);
    expect(given).toBe(status);
    expect(policy).toContain("default-src 'none'");
  });
});

test("of a long output its beginning is sent, and the whole when somebody asks for it [STU-1]", async () => {
  const id = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a11";
  const output = `${"x".repeat(99)}\n`.repeat(900);
  const call = { type: "tool_use", id: "t1", name: "Bash", input: { command: "cat shelves" } };
  const content = [{ type: "tool_result", tool_use_id: "t1", content: output }];
  const toolCall = { durationMs: 5 };
  writeFileSync(
    shop.files(id).transcript,
    prompt("u1", "Look.") +
      answer("a1", [call]) +
      line({ type: "user", uuid: "r1", timestamp: stamp(2), toolCall, message: { role: "user", content } }),
  );
  const about = `project=${project}&id=${id}&agent=main`;
  const update = await followStudio<SessionUpdate>(
    shop,
    `/api/agent?${about}`,
    ({ agent }) => agent !== undefined,
  );
  const [index, entry] = update.agent?.entries.find(([, { type }]) => type === "call") ?? [];
  expect(entry).toMatchObject({ resultLines: 901 });
  expect(JSON.stringify(entry).length).toBeLessThan(10_000);
  const response = await fetch(`${shop.studio.origin}/api/entry?${about}&index=${index}`, { headers });
  // The server's own form.
  const whole = (await response.json()) as Extract<ConversationEntry, { type: "call" }>;
  expect(whole.result).toBe(output);
});

/** Would be seen if any of it became more than text. */
const evil = `"'><img src=x onerror="window.pwned=1"><script>window.pwned=2</script><iframe srcdoc="x"></iframe>\u202e[x](javascript:alert(1))`;

async function writeHostile(): Promise<void> {
  const files = shop.files(hostile);
  mkdirSync(files.subagents, { recursive: true });
  const call = { type: "tool_use", id: "t1", name: evil, input: { file_path: evil, command: evil } };
  const edit = {
    type: "tool_use",
    id: "t2",
    name: "Edit",
    input: { file_path: evil, old_string: evil, new_string: `${evil}!` },
  };
  const checks = [{ kind: "command", run: evil, passed: false, exitCode: 1, durationMs: 3, output: evil }];
  const receipt = { status: "failed-check", checks, notes: [evil] };
  writeFileSync(
    files.transcript,
    prompt("u1", evil) +
      answer("a1", [{ type: "thinking", thinking: evil }, { type: "text", text: evil }, call, edit]) +
      result("r1", "t1", { durationMs: 1, denied: evil }) +
      result("r2", "t2", { durationMs: 1, allowed: { by: "rule", reason: evil } }) +
      said("a2", `\`\`\`${evil}\n${evil}\n\`\`\``) +
      ending("e1", { status: "failed", reason: "error", error: evil, receipt }),
  );
  const { meta, transcript } = files.agent("ahostile");
  writeFileSync(meta, line({ agentType: evil, description: evil, name: evil }));
  writeFileSync(transcript, prompt("p1", evil) + said("q1", evil));
  writeQuestion(files, {
    id: "9f9c2a7b10de",
    session: hostile,
    tool: evil,
    input: { [evil]: evil, command: evil },
    directory: evil,
    suggestedRules: [evil],
    places: [{ agent: "ahostile", path: `main > ${evil}`, call: "c1", at: 1 }],
  });
  const child = { agent: "ahostile", agentType: evil, description: evil, branch: evil };
  using _merge = await writeMerge(shop.transcripts, hostile, [
    { type: "started", sessionId: hostile, into: evil, from: "0", checks: [evil], children: [child] },
    { type: "taken", agent: "ahostile", tip: evil, base: "0", files: [evil] },
    { type: "left", agent: "ahostile", because: "conflict", reason: evil, commands: [evil] },
    { type: "not-applied", reason: evil, commands: [evil] },
    { type: "ended", status: "partial" },
  ]);
  const { change, journal } = await writeRun(shop.transcripts, hostile);
  change({ type: "phase", phase: { index: 3, title: evil, detail: evil, stepsBefore: 5 } });
  const texts = { label: evil, phase: evil, prompt: evil, error: evil, branch: evil, why: evil };
  change({ type: "step", step: { index: 6, state: "failed", ...texts } });
  change({ type: "log", text: evil });
  change({ type: "ended", status: "failed", at: 1, error: evil, result: JSON.stringify(evil) });
  journal.close();
}

describe.skipIf(missingBrowser !== undefined)("the page under attack (needs Chromium)", () => {
  let browser: Browser;
  beforeAll(async () => {
    await writeHostile();
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
  });

  async function openPage(address: string): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    onTestFinished(() => page.close());
    await page.goto(address);
    return page;
  }

  test("names, prompts, outputs, files, checks and errors stay text on every screen [STU-1]", async () => {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    onTestFinished(() => page.close());
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(error.message));
    page.on("dialog", (dialog) => {
      wrong.push("a dialog");
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      if (/Content Security|Refused/.test(message.text())) wrong.push(message.text());
    });
    page.on("request", (asked) => {
      if (!asked.url().startsWith(shop.studio.origin)) wrong.push(asked.url());
    });
    await page.goto(shop.studio.link);
    for (const hash of [
      "#/",
      "#/sessions",
      "#/approvals",
      `#/session/${project}/${hostile}`,
      `#/agent/${project}/${hostile}/ahostile`,
      `#/merge/${project}/${hostile}`,
      `#/run/${project}/${hostile}/${runId}`,
      `#/compare/${project}/${hostile}/${project}/${hostile}`,
    ]) {
      await page.evaluate(`location.hash = ${JSON.stringify(hash)}`);
      await page.locator("main :text('window.pwned=2')").first().waitFor({ state: "attached" });
      await page.evaluate("for (const one of document.querySelectorAll('main details')) one.open = true");
      expect(await page.locator("main :is(img, iframe, script, a[href^='javascript'])").count()).toBe(0);
      expect(await page.evaluate("window.pwned")).toBeUndefined();
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBeLessThanOrEqual(0);
    }
    expect(wrong).toEqual([]);
  });

  test.each([
    [`#/session/${project}/${unknown}`, `There is no session ${unknown} here.`],
    [`#/session/-nowhere/${small}`, 'There is no project "-nowhere" here.'],
    [`#/run/${project}/${small}/x`, '"x" is not the id of a workflow run.'],
    [`#/merge/${project}/x`, '"x" is not a session id.'],
  ])("%s says what is wrong, and does not go on reading [STU-1]", async (hash, message) => {
    const page = await openPage(`${shop.studio.link}${hash}`);
    await expect.poll(() => page.getByRole("alert").textContent()).toContain(message);
    expect(await page.getByText("Reading the").count()).toBe(0);
  });

  test("what one tab answers, another one shows as answered [STU-2]", async () => {
    writeQuestion(shop.files(small), { id: "2223456789ab", input: { command: "rm two-tabs" } });
    const [one, other] = [
      await openPage(`${shop.studio.link}#/approvals`),
      await openPage(`${shop.studio.link}#/approvals`),
    ];
    const cards = [one, other].map((page) => page.getByRole("article").filter({ hasText: "rm two-tabs" }));
    for (const card of cards) await card.waitFor();
    // It can be answered only a moment after it became the current one.
    await expect
      .poll(async () => {
        const [first] = cards;
        if (first === undefined || (await first.count()) === 0) return 0;
        await first
          .getByRole("button", { name: /^Deny/ })
          .click({ timeout: 500 })
          .catch(() => undefined);
        return first.count();
      })
      .toBe(0);
    await expect.poll(() => cards[1]?.count()).toBe(0);
    expect(await other.getByRole("complementary").textContent()).toContain("rm two-tabs");
  });

  test("more tabs than a browser opens connections show sessions, and all their titles say what waits [STU-1]", async () => {
    const context = await browser.newContext();
    onTestFinished(() => context.close());
    const own = await openShop();
    onTestFinished(() => own[Symbol.asyncDispose]());
    const pages: Page[] = [];
    // Without a window of its own a browser calls every tab visible.
    const show = (page: Page, isShown: boolean): Promise<unknown> =>
      page.evaluate(
        `Object.defineProperty(document, "hidden", { configurable: true, value: ${!isShown} }); document.dispatchEvent(new Event("visibilitychange"))`,
      );
    for (let at = 0; at < 8; at += 1) {
      const page = await context.newPage();
      await page.goto(own.studio.link);
      await page.getByText("Count the shelves.").first().waitFor();
      await show(page, false);
      pages.push(page);
    }
    writeQuestion(own.files(small), { id: "3323456789ab", input: { command: "rm many-tabs" } });
    for (const page of pages) await expect.poll(() => page.title()).toBe("(2) Retinue");
    const [, second] = pages;
    if (second === undefined) throw new Error("There is no second tab.");
    expect(await second.getByText("rm many-tabs").count()).toBe(0);
    await show(second, true);
    await second.getByText("rm many-tabs").waitFor();
  });

  test("a page that loses the studio keeps what it shows, says since when, and goes on when it is back [STU-1]", async () => {
    const own = await openShop();
    onTestFinished(() => own[Symbol.asyncDispose]());
    const page = await openPage(`${own.studio.link}#/session/${project}/${small}`);
    const row = page.getByRole("treeitem", { name: /Main agent/ });
    await row.waitFor();
    const { port } = new URL(own.studio.origin);
    await own.studio.close();
    await expect
      .poll(() => page.getByRole("alert").textContent())
      .toMatch(/does not answer.*what was there at \d/);
    expect(await row.count()).toBe(1);
    writeFileSync(own.files(small).transcript, said("a9", "Back again.", 9), { flag: "a" });
    // Another program may have the port for a moment.
    let again: Studio | undefined;
    onTestFinished(async () => again?.close());
    await expect
      .poll(async () => {
        again ??= await startStudio(own.options(Number(port))).catch(() => undefined);
        return again !== undefined;
      })
      .toBe(true);
    await expect.poll(() => page.locator(".conversation").textContent()).toContain("Back again.");
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});
