// @io

import { existsSync } from "node:fs";
import { mkdir, rm, rmdir, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { startProcess } from "@retinue/base/foundation/start-process.ts";
import { mayWiden } from "@retinue/config/agents/agent-source.ts";
import { agentHooks, type SourcedHookRule } from "@retinue/config/hooks/hook-rule.ts";
import { loadPluginHooks } from "@retinue/config/plugins/load-plugin.ts";
import type { MergedSettings } from "@retinue/config/settings/settings-layer.ts";
import { withFacts } from "@retinue/gate/call-facts.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { matchesCall } from "@retinue/gate/rules/matches-call.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import type { UserMessage } from "../../conversation/message.ts";
import type { Receipt } from "../../conversation/receipt.ts";
import type { SpentRecord } from "../../conversation/spent-record.ts";
import type { EventOutcome } from "../../hooks/aggregate.ts";
import {
  createHookRunner,
  type FireOptions,
  type HookRunner,
  type HookRunnerOptions,
  type LateAnswer,
} from "../../hooks/hook-runner.ts";
import { outputFolder, sessionFiles } from "../../journal/session-files.ts";
import type { ReportedEvent } from "../../journal/transcript-writer.ts";
import type { CallRequest, CompactionPort, LoopPorts } from "../../loop/loop-ports.ts";
import type { Model } from "../../models/model.ts";
import type { AgentPlan, PlannedDefinition } from "../../planning/agent-plan.ts";
import { createRuleGrants } from "../agent/create-authorize.ts";
import type { Capability } from "../agent/open-agent.ts";
import { chooseModel } from "../choose-model.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { CallServer } from "../servers/session-servers.ts";
import {
  type CallHookDependencies,
  type CallHooks,
  createCallHooks,
  createTeamHooks,
  type TeamHooks,
} from "./call-hooks.ts";
import { createAskModel, type HookTools } from "./create-ask-model.ts";
import {
  createPromptHooks,
  feedbackMessage,
  type PromptHookDependencies,
  type PromptHooks,
  withContext,
} from "./prompt-hooks.ts";

interface CompactionHookDependencies
  extends Pick<CallHookDependencies, "runner" | "situation" | "report" | "wantStop"> {
  readonly model: string;
  /** A compaction begins the main agent's session anew; a child has none. */
  readonly isChild: boolean;
}

type CompactionHooks = Required<Pick<CompactionPort, "before" | "after">>;

/** The hooks around a compaction: one may hold it up or add to its instructions, one gets the summary. */
function createCompactionHooks(dependencies: CompactionHookDependencies): CompactionHooks {
  const { runner, situation, report, model, isChild, wantStop } = dependencies;
  return {
    async before({ trigger, instructions }, { signal }) {
      if (!runner.receives("PreCompact")) return { type: "granted" };
      const payload = { trigger, instructions: instructions ?? null };
      const outcome = await runner.fire("PreCompact", payload, await situation(signal));
      report(outcome);
      if (outcome.stop !== undefined) wantStop();
      if (outcome.blocked || outcome.stop !== undefined)
        return { type: "blocked", reason: outcome.reason || outcome.stop || "a hook blocked it" };
      return { type: "granted", instructions: outcome.context };
    },
    async after({ trigger, summary }, { signal }) {
      if (runner.receives("PostCompact"))
        report(await runner.fire("PostCompact", { trigger, summary }, await situation(signal)));
      if (isChild || !runner.receives("SessionStart")) return undefined;
      const payload = { source: "compact", model };
      const outcome = await runner.fire("SessionStart", payload, await situation(signal));
      report(outcome);
      return outcome.context === undefined
        ? undefined
        : { role: "user", content: withContext([], [outcome.context]) };
    },
  };
}

export interface SessionHooks extends CallHooks, PromptHooks {
  /** Messages of hooks that run beside the work. */
  readonly takeMessages: LoopPorts["takeMessages"];
  /** Whether a hook has said since the last question that the run must end. */
  readonly takeStop: () => boolean;
  /** Notifies hooks that a person is about to be asked; does not wait for them. */
  readonly notify: (request: CallRequest) => void;
  /** Takes in the hooks of a skill. */
  readonly add: (rules: readonly SourcedHookRule[]) => void;
  readonly compaction: CompactionHooks;
  /** Notifies hooks of a team's events. */
  readonly team: TeamHooks;
  /** The last hooks run; then nothing of any hook is left. */
  readonly end: PromptHooks["end"];
}

/** What hooks add to an agent: they see its calls, its prompts and its end, and may change or stop each. */
export function hooksCapability(hooks: SessionHooks): Capability {
  return {
    rights: hooks.rights,
    beforeCall: hooks.wrapAuthorize,
    beforeAsk: hooks.beforeAsk,
    onAsk: hooks.notify,
    afterCall: hooks.afterCall,
    prepare: hooks.prepare,
    messages: hooks.takeMessages,
    beforeEnd: hooks.beforeEnd,
    takeStop: hooks.takeStop,
    dispose: hooks.end,
  };
}

interface SessionHookFacts {
  readonly runtime: RuntimeContext;
  readonly plan: AgentPlan;
  readonly model: Model;
  readonly definition: PlannedDefinition | undefined;
  readonly source: "startup" | "resume" | "fork";
  /** Set for a main agent. */
  readonly runningTasks?: PromptHookDependencies["runningTasks"];
  readonly directory: () => string;
  /** Set for a child: its start and end are reported instead of the session's. */
  readonly child?: ChildHookDependencies["child"];
  readonly looking: HookTools;
  /** Around a model that a hook asks: its calls are the agent's. */
  readonly pay?: (model: Model) => Model;
  /** Calls a tool of a connected MCP server, for hooks of kind `mcp_tool`. */
  readonly callServer?: CallServer;
  /** Takes what hooks of the session's start set for later commands. */
  readonly environment?: Map<string, string>;
  /** Skills may bring hooks later, so there must be a place for them. */
  readonly mayGrow?: boolean;
}

/** Finds every hook that this session has to respect; undefined where there is none. */
export async function openSessionHooks(facts: SessionHookFacts): Promise<SessionHooks | undefined> {
  const { runtime, plan, definition } = facts;
  const { discovered } = runtime;
  const { settings } = discovered.settings;
  const notify = createReport(runtime.notice);
  const plugins =
    discovered.plugins.length === 0
      ? { hooks: [], diagnostics: [] }
      : await loadPluginHooks(discovered.plugins, discovered.paths.plugins.data);
  for (const { file, message } of plugins.diagnostics) notify(`${file ?? "A plugin"}: ${message}`);
  const rules = collectHookRules({
    settings,
    plugins: plugins.hooks,
    definition,
    agentId: plan.agent.id,
    trusted: runtime.trusted,
    isSubagent: facts.child !== undefined,
  });
  if (rules.length === 0 && runtime.hooks.length === 0 && facts.mayGrow !== true) return undefined;
  const mail: UserMessage[] = [];
  const runner = createRunner(facts, rules, { mail, notify });
  let hasConditions = rules.some(isConditional);
  const situation = async (signal: AbortSignal, request?: CallRequest): Promise<FireOptions> => ({
    signal,
    cwd: facts.directory(),
    permissionMode: plan.policy.mode,
    agentId: facts.child?.agentId,
    agentType: definition === undefined ? undefined : (facts.child?.agentType ?? definition.name),
    meetsCondition: request === undefined ? undefined : await conditions(request, facts, hasConditions),
  });
  const report = (outcome: { systemMessages: readonly string[]; failures: readonly string[] }): void => {
    for (const text of [...outcome.systemMessages, ...outcome.failures]) notify(text);
  };
  const add = (added: readonly SourcedHookRule[]): void => {
    hasConditions ||= added.some(isConditional);
    runner.add(added);
  };
  return { ...assemble({ facts, runner, situation, report, mail }), add };
}

/** The runner of an agent's hooks; for the main agent, with the file in which its start may leave variables. */
function createRunner(
  facts: SessionHookFacts,
  rules: readonly SourcedHookRule[],
  { mail, notify }: { readonly mail: UserMessage[]; readonly notify: (text: string) => void },
): HookRunner {
  const { runtime, plan, environment } = facts;
  const { discovered, observer } = runtime;
  const { settings } = discovered.settings;
  const files = sessionFiles(discovered.paths.transcripts, plan.sessionId);
  const { allowedHttpHookUrls, httpHookAllowedEnvVars } = settings.plain;
  const environmentFile = join(runtime.scratch ?? files.directory, "session-environment.sh");
  const created = createHookRunner({
    rules,
    functions: runtime.hooks,
    session: { sessionId: plan.sessionId, transcript: files.transcript },
    projectDirectory: discovered.paths.projectRoot,
    environment: runtime.environment,
    environmentFile: environment === undefined ? undefined : environmentFile,
    http: {
      allowedUrls: allowedHttpHookUrls,
      allowedVariables: httpHookAllowedEnvVars,
    },
    ask: createAskModel({
      plan,
      modelFor: (name) => modelFor(facts, name),
      directory: facts.directory,
      now: runtime.now,
      transcripts: [files.transcript, ...(facts.child === undefined ? [] : [facts.child.transcript])],
      looking: facts.looking,
    }),
    callTool: facts.callServer === undefined ? undefined : askServer(facts.callServer),
    warnOnly: settings.extra.get("failingHooks") === "warn",
    outputDirectory: outputFolder(runtime, plan.sessionId),
    newId: runtime.ids.uuid,
    onLate: (late) => takeLate(late, mail, notify),
    watch: runtime.live?.watchHook,
    measure:
      observer === undefined
        ? undefined
        : <Outcome>(event: string, run: () => Promise<Outcome>) => observer.hook(plan, event, run),
  });
  if (environment === undefined) return created;
  return withEnvironmentFile(created, {
    file: environmentFile,
    environment: () => ({ ...runtime.environment, ...Object.fromEntries(environment) }),
    directory: discovered.paths.cwd,
    take: (variables) => {
      for (const [name, value] of variables) environment.set(name, value);
    },
    report: notify,
  });
}

function isConditional({ hook }: SourcedHookRule): boolean {
  return hook.handler.if !== undefined;
}

type Parts = Pick<Parameters<typeof createCallHooks>[0], "runner" | "situation" | "report"> & {
  readonly facts: SessionHookFacts;
  readonly mail: UserMessage[];
};

function assemble({ facts, runner, situation, report, mail }: Parts): Omit<SessionHooks, "add"> {
  const reporting = new Set<Promise<unknown>>();
  let isStopWanted = false;
  const wantStop = (): void => {
    isStopWanted = true;
  };
  const maxRounds = stopRounds(facts.runtime.environment["CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"]);
  const common = { runner, situation, report, maxRounds };
  const prompts =
    facts.child === undefined
      ? createPromptHooks({
          ...common,
          source: facts.source,
          model: facts.model.facts.id,
          runningTasks: facts.runningTasks,
        })
      : createChildHooks({ ...common, child: facts.child });
  return {
    ...createCallHooks({
      runner,
      situation,
      report,
      wantStop,
      grants: createRuleGrants(facts.plan.directory, "a hook"),
    }),
    ...prompts,
    compaction: createCompactionHooks({
      ...common,
      wantStop,
      model: facts.model.facts.id,
      isChild: facts.child !== undefined,
    }),
    team: createTeamHooks(common),
    takeMessages: () => mail.splice(0),
    takeStop() {
      const wanted = isStopWanted;
      isStopWanted = false;
      return wanted;
    },
    notify({ tool }) {
      if (!runner.receives("Notification")) return;
      const message = `Permission is needed to use ${tool.name}.`;
      const reported = situation(new AbortController().signal)
        .then((options) => runner.fire("Notification", { message, kind: "permission_prompt" }, options))
        .then(report, () => undefined)
        .finally(() => reporting.delete(reported));
      reporting.add(reported);
    },
    async end(stopped) {
      try {
        await prompts.end(stopped);
      } finally {
        await runner[Symbol.asyncDispose]();
        await Promise.allSettled(reporting);
      }
    },
  };
}

/** A program that fails to take a notice must not thereby decide about a call. */
function createReport(notice: RuntimeContext["notice"]): (text: string) => void {
  return (text) => {
    try {
      notice?.(text);
    } catch {
      // There is nothing left to notify.
    }
  };
}

/** 8 unless the variable is set; 0 there means without end. */
function stopRounds(written: string | undefined): number {
  if (written === undefined || !/^\d+$/.test(written.trim())) return 8;
  return Number(written) === 0 ? Number.POSITIVE_INFINITY : Number(written);
}

function takeLate(late: LateAnswer, mail: UserMessage[], report: (text: string) => void): void {
  for (const text of [late.systemMessage, late.failure]) if (text !== undefined) report(text);
  if (late.context === undefined) return;
  const text = `<hook-feedback>\n${late.context}\n</hook-feedback>`;
  mail.push({ role: "user", content: [{ type: "text", text }] });
}

/** A rule that cannot be read, or facts that cannot be found, mean that the hook runs. */
async function conditions(
  { tool, input }: CallRequest,
  { plan, directory }: SessionHookFacts,
  areNeeded: boolean,
): Promise<(rule: string) => boolean> {
  if (!areNeeded) return () => true;
  const paths = tool.pathsOf?.(input, directory(), plan.policy.home) ?? [];
  const mcp = tool.mcp ?? tool.mcpOf?.(input);
  const call = { tool: tool.name, effect: tool.effect, input, paths, mcp };
  const gathered = await gatherCallFacts(call, { policy: plan.policy, directory: directory() });
  const request = withFacts(gathered);
  return (text) => {
    const reading = parseRule(text);
    if (reading.type === "invalid") return true;
    const rule = { rule: reading.rule, anchor: plan.directory };
    return matchesCall(rule, request, { use: "restrict", policy: plan.policy });
  };
}

/** What such a tool answers is read like the output of a command; an error of it is a hook that failed. */
function askServer(call: CallServer): NonNullable<HookRunnerOptions["callTool"]> {
  return async ({ server, tool, input }, { signal }) => {
    const { text, isError } = await call(server, tool, isRecord(input) ? input : {}, { signal });
    if (isError) throw new RetinueError("mcp-hook-failed", text);
    return text;
  };
}

/** The model that a hook names, else the agent's; its calls are the agent's. */
async function modelFor(
  { runtime, model, pay = (unpaid) => unpaid }: SessionHookFacts,
  name: string | undefined,
): Promise<Model> {
  return pay(name === undefined ? model : (await chooseModel(runtime, { model: name }, undefined)).model);
}

interface HookSources {
  /** Already without what comes from an untrusted folder's files. */
  readonly settings: Pick<MergedSettings, "hooks" | "plain" | "sources">;
  readonly plugins: readonly SourcedHookRule[];
  readonly definition?: Pick<PlannedDefinition, "name" | "hooks" | "source">;
  readonly agentId: string;
  readonly trusted: boolean;
  readonly isSubagent?: boolean;
}

/** All hooks that may fire for an agent: settings, plugins, its own definition. */
export function collectHookRules(sources: HookSources): readonly SourcedHookRule[] {
  const { settings, plugins, definition, agentId, trusted } = sources;
  const managedOnly = settings.plain.allowManagedHooksOnly === true;
  const isOff = settings.plain.disableAllHooks === true;
  const offByManager = isOff && settings.sources.get("disableAllHooks")?.scope === "managed";
  if (offByManager) return [];
  const written = settings.hooks
    // A person can switch their own hooks off, but not those of their organisation.
    .filter(({ source }) => !isOff || source.scope === "managed")
    .map(({ hook, source }): SourcedHookRule => {
      const file = source.file === undefined ? {} : { file: source.file };
      return { hook, origin: { type: "settings", ...file } };
    });
  if (isOff || managedOnly) return written;
  const mayRun = definition?.hooks !== undefined && mayWiden(definition.source, trusted);
  const own = mayRun
    ? agentHooks(definition.hooks, {
        id: agentId,
        name: definition.name,
        isSubagent: sources.isSubagent === true,
      })
    : [];
  return [...written, ...plugins, ...own];
}

interface ChildHookDependencies extends Pick<CallHookDependencies, "runner" | "situation" | "report"> {
  readonly child: {
    readonly agentId: string;
    readonly agentType: string;
    readonly transcript: string;
    /** Records what hooks are about to be notified of, before they are. */
    readonly reported?: (event: ReportedEvent) => Promise<void>;
    /** What the runtime vouches for, as it is now. */
    readonly receipt?: (text?: string) => Receipt;
    /** What it has taken so far. */
    readonly spent?: () => SpentRecord | undefined;
    /** It is over already, so nothing makes it continue. */
    readonly isOver?: boolean;
  };
  readonly maxRounds: number;
}

/** The hooks around a child: its start may add context, its end may be refused; each start is followed by one end. */
function createChildHooks({
  runner,
  situation,
  report,
  child,
  maxRounds,
}: ChildHookDependencies): PromptHooks {
  const { agentId, agentType, transcript: agentTranscript } = child;
  let rounds = 0;
  let isOpen = false;

  async function stop(lastMessage: string | undefined, signal: AbortSignal) {
    isOpen = false;
    await child.reported?.("SubagentStop");
    const payload = {
      agentId,
      agentType,
      agentTranscript,
      isRepeated: rounds > 0,
      lastMessage,
      receipt: child.receipt?.(lastMessage),
      spent: child.spent?.(),
    };
    const outcome = await runner.fire("SubagentStop", payload, await situation(signal));
    report(outcome);
    return outcome;
  }

  return {
    async prepare(content, signal) {
      // A child that was stopped before it began has no start, and then no stop either.
      signal.throwIfAborted();
      isOpen = true;
      if (runner.receives("SubagentStart") || runner.receives("SubagentStop"))
        await child.reported?.("SubagentStart");
      if (!runner.receives("SubagentStart")) return { type: "ready", content };
      const outcome = await withLastWord(signal, async (own) =>
        runner.fire("SubagentStart", { agentId, agentType }, await situation(own)),
      );
      report(outcome);
      const { context } = outcome;
      return { type: "ready", content: context === undefined ? content : withContext(content, [context]) };
    },
    async beforeEnd(text, { signal }) {
      if (!runner.receives("SubagentStop")) return undefined;
      // Also where the child is stopped meanwhile: hooks that were notified of its start are notified of its end.
      const outcome = await withLastWord(signal, (own) => stop(text, own));
      const reason = reasonOf(outcome);
      if (reason === "" || outcome.stop !== undefined) return undefined;
      if (child.isOver === true || rounds >= maxRounds) return undefined;
      rounds += 1;
      isOpen = true;
      await child.reported?.("goes-on");
      return feedbackMessage(reason);
    },
    async end(stopped) {
      if (!isOpen || !runner.receives("SubagentStop")) return;
      await withLastWord(stopped, (signal) => stop(undefined, signal));
    },
  };
}

function reasonOf({ blocked, reason, context }: EventOutcome): string {
  return [blocked ? reason : undefined, context]
    .filter((part) => part !== undefined && part !== "")
    .join("\n");
}

/** How long hooks may take over the start or end of a child that was stopped; what stopped it is waiting. */
const lastWordMs = 1500;

async function withLastWord<Outcome>(
  stopped: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<Outcome>,
): Promise<Outcome> {
  const limit = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const begin = (): void => {
    timer = setTimeout(() => limit.abort(), lastWordMs);
  };
  if (stopped?.aborted === true) begin();
  else stopped?.addEventListener("abort", begin, { once: true });
  try {
    return await work(limit.signal);
  } finally {
    stopped?.removeEventListener("abort", begin);
    clearTimeout(timer);
  }
}

interface EnvironmentFileOptions {
  readonly file: string;
  readonly environment: () => Readonly<Record<string, string | undefined>>;
  readonly directory: string;
  /** Receives what the file has set. */
  readonly take: (variables: ReadonlyMap<string, string>) => void;
  readonly report: (text: string) => void;
}

/** The same hooks, whose `SessionStart` may leave variables for later commands in a file, written as a shell reads them. */
function withEnvironmentFile(runner: HookRunner, options: EnvironmentFileOptions): HookRunner {
  const complain = (error: unknown): void => {
    const why = error instanceof Error ? error.message : String(error);
    options.report(`CLAUDE_ENV_FILE of SessionStart hooks could not be used: ${why}`);
  };
  return {
    ...runner,
    async fire(event, payload, fired) {
      if (event !== "SessionStart" || !runner.receives(event)) return runner.fire(event, payload, fired);
      await prepare(options.file).catch(complain);
      const outcome = await runner.fire(event, payload, fired);
      await takeVariables(options, fired.signal).catch(complain);
      return outcome;
    },
  };
}

/** Made anew, so that nothing of an earlier run or of another process is taken. */
async function prepare(file: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  await rm(file, { force: true });
  await writeFile(file, "", { mode: 0o600, flag: "wx" });
}

async function takeVariables(options: EnvironmentFileOptions, signal: AbortSignal): Promise<void> {
  const { file } = options;
  try {
    const { size } = await stat(file);
    if (size > largestFile)
      throw new RetinueError("environment-file-large", `it has more than ${largestFile} bytes`);
    if (size > 0) options.take(await readVariables(options, signal));
  } finally {
    await rm(file, { force: true });
    // Where nothing else is kept of the session, nothing of this stays either.
    await rmdir(dirname(file)).catch(() => undefined);
  }
}

const largestFile = 256 * 1024;
const limitMs = 10_000;
const bashes = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash"];

/** A shell reads the file, so that it may build on what is set: `export PATH="$PATH:./bin"`. */
async function readVariables(
  { file, environment, directory }: EnvironmentFileOptions,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const bash = bashes.find((path) => existsSync(path));
  if (bash === undefined) throw new RetinueError("no-bash", "it needs bash, which is not installed.");
  const before = new Map(
    Object.entries(environment()).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
  const chunks: Buffer[] = [];
  const running = await startProcess({
    file: bash,
    arguments: [
      "--norc",
      "--noprofile",
      "-c",
      'set -a; . "$1" >/dev/null 2>&1; exec /usr/bin/env -0',
      "bash",
      file,
    ],
    directory,
    environment: Object.fromEntries(before),
    signal,
    timeLimitMs: limitMs,
    onOutput: (chunk, stream) => void (stream === "stdout" && chunks.push(chunk)),
  });
  const { exitCode, timedOut, notStarted } = await running.ended;
  if (timedOut)
    throw new RetinueError("environment-file-slow", `reading it took more than ${limitMs / 1000} s.`);
  if (exitCode !== 0)
    throw new RetinueError("environment-file-failed", notStarted ?? "the shell could not read it.");
  return new Map([...parse(chunks)].filter(([name, value]) => !isShells(name) && before.get(name) !== value));
}

function* parse(chunks: readonly Buffer[]): Generator<readonly [string, string]> {
  for (const entry of Buffer.concat(chunks).toString("utf8").split("\0")) {
    const at = entry.indexOf("=");
    if (at > 0) yield [entry.slice(0, at), entry.slice(at + 1)];
  }
}

/** What a shell sets by itself. */
function isShells(name: string): boolean {
  return /^(?:_|PWD|OLDPWD|SHLVL|BASH.*|PPID|UID|EUID|SHELLOPTS)$/.test(name);
}
