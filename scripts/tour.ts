/**
 * `npm start`: a short tour that runs the real command in the example folders, a screen for each step. In a terminal a key leads
 * to the next step; elsewhere the steps follow each other. Reads nothing of the user's, needs no network.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

interface Step {
  readonly text: string;
  readonly folder: string;
  readonly arguments_: readonly string[];
  readonly exitCode?: number;
}

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[/\\]$/, "");
const program = join(root, "bin/retinue.js");
const workspace = join(root, "examples/workspace");
const isInteractive = process.stdin.isTTY === true && process.stdout.isTTY === true;
const columns = process.stdout.columns || Number(process.env["COLUMNS"]) || 80;
/** Lines of a step, the one that waits for a key included. */
const screen = Math.max(12, Math.min(24, process.stdout.rows || 24));
/** Where there is no person to turn the pages, the head of each answer is enough. */
const mostAnswerLines = isInteractive ? screen : 10;
const interrupted = 130;

const steps: readonly Step[] = [
  {
    text: "This example project has five agents and a settings file. The list shows all of them, the built-in agents last; a deny rule in the settings hides one.",
    folder: workspace,
    arguments_: ["agents"],
  },
  {
    text: "One agent in full: the file it comes from, what it may do as a subagent, and the line each field was read from.",
    folder: workspace,
    arguments_: ["agents", "show", "release-captain"],
  },
  {
    text: "Mistakes in agent files are repaired and reported where that is safe. A file is not loaded if a guess could grant more than its author meant; the exit code is then 1.",
    folder: join(root, "examples/awkward"),
    arguments_: ["agents", "check", "broken-limit.md", "contradiction.md"],
    exitCode: 1,
  },
  {
    text: "Agents at work: three Explore agents in parallel, each on its own folder, then a Plan agent. The tour uses no API key: the offline model, a small program that drives the real tools, answers. Run in a terminal, this command shows the agents live.",
    folder: workspace,
    arguments_: ["-p", "what is here", "--model", "offline"],
  },
  {
    text: "Agents are recorded. From any terminal you can list them, follow or stop a running one, and resume a finished one.",
    folder: workspace,
    arguments_: ["tasks"],
  },
  {
    text: "A report of the session: when each agent ran, the tools it called, tokens, cost, and refused calls. --html FILE writes it as a web page.",
    folder: workspace,
    arguments_: ["inspect"],
  },
];

const last = `That was the tour. To try Retinue on your own project, add an alias:

$ alias retinue="'${process.execPath}' '${program}'"

Then, in your project's folder:

$ retinue                      opens a conversation in the terminal
$ retinue -p "what is here"    runs an agent and prints its answer
$ retinue agents               lists agents and where each is defined
$ retinue agents check         finds mistakes in agents, settings and plugins
$ retinue doctor               checks the set-up and suggests fixes
$ retinue --help               commands and options

All documentation: docs/README.md. Programs that use the library: examples/.`;

if (!existsSync(join(root, "dist/cli/main.js"))) {
  console.error(
    "The program is not built yet. Run `npm ci`, or `npm run build`, and then `npm start` again.",
  );
  process.exit(1);
}

const configuration = mkdtempSync(join(tmpdir(), "retinue-tour-"));
process.on("exit", () => rmSync(configuration, { recursive: true, force: true }));
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => process.exit(interrupted));
let here = root;

print(
  `Retinue reads the agents that people define in Markdown files, shows what each of them may do, and runs them. This tour runs ${steps.length} commands on the files in examples/. It does not read your own files and keys.`,
);
for (const [at, step] of steps.entries()) {
  if (!(await goesOn(`${at + 1} of ${steps.length}`))) process.exit(0);
  show(step, at + 1);
}
if (await goesOn("the end")) console.log(last);

function print(text: string): void {
  console.log(`${fold(text).join("\n")}\n`);
}

/** Runs the command of a step and prints as much of its answer as the screen has room for. */
function show({ text, folder, arguments_, exitCode = 0 }: Step, number: number): void {
  const written = arguments_.map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ");
  const head = fold(`${number}. ${text}`);
  console.log([...head, ""].join("\n"));
  const moved = folder === here ? [] : [`$ cd ${relative(here, folder)}`];
  here = folder;
  console.log([...moved, `$ retinue ${written}`].join("\n"));
  const { status, signal, error, stdout, stderr } = spawnSync(process.execPath, [program, ...arguments_], {
    cwd: folder,
    encoding: "utf8",
    env: {
      ...withoutKeys(process.env),
      CLAUDE_CONFIG_DIR: configuration,
      RETINUE_LOCAL_MODELS: "0",
      COLUMNS: String(columns),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  if (status === interrupted || signal === "SIGINT") process.exit(interrupted);
  // Besides the head and the command: an empty line at both ends, and one that waits for a key.
  const room = Math.max(4, Math.min(screen - head.length - moved.length - 4, mostAnswerLines));
  console.log(cut(`${stdout}\n${stderr}`, room).join("\n"));
  console.log("");
  if (status === exitCode) return;
  console.error(`This command should have ended with ${exitCode}, not ${status ?? error?.message}.`);
  process.exit(1);
}

/** The first of the lines, the last of which says how many there are more. */
function cut(text: string, most: number): readonly string[] {
  const lines = text
    .trim()
    .split("\n")
    .flatMap((line) => fold(line, columns));
  if (lines.length <= most) return lines;
  return [...lines.slice(0, most - 1), `… ${lines.length - most + 1} more lines`];
}

/** Whether the next step is wanted: any key but q, Escape and Ctrl+C. Where there are no keys it is. */
async function goesOn(place: string): Promise<boolean> {
  if (!isInteractive) return true;
  process.stdin.setRawMode(true).resume();
  process.stdout.write(`[next: ${place}] any key continues, q ends `);
  const key = await new Promise<string>((resolve) => {
    process.stdin.once("data", (data) => resolve(data.toString()));
    process.stdin.once("end", () => resolve("q"));
  });
  process.stdin.setRawMode(false).pause();
  process.stdout.write("\r\u001b[K");
  if (key === "\u0003") process.exit(interrupted);
  return !["q", "Q", "\u001b", "\u0004"].includes(key);
}

/** The tour costs nothing: whatever would lead to a provider is left out. */
function withoutKeys(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("ANTHROPIC_")));
}

/** A model cannot see how wide the terminal is. */
function fold(line: string, most = Math.min(columns, 100) - 2): readonly string[] {
  const width = Math.max(20, most);
  return line.replace(new RegExp(`(?![^\\n]{1,${width}}$)([^\\n]{1,${width}})\\s`, "g"), "$1\n").split("\n");
}
