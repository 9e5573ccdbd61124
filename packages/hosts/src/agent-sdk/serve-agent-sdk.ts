import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { checkFlags } from "../shared/flags.ts";
import { keySourceOf } from "../shared/open-print-session.ts";
import type { ControlHandlers } from "./control-channel.ts";
import { neverCalled } from "./host-hooks.ts";
import { describeAgents, describeCommands, describeModels, followedVersion } from "./init-message.ts";
import type { OpenSdkSession } from "./open-sdk-session.ts";
import { announcePrompt, readPromptMessage } from "./queued-prompt.ts";
import { readInitialize } from "./read-initialize.ts";
import { createControlRequests } from "./requests/create-control-requests.ts";
import { createSessionTotals, resultMessage } from "./result-message.ts";
import { endingOf } from "./run-turn.ts";
import { createSdkConnection, type SdkConnection, type ServeOptions } from "./sdk-connection.ts";
import type { SdkMessage } from "./sdk-messages.ts";

/** Serves a host over stdin and stdout by the control protocol of the Agent SDK, until its input ends. */
export async function serveAgentSdk(context: CommandContext, options: ServeOptions): Promise<number> {
  const { host: cli } = context;
  checkFlags(context.session, cli.cwd);
  const write = (line: string): void => cli.stdout.write(line);
  const connection = createSdkConnection(context, options, { isHosted: true, speaks: true, write });
  const { stop, host, channel } = connection;
  const forget = cli.onInterrupt((reason) => stop.abort(reason));
  const { closed } = cli.stdout;
  const signal = closed === undefined ? stop.signal : AbortSignal.any([stop.signal, closed]);
  const reading = channel
    .read(cli.stdin.lines({ signal }), createHandlers(connection))
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

export function createHandlers(connection: SdkConnection): ControlHandlers {
  const { stop, host } = connection;
  const handlers = createControlRequests(connection);
  const invalid = (reason: string): void => stop.abort(new RetinueError("bad-input", reason));
  return {
    request(subtype, given, { id, signal }) {
      if (subtype === "initialize") return begin(connection, given);
      const handler = handlers.get(subtype);
      if (handler === undefined)
        throw new RetinueError("unknown-request", `Unsupported control request subtype: ${subtype}`);
      return Promise.resolve(handler(given, signal, id));
    },
    user(line) {
      const prompt = readPromptMessage(line);
      if (typeof prompt === "string") return invalid(prompt);
      if (prompt.uuid !== undefined) announcePrompt(connection, prompt.uuid, "queued");
      host.add(prompt);
    },
    invalid,
  };
}

/** Everything in `initialize` is in force before the first prompt is started; what cannot be ends the connection. */
async function begin(connection: SdkConnection, given: JsonRecord): Promise<JsonRecord> {
  const { subtype: _subtype, ...members } = given;
  const written = JSON.stringify(members);
  if (connection.initialized !== undefined) {
    // A host that joins again may say the same again; what it wants otherwise would not be honoured.
    if (connection.initialized !== written)
      throw new RetinueError("initialized", "The session is already initialized, with other values.");
    const opened = await connection.host.ready();
    return describeSession(opened, connection);
  }
  connection.initialized = written;
  const { choices, policy, host, context, stop } = connection;
  try {
    const initialize = readInitialize(given);
    connection.initialize = initialize;
    connection.title = initialize.title ?? connection.title;
    for (const event of neverCalled(initialize.hooks))
      context.host.stderr.write(`retinue: callbacks for ${event} are never called here.\n`);
    choices.perTaskStopAffordance = initialize.perTaskStopAffordance;
    choices.servers = { ...choices.servers, inProcess: initialize.servers };
    for (const { name, policies } of initialize.servers)
      for (const { tool, behavior } of policies)
        await policy.update({ type: "addRules", behavior, rules: [{ toolName: `mcp__${name}__${tool}` }] });
    const opened = await host.ready();
    return describeSession(opened, connection);
  } catch (error) {
    connection.startFailure = error;
    host.emit(startFailure(error, connection.request.session.resume ?? ""));
    queueMicrotask(() => stop.abort(error));
    throw error;
  }
}

/** Programs learn from a result why nothing began. */
export function startFailure(error: unknown, sessionId: string): SdkMessage {
  const context = { sessionId, uuid: randomUUID(), totals: createSessionTotals() };
  return resultMessage(endingOf(error), {
    ...context,
    hasStarted: false,
    interrupted: false,
    inTools: false,
  });
}

function describeSession({ session }: OpenSdkSession, connection: SdkConnection): JsonRecord {
  const { initialize, serverPrompts, context } = connection;
  const { hasHooks, plugins } = initialize;
  const apiKeySource = keySourceOf(session, context.host.environment);
  const apiProvider = session.model.provider === "anthropic" ? "firstParty" : "gateway";
  return {
    commands: [...describeCommands(session.skills), ...serverPrompts.commands()],
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
