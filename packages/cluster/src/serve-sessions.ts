// @io

import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, open, rm } from "node:fs/promises";
import { homedir, hostname, tmpdir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { promisify } from "node:util";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { errorCode, fileError } from "@retinue/base/foundation/file-error.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { chooseAdapter } from "@retinue/core/models/model-factory.ts";
import { factorySettings, findProvider, knownProviders } from "@retinue/core/models/provider-entry.ts";
import type { ProgramFunction } from "@retinue/core/planning/agent-plan.ts";
import { runOwnGitNow } from "@retinue/gate/git/run-own-git.ts";
import type { AgentProgram } from "./agent-program.ts";
import { classifyFailure } from "./classify-failure.ts";
import { openSharedCoolDowns } from "./limits/shared-cool-downs.ts";
import { serveAgents, serveShape } from "./serve-agents.ts";
import { createSessionProgram } from "./session/create-session-program.ts";
import { anyModelNeed, functionNeeds, providerNeed, serverNeed } from "./session/plan-needs.ts";
import { planFormat, workflowFormat } from "./session/session-plan.ts";
import type { SessionProgramOptions, WorkerRuntimeOptions } from "./session/session-work.ts";
import { isStore, type ServeOptions, type Store, type Worker } from "./store.ts";
import { makeWorkspaceRoot } from "./workspace/open-workspace.ts";
import { folderNeed } from "./workspace/workspace-plan.ts";

export interface ServeSessionsOptions
  extends Pick<SessionProgramOptions, "runtime" | "accepts">,
    Omit<ServeOptions, "ailment"> {
  /** Where clones of git workspaces and copies of transcripts go while a session runs; the temporary folder when absent. */
  readonly workspaces?: string | undefined;
  /** Queues besides the common one. */
  readonly queues?: readonly string[] | undefined;
  /** Folders that are the same on every worker. Where there are some, this worker works in no other folder of its disk. */
  readonly folders?: readonly string[] | undefined;
  /** Called with how many sessions run here whenever that changes. */
  readonly onRunning?: ((count: number) => void) | undefined;
}

/** Makes this process a worker for sessions. What it has is found out now, so that it takes only what it can run. */
export async function serveSessions(store: Store, options: ServeSessionsOptions): Promise<Worker> {
  checkArgument("The first argument of serveSessions()", isStore, store);
  checkArgument("The second argument of serveSessions()", serveShape, options);
  checkArgument("The option runtime of serveSessions()", checks.thing, options.runtime);
  const { runtime, workspaces, folders = [], has = [], accepts, onRunning, ...serve } = options;
  const coolDowns = await openSharedCoolDowns(store, serve.onError ?? (() => undefined));
  const root = await makeWorkspaceRoot(workspaces);
  const program = whileCounting(
    createSessionProgram({ runtime, store, coolDowns, workspaces: root.folder, folders, accepts }),
    onRunning ?? (() => undefined),
  );
  const abilities = await findAbilities(runtime);
  const shared = folders.map((folder) => folderNeed(resolve(folder)));
  const git = hasGit({ PATH: process.env["PATH"], ...runtime.env }) ? ["git"] : [];
  const worker = await serveAgents(store, program, {
    ...serve,
    machine: hostname(),
    probe: (error) => probeHost({ folder: root.folder, home: runtime.home ?? homedir() }, error),
    has: [...has, ...abilities, ...shared, ...git],
  });
  const drain = async (graceMs?: number): Promise<void> => {
    await worker.drain(graceMs);
    await coolDowns[Symbol.asyncDispose]();
    await root.remove();
  };
  return { id: worker.id, drain, [Symbol.asyncDispose]: () => drain() };
}

function whileCounting(program: AgentProgram, onRunning: (count: number) => void): AgentProgram {
  let running = 0;
  const change = (by: number): void => {
    running += by;
    onRunning(running);
  };
  return async (context) => {
    change(1);
    try {
      return await program(context);
    } finally {
      change(-1);
    }
  };
}

function hasGit(environment: Readonly<Record<string, string | undefined>>): boolean {
  return runOwnGitNow({ directory: tmpdir(), words: ["--version"], environment, folders: [] }) !== undefined;
}

interface ProbeOptions {
  /** Where sessions of this worker write: their copies of transcripts, their clones. */
  readonly folder: string;
  /** Looked at as well once an error came from there. */
  readonly home: string;
}

/** More than what a nearly full disk still takes for a while. */
const probeBytes = 256 * 1024;
/** As many descriptors as a session needs at its start. */
const probeFiles = 16;

/**
 * Does in small what every session needs: write, read back, open files, start a process. Gives what did not work. The folder that an error
 * came from is tried as well where it is below the home, and the home itself where an error of the file system does not say where it was.
 */
async function probeHost({ folder, home }: ProbeOptions, error?: unknown): Promise<string | undefined> {
  const file = fileOf(error) ?? (classifyFailure(error) === "host" ? join(home, "any") : "");
  const folders = [folder, ...(file.startsWith(`${home}${sep}`) ? [dirname(file)] : [])];
  try {
    for (const each of folders) await writeIn(each);
    try {
      await promisify(execFile)(process.execPath, ["--version"], { timeout: 60_000 });
    } catch (error) {
      throw new Error(`No process can be started here: ${errorCode(error) ?? String(error)}.`);
    }
    return undefined;
  } catch (failure) {
    return failure instanceof Error ? failure.message : String(failure);
  }
}

async function writeIn(folder: string): Promise<void> {
  const file = join(folder, `.retinue-probe-${process.pid}-${randomBytes(6).toString("hex")}`);
  const handles: Awaited<ReturnType<typeof open>>[] = [];
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const handle = await open(file, "wx+", 0o600);
    handles.push(handle);
    const bytes = randomBytes(probeBytes);
    await handle.writeFile(bytes);
    await handle.sync();
    const read = await handle.read(Buffer.alloc(probeBytes), 0, probeBytes, 0);
    if (read.bytesRead !== probeBytes) throw new Error("what was written cannot be read back");
    while (handles.length < probeFiles) handles.push(await open(file, "r"));
  } catch (error) {
    throw fileError("write in", folder, error);
  } finally {
    for (const handle of handles) await handle.close().catch(() => undefined);
    await rm(file, { force: true }).catch(() => undefined);
  }
}

