/** `npm run screenshots`: takes the pictures of docs/images in a real browser, from the sample sessions of the tests. Needs a build. */
import { mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import type { SessionFiles } from "@retinue/core/journal/session-files.ts";
import { createLiveText, liveFiles } from "@retinue/core/kernel/live/live-text.ts";
import { renderEvalPage, summarize } from "@retinue/hosts/shared/eval-results.ts";
import type { Page } from "playwright-core";
import {
  clock,
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
  stamp,
  writeMerge,
  writeQuestion,
  writeRun,
} from "../test/studio/sample-sessions.ts";

const folder = fileURLToPath(new URL("../docs/images/", import.meta.url));
const running = "6f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";
const maxTotal = 900_000;

const painters = [
  { description: "Measure every wall", type: "Explore", begin: 3, turns: 4, isDone: true },
  { description: "Shelves by the door", type: "painter", begin: 16, turns: 14 },
  { description: "Shelves by the window", type: "painter", begin: 17, turns: 13 },
  { description: "Order more paint", type: "buyer", begin: 19, turns: 5, error: "The shop is closed." },
  { description: "Label the shelves", type: "writer", begin: 20, turns: 6 },
] as const;

/** What is run, why that was allowed, and the outcome. */
const commands = [
  ["npm test -- shelves", "the rule Bash(npm test *) allows it", "18 passed"],
  ["ls -l walls", "only reads, in this folder", "11 files"],
  ["npm run paint -- --dry", "the rule Bash(npm run paint -- --dry) allows it", "2 coats, 4 litres"],
  ["git diff --stat", "only reads, in this folder", " src/shelf.ts | 4 ++--"],
] as const;
const patch = {
  oldStart: 11,
  oldLines: 4,
  newStart: 11,
  newLines: 4,
  lines: [
    " export const shelf = {",
    "-  coats: 3,",
    '-  colour: "grey",',
    "+  coats: 2,",
    '+  colour: "blue",',
    " };",
  ],
};

/** What a model is writing while the picture is taken. */
const writing = [
  "The shelf by the door had three coats of grey. ",
  "I set `coats` to **2** and `colour` to `blue`, as for the others, and ran the tests of the shelves: all 18 pass.\n\n",
  "Left to do here:\n\n",
  "- the edge at the back, which `measure()` leaves out\n",
  "- the price of the primer in `src/paint.ts`; it is still the one of last year\n\n",
  "I begin with the edge, because two other shelves",
];
const explained = [
  "The old shelves had **three** coats; the new paint needs two:",
  "",
  "- `primer` dries in an hour",
  "- the blue goes on top",
  "",
  "```ts",
  "export const coats = { primer: 1, blue: 2 } as const; // two in all",
  "```",
].join("\n");

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
const run = await writeRun(shop.transcripts, running);
using merge = await writeMerge(shop.transcripts, running, mergeSteps);
await merge.write(lastMergeSteps.slice(0, -1));
await take("sessions", { hash: "", there: "$0.75" });
await take("session", { hash: `#/agent/${project}/${running}/p1`, there: "I begin with the edge" });
await take("workflow", { hash: `#/run/${project}/${running}/${runId}`, there: "The paint is out." });
await page.emulateMedia({ colorScheme: "light" });
await take("merge", { hash: `#/merge/${project}/${running}`, there: "Go on by hand" });
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
run.journal.close();
await browser.close();
if (total > maxTotal)
  throw new Error(`The pictures have ${total} bytes together; at most ${maxTotal} are kept.`);

/** An answer as a provider bills it, with some of the time that it took. */
function turn(id: string, content: readonly object[], second: number): string {
  const usage = { input_tokens: 900, cache_read_input_tokens: 21_400, output_tokens: 310 };
  const message = { id, model: "claude-sonnet-5", content, usage };
  const timestamp = stamp(second);
  return line({
    type: "assistant",
    uuid: id,
    timestamp,
    costUSD: 0.034,
    durationMs: 1800,
    message,
    gitBranch: "blue",
    cwd: "/home/ada/shop",
  });
}

function writePainter(files: SessionFiles, at: number): void {
  const painter = painters[at];
  if (painter === undefined) return;
  const { meta, transcript } = files.agent(`p${at}`);
  writeFileSync(meta, line({ agentType: painter.type, description: painter.description }));
  const work = Array.from({ length: painter.turns }, (_, round) => {
    const second = painter.begin + 3 * round + 2;
    const id = `${at}-${round}`;
    const isEdit = round % 3 === 1;
    const [command, reason, output] = commands[(round + at) % commands.length] ?? commands[0];
    const input = isEdit
      ? {
          file_path: "src/shelf.ts",
          old_string: 'coats: 3,\ncolour: "grey",',
          new_string: 'coats: 2,\ncolour: "blue",',
        }
      : { command };
    const call = { type: "tool_use", id: `t${id}`, name: isEdit ? "Edit" : "Bash", input };
    const content = round === painter.turns - 2 ? [{ type: "text", text: explained }, call] : [call];
    const allowed = {
      by: "rule",
      reason: isEdit ? "acceptEdits, in this folder" : reason,
    };
    return (
      turn(`a${id}`, content, second) +
      line({
        type: "user",
        uuid: `r${id}`,
        timestamp: stamp(second + 1),
        toolCall: { durationMs: 900 + 70 * at, allowed },
        ...(isEdit ? { toolUseResult: { structuredPatch: [patch] } } : {}),
        message: {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: `t${id}`, content: isEdit ? "It is changed." : output },
          ],
        },
      })
    );
  });
  const end = painter.begin + 3 * painter.turns + 2;
  let ends = "";
  if ("error" in painter)
    ends = ending(`e${at}`, { status: "failed", reason: "error", error: painter.error }, end);
  else if ("isDone" in painter)
    ends =
      said(`d${at}`, "Eleven walls, 63 metres.", end) +
      ending(`e${at}`, { status: "completed", reason: "end_turn" }, end + 1);
  writeFileSync(
    transcript,
    prompt(`p${at}`, `${painter.description}, and say what you changed.`, painter.begin) +
      work.join("") +
      ends,
  );
}

/** A session whose agents still write. */
function writeRunning({ files: filesOf }: Shop) {
  const files = filesOf(running);
  clock.start = Date.now() - 62_000;
  mkdirSync(files.subagents, { recursive: true });
  writeFileSync(
    files.transcript,
    prompt("u1", "Paint every shelf of the shop blue.") +
      turn("m1", [{ type: "text", text: "I send painters." }], 3) +
      turn("m2", [{ type: "text", text: "The walls are measured." }], 16),
  );
  for (const at of painters.keys()) writePainter(files, at);
  writeQuestion(files, {
    id: "3f9c2a7b10de",
    session: running,
    input: { command: "npm run paint -- --wall window --colour blue" },
    directory: "/home/ada/shop",
    suggestedRules: ["Bash(npm run paint *)"],
    places: [{ agent: "p4", path: "main > Label the shelves", call: "c1", at: 1 }],
    at: clock.start + 41_000,
  });
  const ids = ["p1", "p2"];
  const locks = [files.transcript, ...["p1", "p2", "p4"].map((id) => files.agent(id).transcript)].map(
    (file) => takeOwnerLock(file),
  );
  const text = createLiveText(liveFiles(files));
  let timer: NodeJS.Timeout | undefined;
  return {
    write() {
      const left = [...writing];
      timer = setInterval(() => {
        // A viewer that comes later is shown all of it, while something is still written.
        const piece = left.shift() ?? "";
        for (const id of ids)
          text.onEvent(id, { type: "model-streamed", event: { type: "text-delta", index: 0, text: piece } });
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
