import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { runProcess } from "@retinue/base/foundation/start-process.ts";
import { createSandbox } from "@retinue/core/tools/sandbox/sandbox.ts";
import { createSandboxRuntime } from "@retinue/core/tools/sandbox/sandbox-runtime.ts";
import { readSandboxSettings, type SandboxSettings } from "@retinue/core/tools/sandbox/sandbox-settings.ts";
import { fieldsOf, mergeCaseSettings, sandboxSettings } from "./case-settings.ts";
import { NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

/** One serves the whole process; ends with it. */
const runtime = createSandboxRuntime();

/** Ends the helpers of the sandbox. */
export function endSandbox(): Promise<void> {
  return Promise.resolve(runtime[Symbol.asyncDispose]());
}

interface Ran {
  readonly type: "ran";
  readonly output: string;
}

/** Runs a command in the real sandbox, by the settings of a case. */
async function runInside(
  command: string,
  {
    settings,
    deny,
    cwd,
    roots,
  }: {
    readonly settings: SandboxSettings;
    readonly deny: Parameters<typeof createSandbox>[0]["deny"];
    readonly cwd: string;
    readonly roots: Roots;
  },
): Promise<Ran | { readonly skipped: string }> {
  const start = await runtime.start(settings);
  if (start.type === "unavailable") return { skipped: `there is no sandbox here: ${start.why}` };
  const signal = AbortSignal.timeout(20_000);
  const wrap = await createSandbox({ runtime, settings, home: roots.H, deny })?.wrap(
    { file: "/bin/bash", arguments: ["--norc", "-c", command] },
    { signal, command, workingDirectories: [cwd] },
  );
  if (wrap?.type !== "wrapped")
    throw new NotHonoured(`the sandbox did not take the command: ${JSON.stringify(wrap)}`);
  const environment = { PATH: process.env["PATH"] ?? "", HOME: roots.H };
  const { output } = await runProcess({
    ...wrap.invocation,
    directory: cwd,
    environment,
    signal,
    timeLimitMs: 20_000,
  });
  wrap.ended();
  return { type: "ran", output };
}

/** Allowed is a change or a reading of a file that happens, done by a command inside the sandbox. */
export async function judgeSandboxFiles(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, cwd = roots.P } = testCase;
  const { op, path, target, sandbox } = context;
  if (typeof path !== "string") throw new NotHonoured("the case names no path");
  const { permissions, plain } = await mergeCaseSettings(testCase, roots);
  const settings = readSandboxSettings(
    sandbox === undefined ? { ...plain.sandbox, enabled: true } : plain.sandbox,
  );
  if (!settings.enabled) throw new NotHonoured("the case has no sandbox");
  const deny = permissions.deny.map(({ rule, source }) => ({ rule, anchor: source.anchor }));
  if (op === "read") await writeIfMissing(path);
  const before = await stateOf(path);
  const quoted = `'${path.replaceAll("'", `'"'"'`)}'`;
  const other = `'${String(target ?? `${path}.other`).replaceAll("'", `'"'"'`)}'`;
  const commands: Readonly<Record<string, string>> = {
    write: `mkdir -p "$(dirname ${quoted})"; echo changed > ${quoted}`,
    append: `echo changed >> ${quoted}`,
    read: `cat ${quoted} && echo && echo was-read`,
    delete: `rm -rf ${quoted}`,
    remove: `rm -rf ${quoted}`,
    mkdir: `mkdir -p ${quoted}`,
    symlink: `ln -sfn ${other} ${quoted}`,
    rename: `mv ${quoted} ${other}`,
  };
  const ran = await runInside(commands[String(op)] ?? "false", { settings, deny, cwd, roots });
  if ("skipped" in ran) return ran;
  if (op === "read") return ran.output.endsWith("was-read\n") ? "allow" : "deny";
  return (await stateOf(path)) === before ? "deny" : "allow";
}

/** Allowed is a host that the sandbox's way out would dial; whether it is there is another matter. */
export async function judgeSandboxNetwork(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, cwd = roots.P } = testCase;
  const { host, port = 443, allowedDomains = [], deniedDomains = [] } = context;
  if (typeof host !== "string") throw new NotHonoured("the case names no host");
  const own = sandboxSettings({ ...fieldsOf(context["sandbox"]), allowedDomains, deniedDomains });
  const settings = readSandboxSettings({ ...own, enabled: true });
  const command = `'${process.execPath}' -e '${askProxy}' '${host.replaceAll("'", "")}:${String(port)}'`;
  const ran = await runInside(command, { settings, deny: [], cwd, roots });
  if ("skipped" in ran) return ran;
  const status = /^HTTP\/1\.[01] (\d+)/.exec(ran.output)?.[1];
  if (status === undefined)
    throw new NotHonoured(`the way out of the sandbox did not answer: ${ran.output.slice(0, 200)}`);
  return status === "403" ? "deny" : "allow";
}

const askProxy = [
  'const proxy = new URL(process.env.HTTP_PROXY), host = process.argv[1], end = "\\r\\n";',
  "const words = [proxy.username, proxy.password].map(decodeURIComponent).join(String.fromCharCode(58));",
  'const socket = require("net").connect(Number(proxy.port), proxy.hostname);',
  'const lines = ["CONNECT " + host + " HTTP/1.1", "Host: " + host, "Proxy-Authorization: Basic " + Buffer.from(words).toString("base64"), "", ""];',
  "socket.write(lines.join(end));",
  'socket.on("data", (data) => { console.log(String(data).split(end)[0]); process.exit(); });',
  'socket.on("error", (error) => console.log(error.code));',
].join(" ");

async function writeIfMissing(path: string): Promise<void> {
  if (await stat(path).catch(() => undefined)) return;
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, "content");
}

/** What is there, and what it holds. */
async function stateOf(path: string): Promise<string> {
  const stats = await stat(path).catch(() => undefined);
  if (stats === undefined) return "nothing";
  if (!stats.isFile()) return stats.isDirectory() ? "a folder" : "something";
  return `a file: ${await readFile(path, "utf8").catch(() => "unreadable")}`;
}
