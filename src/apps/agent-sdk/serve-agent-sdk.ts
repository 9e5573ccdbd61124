import { randomUUID } from "node:crypto";
import type { RunEvent } from "../../conversation/run-event.ts";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { isRetinueError, RetinueError } from "../../foundation/retinue-error.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { SessionOptions } from "../../runtime/runtime-options.ts";
import { writeLocalRules } from "../../settings/write-local-rules.ts";
import { checkSessionOptions } from "../cli/check-session-options.ts";
import { exitCodeOf } from "../cli/end-signal.ts";
import { type PrintOptions, readPrintOptions } from "../cli/print/print-options.ts";
import { refuseOffline } from "../cli/print/refuse-offline.ts";
import type { CommandContext } from "../cli/session-options.ts";
import { type AgentSdkOptions, checkAgentSdkOptions } from "./agent-sdk-options.ts";
import { createControlChannel } from "./control-channel.ts";
import { type Choices, createControlRequests, modeStatus } from "./control-requests.ts";
import { createFileCheckpoints } from "./file-checkpoints.ts";
import { createHostHooks, type HookReports } from "./host-hooks.ts";
import { createHostPermission } from "./host-permission.ts";
import { createHostQuestions } from "./host-questions.ts";
import { describeAgents, describeCommands, describeModels, followedVersion } from "./init-message.ts";
import { createLivePolicy } from "./live-policy.ts";
import { createObservedHooks, type ObservedHooks } from "./observed-hooks.ts";
import { createPlanModeTools } from "./plan-mode-tools.ts";
import { createPromptQueue, readPromptMessage } from "./prompt-queue.ts";
import { type Initialize, noInitialize, readInitialize } from "./read-initialize.ts";
import { createSdkHost, informational, keySource } from "./sdk-host.ts";
import { type OpenSdkSession, openSdkSession } from "./session-adapter.ts";

const defaultHookTimeoutMs = 60_000;

