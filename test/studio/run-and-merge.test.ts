import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SessionUpdate } from "@retinue/core/kernel/live/session-update.ts";
import { controlFiles } from "@retinue/core/tasks/watch-control.ts";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import {
  followStudio,
  lastMergeSteps,
  launchBrowser,
  mergeSteps,
  missingBrowser,
  openShop,
  project,
  runId,
  type Shop,
  shopToken,
  small,
  writeMerge,
  writeRun,
} from "./sample-sessions.ts";

const about = `project=${project}&id=${small}`;

async function openOwnShop(): Promise<Shop> {
  const shop = await openShop();
  onTestFinished(() => shop[Symbol.asyncDispose]());
  return shop;
}

function act(shop: Shop, action: string, agentId = runId): Promise<Response> {
  return fetch(`${shop.studio.origin}/api/act`, {
    method: "POST",
    headers: { authorization: `Bearer ${shopToken}`, "content-type": "application/json" },
    body: JSON.stringify({ project, sessionId: small, agentId, action }),
  });
}

describe("what the studio sends", () => {
  test("the queue of a merge, again after each step, and a line of it with the session [MRG-1]", async () => {
    const shop = await openOwnShop();
    const seen = (isEnough: (update: SessionUpdate) => boolean) =>
      followStudio<SessionUpdate>(shop, `/api/merge?${about}`, isEnough);
    expect((await seen(({ merge }) => merge !== undefined)).merge).toBeNull();
    using merge = await writeMerge(shop.transcripts, small, mergeSteps);
    const running = await seen((update) => update.merge !== undefined);
    expect(running.merge?.summary).toMatchObject({ children: 4, done: 1, left: 0, state: "running" });
    expect(running.merge?.queue.entries.map(({ state }) => state)).toEqual([
      "integrated",
      "resolving",
      "waiting",
      "waiting",
    ]);
    const ended = seen(({ merge: found }) => found?.queue.status !== undefined);
    const session = seen((update) => update.session?.merge?.left === 1);
    await merge.write(lastMergeSteps);
    expect((await ended).merge).toMatchObject({
      summary: { state: "partial", left: 1 },
      queue: {
        entries: [{}, {}, {}, { state: "left", checks: [{ output: "1 test failed: engines" }] }],
      },
    });
    expect((await session).session?.merge).toMatchObject({ state: "partial", done: 1, children: 4 });
  });

  test("a merge whose process was killed is interrupted [MRG-1]", async () => {
    const shop = await openOwnShop();
    (await writeMerge(shop.transcripts, small, mergeSteps))[Symbol.dispose]();
    const update = await followStudio<SessionUpdate>(
      shop,
      `/api/merge?${about}`,
      ({ merge }) => merge !== undefined,
    );
    expect(update.merge?.summary.state).toBe("interrupted");
  });

  test("a run of a workflow, again when it has come further, and a line of it with the session [WFL-5]", async () => {
    const shop = await openOwnShop();
    const run = await writeRun(shop.transcripts, small);
    onTestFinished(() => run.journal.close());
    const seen = (isEnough: (update: SessionUpdate) => boolean) =>
      followStudio<SessionUpdate>(shop, `/api/run?${about}&run=${runId}`, isEnough);
    const first = await seen((update) => update.run !== undefined);
    expect(first.run).toMatchObject({ name: "repaint", status: "running", steps: 5, done: 2 });
    const later = seen(({ run: found }) => found?.done === 3);
    const session = seen((update) => update.session?.workflows?.[0]?.done === 3);
    run.change({ type: "step", step: { index: 3, state: "done", result: "The door is blue." } });
    expect((await later).run?.phases[1]?.steps[0]).toMatchObject({ state: "done" });
    expect((await session).session?.workflows).toMatchObject([{ runId, status: "running", steps: 5 }]);
    run.journal.close();
    const interrupted = await seen(({ run: found }) => found?.status !== "running" && found !== undefined);
    expect(interrupted.run).toMatchObject({ status: "interrupted" });
  });

  test.each([
    "wf_..%2F..%2Fetc",
    "..%2F..%2Fx",
    "",
    "main",
  ])("%j is not taken for the id of a run [WFL-5, STU-1]", async (id) => {
    const shop = await openOwnShop();
    const headers = { authorization: `Bearer ${shopToken}` };
    const { status } = await fetch(`${shop.studio.origin}/api/run?${about}&run=${id}`, { headers });
    expect(status).toBe(400);
  });

  test("a run is stopped where it works, and resumed by the command; nothing else is done to it [WFL-5, STU-2]", async () => {
    const shop = await openOwnShop();
    expect((await act(shop, "stop")).status).toBe(409);
    const run = await writeRun(shop.transcripts, small);
    expect((await act(shop, "resume")).status).toBe(409);
    expect((await act(shop, "message")).status).toBe(400);
    const request = controlFiles(shop.files(small)).request(runId);
    const stopped = act(shop, "stop");
    await expect.poll(() => existsSync(request)).toBe(true);
    run.journal.close();
    expect((await stopped).status).toBe(200);
    expect((await act(shop, "resume")).status).toBe(200);
    const acts = (): string => readFileSync(join(shop.files(small).directory, "acts.jsonl"), "utf8");
    await expect.poll(acts).toMatch(/"resume".*"done"/s);
  });
});

