/** `npm start`: a short tour that runs the real command in the example folders. Reads nothing of the user's, needs no network. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url)).replace(/[/\\]$/, "");
const program = join(root, "bin/retinue.js");
const workspace = join(root, "examples/workspace");
let here = root;

if (!existsSync(join(root, "dist/cli/main.js"))) {
  console.error(
    "The program is not built yet. Run `npm ci`, or `npm run build`, and then `npm start` again.",
  );
  process.exit(1);
}

const configuration = mkdtempSync(join(tmpdir(), "retinue-tour-"));
process.on("exit", () => rmSync(configuration, { recursive: true, force: true }));

say(`Retinue reads the agents that people define in Markdown files, and shows what
each of them may do, and runs them. This tour runs six commands on the example
files in examples/. Your own files and keys are left out of it.`);

say(`1. A project has five agents and a settings file. Who is there? The built-in
   agents come last; a deny rule of the settings hides one of them.`);
show(workspace, ["agents"]);

say(`2. One of them in full: where it comes from, what it may do as a subagent,
   and the line that each field was read from.`);
show(workspace, ["agents", "show", "release-captain"]);

say(`3. Files with one flaw each. What can be understood is understood and reported;
   what could grant too much by a guess is refused. Each problem has a place,
   a code and a way out. The exit code is 1, as there are errors.`);
show(root, ["agents", "check", join("examples", "awkward")], 1);

say(`4. Agents at work. The main agent sends out three Explore agents in
   parallel, each into its own folder, then one Plan agent; in a terminal the
   lines below show live what each of them does. No key is used here, so the
   offline model answers: a small program that drives the real tools and says
   so. With ANTHROPIC_API_KEY set, or --model provider/model, a real model
   does the same.`);
show(workspace, ["-p", "what is here", "--model", "offline"]);

say(`5. They are kept. Any terminal can list them, read along, stop one that runs
   and continue with one that has ended.`);
show(workspace, ["tasks"]);

say(`6. What did that take? The journal shows: who ran when, which tools, how many
   tokens, what it cost, and what was refused; --html FILE makes a page of it.`);
show(workspace, ["inspect"]);

say(`That was the tour. To try it on a project of yours, make the command known
to this terminal:`);
console.log(`$ alias retinue="'${process.execPath}' '${program}'"\n`);
console.log(`then, in the folder of your project:

$ retinue -p "what is here"    runs an agent and prints its answer
$ retinue tasks                the agents it has started, also while they run
$ retinue plan Explore         what an agent would be if it were started now
$ retinue agents               lists agents and where each is defined
$ retinue agents check         mistakes in your agents, settings and plugins
$ retinue agents new           writes a new agent, asking for what it needs
$ retinue doctor               looks at the set-up and says what to do
$ retinue --help               all commands and options

docs/README.md leads to a page for each subject, examples/ to programs that use
the library.`);

function say(text: string): void {
  console.log(`${text}\n`);
}

/** Runs the command; an answer is folded, because a model cannot see how wide the terminal is. */
function show(folder: string, arguments_: readonly string[], expectedCode = 0): void {
  if (folder !== here) console.log(`$ cd ${relative(here, folder)}`);
  here = folder;
  console.log(`$ retinue ${arguments_.map((word) => (word.includes(" ") ? `"${word}"` : word)).join(" ")}`);
  const { status, error, stdout } = spawnSync(process.execPath, [program, ...arguments_], {
    cwd: folder,
    encoding: "utf8",
    env: {
      ...withoutKeys(process.env),
      CLAUDE_CONFIG_DIR: configuration,
      RETINUE_LOCAL_MODELS: "0",
      COLUMNS: process.env["COLUMNS"] ?? "80",
    },
    stdio: ["ignore", arguments_.includes("-p") ? "pipe" : "inherit", "inherit"],
  });
  if (stdout !== null) console.log(stdout.trimEnd().split("\n").map(fold).join("\n"));
  console.log("");
  if (status === expectedCode) return;
  console.error(`This command should have ended with ${expectedCode}, not ${status ?? error?.message}.`);
  process.exit(1);
}

/** The tour costs no one anything: whatever would lead to a provider is left out. */
function withoutKeys(environment: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => !name.startsWith("ANTHROPIC_")));
}

function fold(line: string): string {
  return line.replace(/(?![^\n]{1,78}$)([^\n]{1,78})\s/g, "$1\n");
}