/** Serves a host over stdin and stdout by the control protocol of the Agent SDK, until its input ends. */
export async function serveAgentSdk(
  context: CommandContext,
  options: PrintOptions & AgentSdkOptions,
): Promise<number> {
  const { host: cli } = context;
  checkSessionOptions(context.session, cli.cwd);
  const request = readPrintOptions(options, { words: [], cwd: cli.cwd, session: context.session });
  const extra = checkAgentSdkOptions(options, { isHosted: true });
  for (const note of extra.notes) cli.stderr.write(`retinue: ${note}\n`);
  const startedAt = Date.now();
  const channel = createControlChannel((line) => cli.stdout.write(line));
  const queue = createPromptQueue();
  const lineIds = new WeakMap<RunEvent, readonly string[]>();
  const stop = new AbortController();
  const contexts: string[] = [];
  let initialize: Initialize = noInitialize;
  let startFailure: unknown;
  let isInitialized = false;
  let promptId: string | undefined;
  let lastEvent: RunEvent | undefined;
  let questionCall: string | undefined;
  let observed: ObservedHooks | undefined;
  const checkpoints =
    cli.environment["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"] === "true"
      ? createFileCheckpoints()
      : undefined;
  const choices: Choices = {
    model: undefined,
    effort: extra.thinkingTokens,
    servers: { configured: {}, inProcess: [], disabled: new Set() },
    perTaskStopAffordance: false,
  };

  const current = (): OpenSdkSession | undefined => host.current();
  const sessionId = (): string => current()?.session.plan.sessionId ?? "";
  const warn = (text: string): void => host.emit(informational(text, sessionId()));
  const policy = createLivePolicy({
    directory: cli.cwd,
    mayBypass: () =>
      options.allowDangerouslySkipPermissions === true ||
      options.dangerouslySkipPermissions === true ||
      options.permissionMode === "bypassPermissions",
    initialMode: () => current()?.initialMode ?? "default",
    modeChanged: (mode) =>
      host.emit({ ...modeStatus(mode), type: "system", uuid: randomUUID(), session_id: sessionId() }),
    async save(list, rules) {
      const root = current()?.session.discovered.paths.projectRoot ?? cli.cwd;
      const outcome = await writeLocalRules(root, { list, rules });
      if (outcome.type !== "saved") throw new RetinueError("rules-not-saved", outcome.why);
    },
  });
  const reports: HookReports = {
    warn,
    ...(options.includeHookEvents === true
      ? hookEventReports((message) => host.emit(message), sessionId)
      : {}),
  };
  const asksHost = options.permissionPromptTool === "stdio" && options.permissionPrompts !== "none";
  const waiting = (isWaiting: boolean): void => host.setState(isWaiting ? "requires_action" : "running");
  const permission = createHostPermission({
    channel,
    policy,
    mainAgentId: () => current()?.session.plan.agent.id ?? "",
    waiting,
    warn,
  });

  function situation(): JsonRecord {
    const session = current()?.session;
    if (session === undefined) return {};
    const { plan, discovered } = session;
    return {
      session_id: plan.sessionId,
      transcript_path: sessionFiles(discovered.paths.transcripts, plan.sessionId).transcript,
      cwd: plan.directory,
      permission_mode: policy.mode() ?? plan.policy.mode,
    };
  }

  /** Prompts that came meanwhile are read between two model calls, never in front of the first or behind the last. */
  function takeMessages() {
    const isBetween = lastEvent?.type === "user-added" && lastEvent.origin === "tool-results";
    const notes = contexts
      .splice(0)
      .map((text) => ({ content: [{ type: "text", text } as const], uuid: undefined }));
    const prompts = isBetween ? queue.takeForTurn() : [];
    if (prompts.length > 0) promptId = prompts.at(-1)?.uuid;
    if (request.replay) for (const { line, uuid } of prompts) replay(line, uuid);
    return [...notes, ...prompts].map(({ content }) => ({ role: "user", content }) as const);
  }

  function replay(line: JsonRecord, uuid: string | undefined): void {
    host.emit({ ...line, type: "user", session_id: sessionId(), uuid: uuid ?? randomUUID(), isReplay: true });
  }

  function mirror(lines: readonly string[]): void {
    const { transcript_path: filePath } = situation();
    channel.send({ type: "transcript_mirror", filePath, entries: lines.map((line) => JSON.parse(line)) });
  }

  async function openSession(fresh: boolean): Promise<OpenSdkSession> {
    if (startFailure !== undefined) throw startFailure;
    const before = current();
    const opened = await openSdkSession(
      {
        context,
        options,
        session: nextOptions(request.session, before, fresh),
        initialize,
        hooks: createHostHooks(
          before === undefined
            ? initialize.hooks
            : initialize.hooks.filter(({ event }) => event !== "SessionStart"),
          channel,
          reports,
        ),
        canUseTool: asksHost ? permission : undefined,
        ask: asksHost
          ? createHostQuestions({ channel, waiting, callId: () => questionCall ?? "" })
          : undefined,
        live: {
          policy: policy.apply,
          takeMessages,
          model: () => choices.model,
          effort: () => choices.effort,
          fallbackModel: options.fallbackModel,
          waitsForChildren: false,
          ...(initialize.toolAliases === undefined ? {} : { toolAliases: initialize.toolAliases }),
          transcript: {
            title: initialize.title,
            uuidFor(event) {
              if (event.type !== "user-added" || !["prompt", "message"].includes(event.origin))
                return undefined;
              const id = promptId;
              promptId = undefined;
              return id;
            },
            appended: options.sessionMirror === true ? mirror : undefined,
            written: (event, uuids) => void lineIds.set(event, uuids),
          },
        },
        tools: asksHost
          ? createPlanModeTools({
              channel,
              policy,
              waiting,
              before: () => current()?.initialMode ?? "default",
            })
          : [],
        notice: (text) => cli.stderr.write(`retinue: ${text}\n`),
        channel,
        settled: queue.ring,
        servers: choices.servers,
      },
      stop.signal,
    );
    return opened;
  }

  const host = createSdkHost({
    host: cli,
    channel,
    queue,
    open: openSession,
    lineIds: (event) => lineIds.get(event) ?? [],
    mode: policy.mode,
    model: () => choices.model,
    partial: request.partial,
    replay: request.replay,
    childText: () => request.childText || initialize.forwardSubagentText,
    observed: () => {
      observed ??= createObservedHooks({
        hooks: initialize.hooks,
        channel,
        reports,
        situation,
        addContext: (text) => void contexts.push(text),
        defaultTimeoutMs: defaultHookTimeoutMs,
      });
      return observed;
    },
    async reached(event) {
      lastEvent = event;
      if (event?.type === "call-started")
        await checkpoints?.keep(event.call, current()?.session.plan.directory ?? cli.cwd);
      if (event?.type === "call-started" && event.call.name === "AskUserQuestion")
        questionCall = event.call.id;
    },
    begins: (prompt) => {
      promptId = prompt.uuid;
      checkpoints?.begin(promptId);
    },
    refuse: (session) =>
      refuseOffline(session, { model: options.model, isForProgram: true, environment: cli.environment }),
  });

  const handlers = createControlRequests({ host, queue, policy, choices, checkpoints, startedAt });

  async function begin(given: JsonRecord): Promise<JsonRecord> {
    if (isInitialized) throw new RetinueError("initialized", "The session is initialized already.");
    isInitialized = true;
    try {
      initialize = readInitialize(given);
      choices.perTaskStopAffordance = initialize.perTaskStopAffordance;
      choices.servers = { ...choices.servers, inProcess: initialize.servers };
      for (const { name, policies } of initialize.servers)
        for (const { tool, behavior } of policies)
          await policy.update({ type: "addRules", behavior, rules: [{ toolName: `mcp__${name}__${tool}` }] });
      const opened = await host.ready();
      return describeSession(opened, initialize, keySource(opened, cli.environment));
    } catch (error) {
      startFailure = error;
      queueMicrotask(() => stop.abort(error));
      throw error;
    }
  }

  const forget = cli.onInterrupt((reason) => stop.abort(reason));
  const { closed } = cli.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  const reading = channel
    .read(cli.stdin.lines({ signal }), {
      request(subtype, given, requestSignal) {
        if (subtype === "initialize") return begin(given);
        const handler = handlers.get(subtype);
        if (handler === undefined)
          throw new RetinueError("unknown-request", `Unsupported control request subtype: ${subtype}`);
        return Promise.resolve(handler(given, requestSignal));
      },
      user(line) {
        const prompt = readPromptMessage(line);
        if (typeof prompt === "string") stop.abort(new RetinueError("bad-input", prompt));
        else queue.add(prompt);
      },
      invalid: (reason) => stop.abort(new RetinueError("bad-input", reason)),
    })
    .finally(() => host.inputEnded());
  try {
    const code = await host.run(signal);
    if (!stop.signal.aborted) return code;
    if (isRetinueError(stop.signal.reason) && stop.signal.reason.code === "interrupted")
      return exitCodeOf(stop.signal.reason);
    throw stop.signal.reason;
  } finally {
    forget();
    stop.abort(new RetinueError("session-closed", "The session is over."));
    await reading.catch(() => undefined);
  }
}

