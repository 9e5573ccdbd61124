/** `npm run record -- NAME`: records what happens in a real terminal as docs/NAME.svg; without a name, all of them. Needs a build. */
import { execFile, execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { spawn } from "@lydell/node-pty";
import { type FakeProviderOptions, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import xterm from "@xterm/headless";

const root = fileURLToPath(new URL("..", import.meta.url));
const colours = ["#181818", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d0d0d0"];
const columns = 88;
const retinue = join(root, "bin/retinue.js");

type Script = NonNullable<FakeProviderOptions["script"]>;

interface Recording {
  readonly title: string;
  readonly rows: number;
  readonly script: Script;
  /** The files of the project; with any, it is a git repository and the recording begins in a shell. */
  readonly files?: Readonly<Record<string, string>>;
  readonly settings?: object;
  /** A run before the recording begins. */
  readonly before?: readonly string[];
  readonly play: (screen: Screen) => Promise<void>;
}

interface Screen {
  /** Waits until the screen shows a text; a recording that hangs is of no use. */
  until(text: string): Promise<void>;
  type(text: string): Promise<void>;
  press(key: string): void;
}

const agent = (type: string, description: string, prompt = `child: ${description}`) => ({
  name: "Agent",
  input: { subagent_type: type, description, prompt },
});

/** Matches the request of the child with this prompt, of so many messages. */
const ofChild =
  (prompt: string, length?: number) =>
  ({ messages }: { readonly messages: readonly unknown[] }): boolean =>
    JSON.stringify(messages[0]).includes(prompt) && (length === undefined || messages.length === length);

const child = (description: string, command: string): Script => [
  {
    match: ofChild(`child: ${description}`, 1),
    delayMs: 120,
    text: "I look.",
    calls: [{ name: "Bash", input: { command } }],
  },
  {
    match: ofChild(`child: ${description}`),
    delayMs: 250,
    times: "any",
    text: "Found it, and wrote down what I saw in the tests.",
  },
];

const edit = (file: string, before: string, after: string) => ({
  name: "Edit",
  input: { file_path: file, old_string: before, new_string: after },
});

const modules = ["cart", "price", "order"];
const worker = `---
name: worker
description: Changes one file. Use for each file of a larger change. Not for questions.
tools: Read, Edit
isolation: worktree
---
Change the file you are given.
`;
const workers = {
  files: {
    ...Object.fromEntries(
      modules.map((name) => [`src/${name}.js`, `export const tax = 0.19;\nexport const name = "${name}";\n`]),
    ),
    ".claude/agents/worker.md": worker,
  },
  script: [
    ...modules.flatMap((name): Script => {
      const prompt = `Raise the tax in src/${name}.js.`;
      const file = `src/${name}.js`;
      return [
        { match: ofChild(prompt, 1), delayMs: 200, calls: [{ name: "Read", input: { file_path: file } }] },
        { match: ofChild(prompt, 3), delayMs: 500, calls: [edit(file, "0.19", "0.2")] },
        { match: ofChild(prompt, 5), delayMs: 300, text: "The tax is 0.2 now." },
      ];
    }),
    {
      calls: modules.map((name) =>
        agent("worker", `raise the tax in ${name}`, `Raise the tax in src/${name}.js.`),
      ),
    },
    "The tax is 0.2 in all three files.",
  ] satisfies Script,
};
const raise = ["-p", "raise the tax to 0.2 everywhere", "--trust", "--permission-mode", "acceptEdits"];

const recordings: Readonly<Record<string, Recording>> = {
  terminal: {
    title: "A conversation in the terminal",
    rows: 20,
    script: [
      ...child("find flaky tests", "ls"),
      ...child("fix the session", "npm test"),
      {
        text: "Two agents look at it.",
        calls: [agent("Explore", "find flaky tests"), agent("general-purpose", "fix the session")],
      },
      "The retry in `api/session.ts` waited on a **fixed** delay.\n\n- the test now waits for the event\n- the changelog has a line\n",
    ],
    async play({ until, type, press }) {
      await until(">");
      await type("fix the flaky tests in api/ and review the change");
      press("\r");
      await until("press a number");
      await type("also update the changelog");
      press("\r");
      await wait(800);
      await until("do not ask again");
      await wait(1500);
      press("1");
      await until("changelog has a line");
      await wait(2500);
    },
  },
  verify: {
    title:
      "An agent claims that all tests pass; the check of the runtime fails, the agent corrects itself, and the result is verified",
    rows: 24,
    settings: { permissions: { allow: ["Bash(npm test)"], defaultMode: "acceptEdits" } },
    files: {
      "package.json": '{ "name": "shop", "type": "module", "scripts": { "test": "node --test" } }\n',
      "price.js":
        "export function total(prices) {\n  return prices.reduce((sum, price) => sum + price);\n}\n",
      "price.test.js": `import assert from "node:assert";
import test from "node:test";
import { total } from "./price.js";

test("nothing costs nothing", () => assert.equal(total([]), 0));
test("two prices are added", () => assert.equal(total([1, 2]), 3));
`,
      ".claude/agents/fixer.md": `---
name: fixer
description: Fixes failing tests. Use it with a file. Not for new features.
verify: npm test
---
Find the cause and fix it.
`,
    },
    script: [
      {
        match: ofChild("Fix price.js", 1),
        delayMs: 300,
        calls: [{ name: "Read", input: { file_path: "price.js" } }],
      },
      {
        match: ofChild("Fix price.js", 3),
        delayMs: 600,
        calls: [edit("price.js", "sum + price)", "sum + price, 1)")],
      },
      { match: ofChild("Fix price.js", 5), delayMs: 400, text: "Done, all tests pass." },
      {
        match: ofChild("Fix price.js", 7),
        delayMs: 600,
        calls: [edit("price.js", "sum + price, 1)", "sum + price, 0)")],
      },
      { match: ofChild("Fix price.js", 9), delayMs: 400, text: "The sum starts at 0 now." },
      { calls: [agent("fixer", "fix price.js", "Fix price.js.")] },
      "`total([])` is 0 now. The check, `npm test`, passes.",
    ],
    async play({ until, type, press }) {
      await until("$ ");
      await type("cat .claude/agents/fixer.md");
      press("\r");
      await wait(1500);
      await type('retinue -p "have price.js fixed" --trust');
      press("\r");
      await until("retinue inspect");
      await wait(1500);
      await type("retinue inspect --steps | tail -n 9");
      press("\r");
      await until("starts at 0 now");
      await wait(4000);
    },
  },
  quotes: {
    title: "Before three agents start, one question shows what they will probably cost and what they may do",
    rows: 28,
    ...workers,
    // Twice: the first run is the history that the second one is quoted from.
    script: [...workers.script, ...workers.script],
    settings: { quotes: { askAboveAgents: 2 }, permissions: { defaultMode: "acceptEdits" } },
    before: [...raise, "--settings", '{"quotes":{"askAboveAgents":20}}'],
    async play({ until, type, press }) {
      await until("$ ");
      await type('retinue -p "raise the tax to 0.2 everywhere" --trust');
      press("\r");
      await until("1 yes");
      await wait(4000);
      press("1");
      await until("retinue inspect");
      await wait(3000);
    },
  },
  merge: {
    title: "The worktrees of three agents are brought back, one checked commit each",
    rows: 20,
    ...workers,
    before: raise,
    async play({ until, type, press }) {
      await until("$ ");
      await type("retinue tasks");
      press("\r");
      await wait(2000);
      await type('retinue merge --check "node --check src/cart.js" --apply --trust');
      press("\r");
      await until("takes it back");
      await wait(1500);
      await type("git log --oneline");
      press("\r");
      await wait(4000);
    },
  },
};

const names = process.argv.slice(2);
const unknown = names.find((name) => !Object.hasOwn(recordings, name));
if (unknown !== undefined) {
  console.error(`There is no recording ${unknown}. There are: ${Object.keys(recordings).join(", ")}.`);
  process.exit(1);
}
for (const [name, recording] of Object.entries(recordings)) {
  if (names.length > 0 && !names.includes(name)) continue;
  writeFileSync(join(root, `docs/${name}.svg`), await record(recording));
  console.log(`docs/${name}.svg`);
}
process.exit(0);

/** Plays a recording in a terminal of its own, and draws it. */
async function record({ title, rows, script, files, settings, before, play }: Recording): Promise<string> {
  const home = mkdtempSync(join(tmpdir(), "retinue-record-"));
  const project = join(home, "shop");
  mkdirSync(project);
  await using provider = await startFakeProvider({ deltaDelayMs: 40, script });
  const env = {
    PATH: `${join(home, "bin")}:${dirname(process.execPath)}:${process.env["PATH"] ?? ""}`,
    HOME: home,
    PS1: "$ ",
    RETINUE_LOCAL_MODELS: "0",
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
  };
  if (files !== undefined) createRepository(home, project, files);
  if (before !== undefined)
    await promisify(execFile)(process.execPath, [retinue, ...before], { cwd: project, env });
  if (settings !== undefined) writeFile(join(home, ".claude/settings.json"), JSON.stringify(settings));

  const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
  const [program, words] =
    files === undefined ? [process.execPath, [retinue]] : ["bash", ["--norc", "--noprofile"]];
  const pty = spawn(program, words, { cols: columns, rows, cwd: project, name: "xterm-256color", env });
  pty.onData((data) => terminal.write(data));

  const frames: Frame[] = [];
  const start = performance.now();
  let isRecording = true;
  const recording = (async () => {
    while (isRecording) {
      const drawn = drawRows(terminal);
      if (frames.at(-1)?.rows !== drawn) frames.push({ at: performance.now() - start, rows: drawn });
      await wait(100);
    }
  })();
  await play({
    async until(text) {
      const limit = performance.now() + 30_000;
      while (!screenText(terminal).includes(text)) {
        if (performance.now() > limit) throw new Error(`never showed ${text}:\n${screenText(terminal)}`);
        await wait(50);
      }
    },
    async type(text) {
      for (const letter of text) {
        pty.write(letter);
        await wait(35);
      }
    },
    press: (key) => pty.write(key),
  });
  isRecording = false;
  await recording;
  pty.kill("SIGTERM");
  rmSync(home, { recursive: true, force: true });
  return toSvg(frames, { title, rows });
}

/** A project with a history, and `retinue` in a folder of the search path. */
function createRepository(home: string, project: string, files: Readonly<Record<string, string>>): void {
  for (const [path, text] of Object.entries(files)) writeFile(join(project, path), text);
  writeFile(
    join(home, ".gitconfig"),
    "[user]\nname = Ada\nemail = ada@example.com\n[init]\ndefaultBranch = main\n[core]\npager = cat\n",
  );
  const launcher = join(home, "bin/retinue");
  writeFile(launcher, `#!/bin/sh\nexec "${process.execPath}" "${retinue}" "$@"\n`);
  chmodSync(launcher, 0o755);
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  for (const words of [
    ["init", "--quiet"],
    ["add", "--all"],
    ["commit", "--quiet", "-m", "the shop"],
  ])
    execFileSync("git", words, { cwd: project, env });
}

function writeFile(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

function screenText(terminal: xterm.Terminal): string {
  const { active } = terminal.buffer;
  return Array.from(
    { length: terminal.rows },
    (_, at) => active.getLine(active.baseY + at)?.translateToString(true) ?? "",
  ).join("\n");
}

/** The screen as lines of SVG text, one span for each run of cells that look alike. */
function drawRows(terminal: xterm.Terminal): string {
  const { active } = terminal.buffer;
  return Array.from({ length: terminal.rows }, (_, y) => {
    const line = active.getLine(active.baseY + y);
    let spans = "";
    let text = "";
    let style = "";
    const flush = (): void => {
      if (text.trim() !== "") spans += `<tspan${style}>${escaped(text)}</tspan>`;
      else spans += escaped(text);
      text = "";
    };
    for (let x = 0; x < columns; x += 1) {
      const cell = line?.getCell(x);
      if (cell === undefined || cell.getWidth() === 0) continue;
      const colour = cell.isFgDefault() ? "" : ` fill="${colours[cell.getFgColor() % 8] ?? "#ccc"}"`;
      const next = `${colour}${cell.isBold() ? ' font-weight="bold"' : ""}${cell.isDim() ? ' opacity="0.6"' : ""}`;
      if (next !== style) flush();
      style = next;
      text += cell.getChars() || " ";
    }
    flush();
    return spans.trim() === ""
      ? ""
      : `<text x="10" y="${22 + y * 18}" xml:space="preserve">${spans.trimEnd()}</text>`;
  }).join("");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
}

interface Frame {
  readonly at: number;
  readonly rows: string;
}

/** Each frame is visible for its time; then all of it again. */
function toSvg(frames: readonly Frame[], { title, rows }: Pick<Recording, "title" | "rows">): string {
  const total = (frames.at(-1)?.at ?? 0) + 3000;
  const shown = frames.map(({ at, rows: drawn }, index) => {
    const from = (at / total) * 100;
    const to = ((frames[index + 1]?.at ?? total) / total) * 100;
    const times = `0;${(from / 100).toFixed(4)};${Math.min(1, to / 100).toFixed(4)}`;
    return `<g visibility="hidden"><animate attributeName="visibility" values="hidden;visible;hidden" keyTimes="${times}" calcMode="discrete" dur="${(total / 1000).toFixed(1)}s" repeatCount="indefinite"/>${drawn}</g>`;
  });
  const [width, height] = [columns * 8.4 + 20, rows * 18 + 16];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="monospace" font-size="14" fill="#d0d0d0"><title>${escaped(title)}</title><rect width="100%" height="100%" rx="6" fill="#181818"/>${shown.join("\n")}</svg>\n`;
}