describe.skipIf(missingBrowser !== undefined)("runs and merges in a browser (needs Chromium)", () => {
  let shop: Shop;
  let browser: Browser;
  beforeAll(async () => {
    shop = await openShop();
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await shop?.[Symbol.asyncDispose]();
  });

  async function openPage(hash: string): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1280, height: 800 } });
    onTestFinished(() => page.close());
    const wrong: string[] = [];
    page.on("pageerror", (error) => wrong.push(error.message));
    onTestFinished(() => expect(wrong).toEqual([]));
    await page.goto(`${shop.studio.link}${hash}`);
    return page;
  }

  test("the queue of a merge is reached from its session and follows what happens, to what is left and why [MRG-1]", async () => {
    using merge = await writeMerge(shop.transcripts, small, mergeSteps);
    const page = await openPage(`#/session/${project}/${small}`);
    await page.getByRole("link", { name: /Merge 1\/4/ }).click();
    await page.getByRole("heading", { level: 1, name: "Merge" }).waitFor();
    const queue = page.getByRole("region", { name: "Queue" }).getByRole("listitem");
    await expect.poll(() => queue.nth(1).textContent()).toContain("merge-resolver resolves its conflict");
    expect(await queue.nth(0).textContent()).toContain("1 check passed");
    expect(await queue.nth(3).textContent()).toContain("queued");
    await merge.write(lastMergeSteps);
    await expect.poll(() => queue.nth(3).textContent()).toContain("`npm test` failed with exit code 1");
    expect(await queue.nth(3).textContent()).toContain("retinue merge --discard am3");
    await page.getByText("Output", { exact: true }).click();
    await page.getByText("1 test failed: engines").waitFor();
    const outcome = page.getByRole("complementary", { name: "Outcome" });
    expect(await outcome.textContent()).toContain("1 agent left");
  });

  test("a run is shown by phase: done, taken, running, failed, and why a step was not taken [WFL-5]", async () => {
    const run = await writeRun(shop.transcripts, small);
    onTestFinished(() => run.journal.close());
    const page = await openPage(`#/session/${project}/${small}`);
    await page.getByRole("link", { name: "repaint 2/5" }).click();
    const measure = page.getByRole("region", { name: "Measure" });
    const paint = page.getByRole("region", { name: "Paint" });
    await measure.waitFor();
    expect(await measure.textContent()).toContain("its result was in the journal");
    expect(await measure.textContent()).toContain("not taken: asked to run again");
    expect(await paint.textContent()).toMatch(/door.*running.*window.*failed.*The paint is out.*queued/s);
    const kept = page.getByRole("complementary", { name: "What is kept" });
    expect(await kept.textContent()).toContain("2 finished steps");
    run.change({ type: "step", step: { index: 3, state: "done", result: "The door is blue." } });
    await expect.poll(() => kept.textContent()).toContain("3 finished steps");
    run.journal.close();
    // Its process is gone.
    await page.getByRole("button", { name: "Resume", exact: true }).waitFor();
    expect(await paint.textContent()).toContain("not begun");
  });
});
