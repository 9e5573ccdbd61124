/** `npm run screenshots`: takes the pictures of docs/images in a real browser, from the sample sessions of the tests. Needs a build. */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { createLiveText, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import { renderEvalPage, summarize } from "@retinue/hosts/commands/eval/eval-results.ts";
import type { Page } from "playwright-core";
import {
  answer,
  clock,
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
  small,
} from "../test/studio/sample-sessions.ts";

const folder = fileURLToPath(new URL("../docs/images/", import.meta.url));
const running = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const maxTotal = 600_000;

if (missingBrowser !== undefined) throw new Error(`Pictures need a browser: ${missingBrowser}.`);
mkdirSync(folder, { recursive: true });
await using shop = await openShop();
const live = writeRunning(shop);
const browser = await launchBrowser();
const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, colorScheme: "dark" });
let total = 0;

async function take(name: string, { hash, there }: { readonly hash: string; readonly there: string }) {
  await page.goto(`${shop.studio.link}${hash}`);
  await shoot(page, name, there);
}

async function shoot(shown: Page, name: string, there: string): Promise<void> {
  await shown.getByText(there).first().waitFor();
  const file = join(folder, `${name}.png`);
  await shown.screenshot({ path: file });
  const { size } = statSync(file);
  total += size;
  console.log(`docs/images/${name}.png ${Math.round(size / 1024)} KB`);
}

live.write();
await take("sessions", { hash: "", there: "$0.75" });
await take("session", { hash: `#/session/${project}/${running}`, there: "piece of shelf" });
await page.emulateMedia({ colorScheme: "light" });
await take("agent", { hash: `#/agent/${project}/${small}/main`, there: "There are four shelves." });
await take("team", { hash: `#/team/${project}/${small}`, there: "Begin at the door." });
await take("compare", {
  hash: `#/compare/${project}/${small}/${project}/${running}`,
  there: "By tool: calls",
});
await page.emulateMedia({ colorScheme: "dark" });
await take("approvals", { hash: "#/approvals", there: "Why it asks" });
await page.emulateMedia({ colorScheme: "light" });
await page.goto(pathToFileURL(writeEval(shop)).href);
await shoot(page, "eval", "Not passed");
live.end();
await browser.close();
if (total > maxTotal)
  throw new Error(`The pictures have ${total} bytes together; at most ${maxTotal} are kept.`);

/** A session whose agents still write. */
function writeRunning({ files: filesOf }: Shop) {
  const files = filesOf(running);
  clock.start = Date.now() - 12_000;
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(
    files.transcript,
    prompt("u1", "Paint every shelf of the shop.") + said("a1", "I send painters.", 2),
  );
  const ids = ["Paint the shelves by the door", "Paint the shelves by the window", "Buy more paint"].map(
    (description, at) => {
      const { meta, transcript } = files.agent(`p${at}`);
      const call = {
        type: "tool_use",
        id: `t${at}`,
        name: "Bash",
        input: { command: "paint --colour blue" },
      };
      writeFileSync(meta, line({ agentType: "painter", description }));
      writeFileSync(
        transcript,
        prompt(`p${at}`, description) +
          answer(`a${at}`, [call], 2 + at) +
          result(`r${at}`, `t${at}`, { durationMs: 3000 }, 6 + at) +
          (at === 2
            ? ending("e", { status: "failed", reason: "error", error: "The shop is closed." }, 9)
            : ""),
      );
      return `p${at}`;
    },
  );
  const locks = [files.transcript, ...ids.slice(0, 2).map((id) => files.agent(id).transcript)].map((file) =>
    takeOwnerLock(file),
  );
  const text = createLiveText(liveFiles(files));
  let timer: NodeJS.Timeout | undefined;
  return {
    write() {
      timer = setInterval(() => {
        for (const id of ids.slice(0, 2))
          text.onEvent(id, {
            type: "model-streamed",
            event: { type: "text-delta", index: 0, text: "one more piece of shelf is blue, " },
          });
      }, 50);
    },
    end() {
      clearInterval(timer);
      text.close();
      for (const taken of locks) if (taken.type === "taken") taken.lock.release();
    },
  };
}

function writeEval({ root }: Shop): string {
  const results = ["sonnet", "haiku"].flatMap((model) =>
    ["finds the bug", "counts files"].map((task, at) => ({
      key: `${model}${task}`,
      task,
      definition: "main",
      model,
      repetition: 1,
      passed: model === "sonnet" || at === 0,
      score: model === "sonnet" || at === 0 ? 1 : 0,
      ...(model === "sonnet" || at === 0 ? {} : { reason: "The check ended with 1: 41 files" }),
      status: "completed",
      endedBy: "end_turn",
      costUsd: model === "sonnet" ? 0.021 : 0.004,
      turns: 3,
      durationMs: 4200,
    })),
  );
  const report = { version: 1, file: "eval.yaml", planned: 4, done: 4, costUsd: 0.05, results } as const;
  const file = join(root, "eval.html");
  writeFileSync(file, renderEvalPage({ ...report, summaries: summarize(results) }));
  return file;
}