/** The file that an error of the file system names, also where it was wrapped. */
function fileOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ("path" in error && typeof error.path === "string") return error.path;
  return fileOf(error.cause);
}

/** What a worker has for plans that need it: tools, hooks, servers and models, those of its settings files too. */
async function findAbilities(options: WorkerRuntimeOptions): Promise<readonly string[]> {
  await using runtime = createRuntime({ ...options, cwd: tmpdir(), transcripts: false });
  await using session = await runtime.open({ planOnly: true });
  const { settings } = session.discovered.settings;
  const environment = { ...(options.env ?? process.env), ...Object.fromEntries(settings.env) };
  const servers = session
    .mcpServers()
    .flatMap(({ name, status }) => (status.type === "held" ? [] : [serverNeed(name)]));
  const hasHelper = settings.plain.apiKeyHelper !== undefined;
  const anthropic = chooseAdapter({ id: "", provider: "anthropic" }, environment, hasHelper);
  const others = knownProviders().filter((name) => {
    const entry = findProvider(name, environment);
    if (entry === undefined) return false;
    // A server on this machine needs no key; its address is enough.
    const needsKey = entry.settings.some(({ required }) => required === true);
    const isNamed = entry.settings.some(({ variables }) => variables.some((key) => isSet(environment[key])));
    return needsKey ? factorySettings(entry, environment).missing.length === 0 : isNamed;
  });
  const providers = [...(anthropic.adapter === "none" ? [] : ["anthropic"]), ...others];
  const hasModel = options.model !== undefined || providers.length > 0;
  return [
    ...programFunctions(options).flatMap(functionNeeds),
    planFormat,
    workflowFormat,
    ...servers,
    ...providers.map(providerNeed),
    providerNeed("offline"),
    ...(hasModel ? [anyModelNeed] : []),
  ];
}

/** The functions that the program of this worker brings. */
function programFunctions(options: WorkerRuntimeOptions): readonly ProgramFunction[] {
  const { model, hooks = [], mcpServers = {}, canUseTool, host } = options;
  return [
    ...toolNames(options.tools).map((name) => ({ kind: "tool", name }) as const),
    ...hooks.map(({ event, name }) => ({ kind: "hook", name: name ?? event }) as const),
    ...Object.keys(mcpServers).map((name) => ({ kind: "server", name }) as const),
    ...(canUseTool === undefined ? [] : [{ kind: "canUseTool", name: "canUseTool" } as const]),
    ...(host?.ask === undefined ? [] : [{ kind: "ask", name: "host.ask" } as const]),
    ...(typeof model === "object" && "facts" in model
      ? [{ kind: "model", name: model.facts.id } as const]
      : []),
  ];
}

/** The tools that the program itself brings; names only say which built-in ones exist. */
function toolNames(tools: WorkerRuntimeOptions["tools"] = []): readonly string[] {
  if (!Array.isArray(tools)) return Object.keys(tools);
  return tools.flatMap((tool: string | { readonly name: string }) =>
    typeof tool === "string" ? [] : [tool.name],
  );
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value.trim() !== "";
}
