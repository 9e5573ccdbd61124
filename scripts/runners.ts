/**
 * `npm run runners`: installs the programs of other vendors into a temporary folder and plays the same six steps with each, against
 * models that answer on loopback: spawn, ask, deny, stop, resume, worktree. Where the system lets us, the programs run without any other
 * network. `-- NAME…` plays some of them alone; `--at FOLDER` uses and keeps that folder.
 */
import { execFileSync, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Message } from "@retinue/core/conversation/message.ts";
import { resultText } from "@retinue/core/conversation/message.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import type { RunHandle } from "@retinue/core/kernel/run-handle.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { type Heard, type Reply, startFakeModels } from "./fake-models.ts";

interface Urls {
  /** Anthropic's and OpenAI's chat format. */
  readonly chat: string;
  /** Gemini's format, and OpenAI's Responses. */
  readonly other: string;
}

interface Vendor {
  readonly packages: readonly string[];
  /** Variables, and files below the home that it reads. */
  readonly prepare: (home: string, urls: Urls) => Readonly<Record<string, string>>;
}

const vendors: Readonly<Record<string, Vendor>> = {
  claude: {
    packages: ["@agentclientprotocol/claude-agent-acp"],
    prepare: (_home, { chat }) => ({
      ANTHROPIC_BASE_URL: chat,
      ANTHROPIC_API_KEY: "fake",
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      IS_SANDBOX: "1",
    }),
  },
  codex: {
    packages: ["@agentclientprotocol/codex-acp"],
    prepare(home, { other }) {
      const provider = `[model_providers.fake]\nname = "fake"\nbase_url = "${other}/v1"\nwire_api = "responses"\nenv_key = "FAKE_KEY"\n`;
      write(join(home, ".codex/config.toml"), `model = "fake"\nmodel_provider = "fake"\n${provider}`);
      return { FAKE_KEY: "fake", OPENAI_API_KEY: "fake" };
    },
  },
  gemini: {
    packages: ["@google/gemini-cli"],
    prepare(home, { other }) {
      write(
        join(home, ".gemini/settings.json"),
        JSON.stringify({
          // Otherwise a model would choose the model, in a format of its own.
          model: { name: "gemini-2.5-pro" },
          security: { auth: { selectedType: "gemini-api-key" } },
          privacy: { usageStatisticsEnabled: false },
          general: { disableAutoUpdate: true, enableAutoUpdate: false },
        }),
      );
      return { GEMINI_API_KEY: "fake", GOOGLE_GEMINI_BASE_URL: other };
    },
  },
  qwen: {
    packages: ["@qwen-code/qwen-code"],
    prepare(home, { chat }) {
      write(
        join(home, ".qwen/settings.json"),
        JSON.stringify({
          security: { auth: { selectedType: "openai" } },
          privacy: { usageStatisticsEnabled: false },
          general: { disableAutoUpdate: true, enableAutoUpdate: false },
        }),
      );
      return { OPENAI_API_KEY: "fake", OPENAI_BASE_URL: `${chat}/v1`, OPENAI_MODEL: "fake" };
    },
  },
  opencode: {
    packages: ["opencode-ai"],
    prepare(home, { chat }) {
      const config = {
        model: "fake/fake",
        small_model: "fake/fake",
        autoupdate: false,
        share: "disabled",
        permission: { edit: "ask", bash: "ask", webfetch: "ask" },
        provider: {
          fake: {
            npm: "@ai-sdk/openai-compatible",
            options: { baseURL: `${chat}/v1`, apiKey: "fake" },
            models: { fake: { name: "fake", tool_call: true, limit: { context: 100_000, output: 4_000 } } },
          },
        },
      };
      write(join(home, ".config/opencode/opencode.json"), JSON.stringify(config));
      return {
        OPENCODE_DISABLE_MODELS_FETCH: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      };
    },
  },
};

function write(file: string, text: string): void {
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, text);
}

/** What the programs call the tool that runs commands. */
const shells = ["Bash", "bash", "run_shell_command", "exec_command", "shell_command", "shell"];

const alone = "--without-network";
const words = process.argv.slice(2);
const given = words.includes("--at") ? words[words.indexOf("--at") + 1] : undefined;
const names = Object.keys(vendors).filter(
  (name) => words.includes(name) || !words.some((word) => word in vendors),
);

if (words.includes(alone)) process.exitCode = (await playAll(given ?? "")) ? 0 : 1;
else {
  const folder = given ?? mkdtempSync(join(tmpdir(), "runners-"));
  mkdirSync(folder, { recursive: true });
  try {
    for (const name of names) install(name, folder);
    process.exitCode = playWithoutNetwork(folder);
  } finally {
    if (given === undefined) rmSync(folder, { recursive: true, force: true });
  }
}

function install(name: string, folder: string): void {
  const own = join(folder, name);
  if (existsSync(join(own, "node_modules/.bin"))) return;
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "package.json"), '{ "private": true }\n');
  const packages = vendors[name]?.packages ?? [];
  const { status, stderr } = spawnSync("npm", ["install", "--no-audit", "--no-fund", ...packages], {
    cwd: own,
    encoding: "utf8",
  });
  if (status !== 0) console.log(`${name}: cannot be installed: ${stderr.trim().split("\n").at(-1)}`);
}

