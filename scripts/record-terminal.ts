/** `node scripts/record-terminal.ts`: records a conversation in a real terminal as docs/terminal.svg. Needs a build. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { spawn } from "@lydell/node-pty";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import xterm from "@xterm/headless";

const root = fileURLToPath(new URL("..", import.meta.url));
const colours = ["#181818", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d0d0d0"];
const columns = 88;
const rows = 20;

const agent = (type: string, description: string) => ({
  name: "Agent",
  input: { subagent_type: type, description, prompt: `child: ${description}` },
});

const child = (description: string, command: string) => [
  {
    match: (request: { readonly messages: readonly unknown[] }) => isChild(request, description, 1),
    delayMs: 120,
    text: "I look.",
    calls: [{ name: "Bash", input: { command } }],
  },
  {
    match: (request: { readonly messages: readonly unknown[] }) => isChild(request, description),
    delayMs: 250,
    times: "any" as const,
    text: "Found it, and wrote down what I saw in the tests.",
  },
];

function isChild(
  { messages }: { readonly messages: readonly unknown[] },
  description: string,
  length?: number,
): boolean {
  const isMeant = JSON.stringify(messages[0]).includes(`child: ${description}`);
  return isMeant && (length === undefined || messages.length === length);
}

const home = mkdtempSync(join(tmpdir(), "retinue-record-"));
const project = join(home, "project");
mkdirSync(project);
const provider = await startFakeProvider({
  deltaDelayMs: 40,
  script: [
    ...child("find flaky tests", "ls"),
    ...child("fix the session", "npm test"),
    {
      text: "Two agents look at it.",
      calls: [agent("Explore", "find flaky tests"), agent("general-purpose", "fix the session")],
    },
    "The retry in `api/session.ts` waited on a **fixed** delay.\n\n- the test now waits for the event\n- the changelog has a line\n",
  ],
});
const terminal = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true });
const pty = spawn(process.execPath, [join(root, "bin/retinue.js")], {
  cols: columns,
  rows,
  cwd: project,
  name: "xterm-256color",
  env: {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    RETINUE_LOCAL_MODELS: "0",
    ANTHROPIC_BASE_URL: provider.url,
    ANTHROPIC_API_KEY: "x",
  },
});
pty.onData((data) => terminal.write(data));

const frames: { readonly at: number; readonly rows: string }[] = [];
const start = performance.now();
let isRecording = true;
const recording = (async () => {
  while (isRecording) {
    const drawn = drawRows();
    if (frames.at(-1)?.rows !== drawn) frames.push({ at: performance.now() - start, rows: drawn });
    await wait(100);
  }
})();

await until(">");
await type("fix the flaky tests in api/ and review the change");
pty.write("\r");
await until("tab to answer");
await type("also update the changelog");
pty.write("\r");
await wait(800);
pty.write("\t");
await until("do not ask again");
await wait(1500);
pty.write("1");
await until("changelog has a line");
await wait(2500);
isRecording = false;
await recording;
pty.kill("SIGTERM");
await provider[Symbol.asyncDispose]();
writeFileSync(join(root, "docs/terminal.svg"), toSvg());
rmSync(home, { recursive: true, force: true });
process.exit(0);

async function type(text: string): Promise<void> {
  for (const letter of text) {
    pty.write(letter);
    await wait(35);
  }
}

/** Waits until the screen shows a text; a recording that hangs is of no use. */
async function until(text: string): Promise<void> {
  const limit = performance.now() + 30_000;
  while (!screenText().includes(text)) {
    if (performance.now() > limit) throw new Error(`never showed ${text}:\n${screenText()}`);
    await wait(50);
  }
}

function screenText(): string {
  const { active } = terminal.buffer;
  return Array.from(
    { length: rows },
    (_, at) => active.getLine(active.baseY + at)?.translateToString(true) ?? "",
  ).join("\n");
}

/** The screen as lines of SVG text, one span for each run of cells that look alike. */
function drawRows(): string {
  const { active } = terminal.buffer;
  return Array.from({ length: rows }, (_, y) => {
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

/** Each frame is visible for its time; then all of it again. */
function toSvg(): string {
  const total = (frames.at(-1)?.at ?? 0) + 3000;
  const shown = frames.map(({ at, rows: drawn }, index) => {
    const from = (at / total) * 100;
    const to = ((frames[index + 1]?.at ?? total) / total) * 100;
    const times = `0;${(from / 100).toFixed(4)};${Math.min(1, to / 100).toFixed(4)}`;
    return `<g visibility="hidden"><animate attributeName="visibility" values="hidden;visible;hidden" keyTimes="${times}" calcMode="discrete" dur="${(total / 1000).toFixed(1)}s" repeatCount="indefinite"/>${drawn}</g>`;
  });
  const [width, height] = [columns * 8.4 + 20, rows * 18 + 16];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="monospace" font-size="14" fill="#d0d0d0"><title>A conversation in the terminal</title><rect width="100%" height="100%" rx="6" fill="#181818"/>${shown.join("\n")}</svg>\n`;
}