/** A session that takes the place of another goes on with its conversation. */
function nextOptions(
  options: SessionOptions,
  before: OpenSdkSession | undefined,
  fresh: boolean,
): SessionOptions {
  if (before === undefined) return options;
  const { resume: _resume, continue: _continue, forkSession: _fork, sessionId: _id, ...rest } = options;
  if (fresh) return rest;
  const { sessionId } = before.session.plan;
  return before.session.messages().length === 0 ? { ...rest, sessionId } : { ...rest, resume: sessionId };
}

function describeSession(
  { session }: OpenSdkSession,
  { hasHooks, plugins }: Initialize,
  apiKeySource: string,
): JsonRecord {
  const apiProvider = session.model.provider === "anthropic" ? "firstParty" : "gateway";
  return {
    commands: describeCommands(session.skills),
    agents: describeAgents(session),
    models: describeModels(session),
    account: { apiKeySource, tokenSource: "none", apiProvider },
    output_style: "default",
    available_output_styles: ["default"],
    pid: process.pid,
    ...(hasHooks ? { hooks_applied: true } : {}),
    hook_on_failure_supported: true,
    ...(plugins.length === 0 ? {} : { plugins_applied: true }),
    claude_code_version: followedVersion,
  };
}

function hookEventReports(
  emit: (message: JsonRecord & { readonly type: string }) => void,
  sessionId: () => string,
): Pick<HookReports, "started" | "ended"> {
  const about = (id: string, event: string) => ({
    hook_id: id,
    hook_name: `${event}:callback`,
    hook_event: event,
    uuid: randomUUID(),
    session_id: sessionId(),
  });
  return {
    started: ({ id, event }) => emit({ type: "system", subtype: "hook_started", ...about(id, event) }),
    ended: ({ id, event, output, outcome }) =>
      emit({
        type: "system",
        subtype: "hook_response",
        ...about(id, event),
        output,
        stdout: output,
        stderr: "",
        outcome,
      }),
  };
}