/** In a network namespace with nothing but loopback; elsewhere behind a proxy that is not there. */
function playWithoutNetwork(folder: string): number {
  const again = [process.execPath, process.argv[1] ?? "", ...names, "--at", folder, alone];
  const quoted = again.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const isolating = ["-rn", "sh", "-c", `ip link set lo up 2>/dev/null; exec ${quoted}`];
  const canIsolate = spawnSync("unshare", ["-rn", "true"]).status === 0;
  console.log(canIsolate ? "network: loopback alone" : "network: by a proxy that is not there");
  const dead = "http://127.0.0.1:9";
  const env = { ...process.env, HTTPS_PROXY: dead, HTTP_PROXY: dead, NO_PROXY: "127.0.0.1,localhost" };
  const [file = "", ...rest] = again;
  const { status } = canIsolate
    ? spawnSync("unshare", isolating, { stdio: "inherit" })
    : spawnSync(file, rest, { stdio: "inherit", env });
  return status ?? 1;
}

async function playAll(folder: string): Promise<boolean> {
  let isGood = true;
  await using other = await startFakeModels(answer);
  await using chat = await startFakeProvider({ respond: (request) => stepOf(answer(hear(request))) });
  for (const name of names) {
    const vendor = vendors[name];
    if (vendor === undefined || !existsSync(join(folder, name, "node_modules/.bin"))) continue;
    const results = await playOne(name, vendor, { folder, urls: { chat: chat.url, other: other.url } });
    isGood &&= results.every(([, flaw]) => flaw === undefined);
    console.log(`${name}: ${results.filter(([, flaw]) => flaw === undefined).length} of ${results.length}`);
  }
  return isGood;
}

type Played = readonly [step: string, flaw: string | undefined];

async function playOne(
  name: string,
  vendor: Vendor,
  { folder, urls }: { readonly folder: string; readonly urls: Urls },
): Promise<readonly Played[]> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), `runner-${name}-`)));
  const [home, project] = [join(root, "home"), join(root, "project")];
  const own = vendor.prepare(home, urls);
  const bin = join(folder, name, "node_modules/.bin");
  const definition = (more: string): string =>
    `---\nname: NAME\ndescription: d\nrunner:\n  acp: ${name}\n  unguarded: true\n  env: [${Object.keys(own).join(", ")}]\n${more}---\nDo what you are told.\n`;
  write(join(project, ".claude/agents/vendor.md"), definition("").replace("NAME", "vendor"));
  write(
    join(project, ".claude/agents/apart.md"),
    definition("isolation: worktree\n").replace("NAME", "apart"),
  );
  // Not in a file that the program reads as well: it is ours to block.
  const permissions = { deny: ["Bash(touch denied*)", "Edit(denied*)"], allow: ["Bash(tail *)"] };
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", ...args], { cwd: project });
  git("init", "-q");
  git("add", ".");
  git("commit", "-qm", "first");
  const asked: string[] = [];
  const runtime = createRuntime({
    cwd: project,
    home,
    trusted: true,
    env: { PATH: `${bin}${delimiter}${process.env["PATH"]}`, RETINUE_LOCAL_MODELS: "0", ...own },
    managedDirectory: join(root, "managed"),
    model: createScriptedModel(["Hello."]),
    settings: { permissions },
    settingSources: ["user", "project", "local"],
    transcripts: true,
    approver: {
      async approve({ tool, input }) {
        asked.push(`${tool} ${JSON.stringify(input).slice(0, 80)}`);
        return { type: "allow", for: "call" };
      },
    },
  });
  const results: Played[] = [];
  const begun = new Date();
  try {
    await using session = await runtime.open();
    const play = async (step: string, check: () => Promise<string | undefined>): Promise<void> => {
      const flaw = await check().catch((error: unknown) => String(error));
      results.push([step, flaw]);
      console.log(`  ${name} ${step}: ${flaw ?? "passed"}`);
    };
    const spawn = (prompt: string, agent = "vendor", options = {}): RunHandle =>
      session.spawn(agent, prompt, { timeout: 90, ...options });
    let first = "";
    await play("spawn", async () => {
      const handle = spawn(marked({ say: "The word is HERON." }));
      const { status, text, error } = await handle.result;
      first = handle.id;
      return text.includes("HERON") ? undefined : `${status}: ${error ?? text}`;
    });
    await play("ask", async () => {
      const { text, error } = await spawn(marked({ run: "touch asked.txt" })).result;
      const isAsked = asked.some((line) => line.includes("touch asked.txt"));
      if (existsSync(join(project, "asked.txt")) && isAsked) return undefined;
      return `${isAsked ? "asked, and not done" : `not asked (${asked.join("; ")})`}: ${error ?? text}`;
    });
    await play("deny", async () => {
      const { text, error, denials } = await spawn(marked({ run: "touch denied.txt" })).result;
      if (!existsSync(join(project, "denied.txt")) && denials.length > 0) return undefined;
      return `${denials.length} denials: ${error ?? text}`;
    });
    await play("stop", async () => {
      // Some programs refuse to sleep.
      const command = `tail -s ${600 + Math.trunc(Math.random() * 300)} -f /dev/null`;
      const handle = spawn(marked({ run: command }));
      const isThere = (): boolean => spawnSync("pgrep", ["-xf", command]).status === 0;
      const isRunning = await until(isThere, 60_000, handle);
      if (!isRunning) return `the command did not begin: ${JSON.stringify(await handle.stop())}`;
      const { status } = await handle.stop();
      const isGone = await until(() => !isThere(), 10_000);
      return status === "stopped" && isGone ? undefined : `${status}, ${isGone ? "gone" : "still running"}`;
    });
    await play("resume", async () => {
      // Gemini CLI names its files by the minute and loses a conversation that is continued in the one in which it began.
      if (name === "gemini") await until(() => new Date().getMinutes() !== begun.getMinutes(), 61_000);
      const { text, error } = await spawn(marked({ recall: "HERON" }), "vendor", { resume: first }).result;
      return text.includes("REMEMBERED") ? undefined : (error ?? text);
    });
    await play("worktree", async () => {
      const { text, error } = await spawn(marked({ run: "pwd > where.txt" }), "apart").result;
      const kept = execFileSync("git", ["worktree", "list"], { cwd: project, encoding: "utf8" });
      const tree = kept.split("\n")[1]?.split(" ")[0] ?? "";
      const where = existsSync(join(tree, "where.txt"))
        ? readFileSync(join(tree, "where.txt"), "utf8").trim()
        : "";
      if (tree !== "" && where === tree && !existsSync(join(project, "where.txt"))) return undefined;
      return `in ${where} of ${kept.trim()}: ${error ?? text}`;
    });
  } finally {
    await runtime[Symbol.asyncDispose]();
    rmSync(root, { recursive: true, force: true });
  }
  return results;
}

async function until(test: () => boolean, limitMs: number, handle?: RunHandle): Promise<boolean> {
  let isOver = false;
  void handle?.result.finally(() => {
    isOver = true;
  });
  for (const end = performance.now() + limitMs; performance.now() < end && !isOver; ) {
    if (test()) return true;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return test();
}

type Order = { readonly say: string } | { readonly run: string } | { readonly recall: string };

function marked(order: Order): string {
  return `Please follow the order. ORDER<${JSON.stringify(order)}>`;
}

/** Does what the last order says, with whatever tool the program has for it. */
function answer({ parts, tools }: Heard): Reply {
  const at = parts.findLastIndex(({ kind, text }) => kind === "user" && text.includes("ORDER<"));
  if (at === -1) return { text: "OK" };
  // The order was written by this script.
  const order = JSON.parse(/ORDER<(\{.*?\})>/.exec(parts[at]?.text ?? "")?.[1] ?? "{}") as Partial<
    Record<"say" | "run" | "recall", string>
  >;
  const result = parts.slice(at + 1).find(({ kind }) => kind === "result");
  if (result !== undefined) return { text: `RESULT ${result.text.slice(0, 300)}` };
  if (order.say !== undefined) return { text: order.say };
  if (order.recall !== undefined) {
    const word = order.recall;
    const isKnown = parts.slice(0, at).some(({ kind, text }) => kind === "assistant" && text.includes(word));
    return { text: isKnown ? "REMEMBERED" : "FORGOTTEN" };
  }
  const tool = shells.find((name) => tools.includes(name));
  if (tool === undefined) return { text: `There is no shell among ${tools.join(", ")}.` };
  const command = order.run ?? "true";
  // Outside of its own sandbox, which is what it has to ask for.
  const asking = { sandbox_permissions: "require_escalated", justification: "The order says so." };
  if (tool === "exec_command") return { call: { name: tool, input: { cmd: command, ...asking } } };
  if (tool === "shell")
    return { call: { name: tool, input: { command: ["bash", "-lc", command], ...asking } } };
  const more = tool === "run_shell_command" ? { is_background: false } : {};
  return { call: { name: tool, input: { command, description: "Follows the order", ...more } } };
}

function hear({ messages, tools }: ModelRequest): Heard {
  return { parts: messages.flatMap(partsOf), tools: tools.map(({ name }) => name) };
}

function partsOf({ role, content }: Message): Heard["parts"] {
  if (typeof content === "string") return [{ kind: role, text: content }];
  const blocks: readonly Message["content"][number][] = content;
  return blocks.flatMap((block): Heard["parts"] => {
    if (typeof block === "string") return [];
    if (block.type === "text") return [{ kind: role, text: block.text }];
    return block.type === "tool_result" ? [{ kind: "result", text: resultText(block.content) }] : [];
  });
}

function stepOf(reply: Reply) {
  if ("text" in reply) return reply.text;
  const { name, input } = reply.call;
  return { calls: [{ name, input }] };
}
