import { randomUUID } from "node:crypto";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { TreeOptions } from "@retinue/core/kernel/agent-tree.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import type { SessionPorts } from "@retinue/core/kernel/session-ports.ts";
import { sessionRecord } from "@retinue/core/kernel/session-record.ts";
import { createTaskListTools } from "@retinue/core/kernel/teams/create-task-list-tools.ts";
import type { Tool } from "../../../../src/index.ts";
import { sdkSessionOptions } from "../shared/agent-sdk-options.ts";
import { keepingHooks } from "../shared/file-checkpoints.ts";
import { createHostHooks } from "./host-hooks.ts";
import { isBlocking } from "./observed-hooks.ts";
import { type OpenSdkSession, openSdkSession } from "./open-sdk-session.ts";
import type { SdkConnection } from "./sdk-connection.ts";

/** Opens the session of a connection, or the one that takes its place; a fresh one begins a new conversation. */
export async function openSessionOf(
  connection: SdkConnection,
  fresh: boolean,
  hosting: Pick<TreeOptions, "prepare" | "tap" | "onEvent">,
): Promise<OpenSdkSession> {
  if (connection.startFailure !== undefined) throw connection.startFailure;
  const { context, options, request, initialize, channel, reports, isHosted } = connection;
  const before = connection.host.current();
  // The session begins once, however often it is opened.
  const hooks =
    before === undefined
      ? initialize.hooks
      : initialize.hooks.filter(({ event }) => event !== "SessionStart");
  connection.mcp = undefined;
  const { directory = context.host.cwd } = connection.choices;
  const opened = await openSdkSession(
    {
      context: { ...context, host: { ...context.host, cwd: directory } },
      options,
      isHosted,
      session: nextOptions({ ...request.session, ...sdkSessionOptions(options) }, before, fresh),
      initialize,
      taskBudget: connection.taskBudget,
      hooks: [
        ...createHostHooks(hooks, channel, reports),
        ...(connection.checkpoints === undefined ? [] : keepingHooks(connection.checkpoints)),
      ],
      hosting: {
        ...hosting,
        asks: { ...askedOf(options), elicitations: true },
        reads: "tool-calls",
        changesRights: connection.changesRules ? "tree" : undefined,
        policy: connection.policy,
        choices: connection.choices,
        live: liveControlsOf(connection),
        messages: () =>
          connection.hookContexts
            .splice(0)
            .map((text) => ({ role: "user", content: [{ type: "text", text }] })),
        reports: connection.commands.takeReports,
      },
      channel,
      settings: connection.choices.settings,
      folders: connection.choices.folders,
      servers: connection.choices.servers,
    },
    connection.stop.signal,
  );
  await connection.serverPrompts.load(connection.stop.signal);
  return opened;
}

/** A session that takes the place of another continues its conversation. */
function nextOptions(
  options: SessionOptions,
  before: OpenSdkSession | undefined,
  fresh: boolean,
): SessionOptions {
  if (before === undefined) return options;
  const { resume: _resume, continue: _continue, forkSession: _fork, sessionId: _id, ...more } = options;
  const { resumeAt: _at, resumeDrops: _drops, ...rest } = more;
  if (fresh) return rest;
  const { sessionId } = before.session.plan;
  return before.session.messages().length === 0 ? { ...rest, sessionId } : { ...rest, resume: sessionId };
}

/** What the host is asked, where it said that it answers. */
function askedOf({ permissionPromptTool, permissionPrompts }: SdkConnection["options"]): TreeOptions["asks"] {
  if (permissionPromptTool !== "stdio" || permissionPrompts === "none") return {};
  return { permissions: "program", forms: true, plans: "program" };
}

/** The list of tasks of a session without a team. */
function taskListOf({ host, context, observed, request }: SdkConnection): readonly Tool[] {
  const signal = new AbortController().signal;
  const tools = createTaskListTools({
    environment: context.host.environment,
    session: () => host.current()?.session,
    async approve(event, { id, subject, description }) {
      const fields = { task_id: id, task_subject: subject, task_description: description };
      const outputs = await observed().fire(event, { fields, signal });
      const block = outputs.find(isBlocking);
      if (block === undefined) return undefined;
      const reason = block["reason"] ?? block["stopReason"];
      return typeof reason === "string" && reason !== "" ? reason : `a ${event} hook refused it`;
    },
  });
  const { tools: chosen } = request.session;
  const names = Array.isArray(chosen) ? new Set<unknown>(chosen) : undefined;
  return tools.filter(({ name }) => names === undefined || names.has(name));
}

function liveControlsOf(connection: SdkConnection): SessionPorts {
  const { options, initialize, lineIds } = connection;
  return {
    serversConnected(connections) {
      connection.mcp = connections;
    },
    continueAnswer: connection.continuation.continueAnswer,
    // In a script there is no person to ask for children in the background.
    attendsBackground: connection.isHosted,
    // BGR-1: the command waits for a child whose call does not say otherwise, whatever it prints; only programs on the Agent
    // SDK expect the other default.
    childrenInBackground: connection.isHosted,
    compactsShort: true,
    remindsOnceOfOutput: true,
    ...(connection.isHosted ? { taskList: taskListOf(connection) } : {}),
    commandChanged: connection.commands.changed,
    watchHook: watchHooks(connection),
    seenFile: (path) => connection.seenFiles.get(path),
    takeStop() {
      const { isStopWanted } = connection;
      connection.isStopWanted = false;
      return isStopWanted;
    },
    toolAliases: initialize.toolAliases,
    transcript: {
      title: initialize.title ?? options.name,
      titled(title) {
        connection.title = title;
      },
      uuidFor(event) {
        if (event.type === "assistant-answered") return connection.answers.ids();
        if (event.type === "user-added" && event.origin === "tool-results") {
          // The lines of results have the ids under which the results were shown.
          const { message } = event;
          const { results } = connection;
          const blocks = typeof message.content === "string" ? [] : message.content;
          const ids = results.idsOf(blocks.filter((block) => block.type === "tool_result"));
          return ids.map((id) => id ?? randomUUID());
        }
        if (event.type !== "user-added" || !["prompt", "message"].includes(event.origin)) return undefined;
        const { promptId } = connection;
        connection.promptId = undefined;
        return promptId;
      },
      appended:
        options.sessionMirror === true
          ? (lines) => mirror(connection, String(situationOf(connection)["transcript_path"]), lines)
          : undefined,
      written: (event, uuids) => void lineIds.set(event, uuids),
    },
    childAppended:
      options.sessionMirror === true ? (file, lines) => mirror(connection, file, lines) : undefined,
  };
}

type HookWatch = NonNullable<SessionPorts["watchHook"]>;

/** The start of a session is always reported, its end never; other hooks where the host asked for them. */
function watchHooks(connection: SdkConnection): HookWatch {
  const { options, host } = connection;
  return ({ event, subject }) => {
    if (event === "SessionEnd") return () => undefined;
    const noteHeldStop = (reading: Parameters<ReturnType<HookWatch>>[0]): void => {
      const isHeld = event === "Stop" && reading.type === "answer" && reading.answer.blocks === true;
      if (isHeld) connection.isStopHeld = true;
    };
    if (options.includeHookEvents !== true && event !== "SessionStart") return noteHeldStop;
    const name = subject === undefined || subject === "" ? event : `${event}:${subject}`;
    const about = { hook_id: randomUUID(), hook_name: name, hook_event: event };
    const emit = (subtype: string, more: JsonRecord): void =>
      host.emit({
        type: "system",
        subtype,
        ...about,
        ...more,
        uuid: randomUUID(),
        session_id: host.current()?.session.plan.sessionId ?? "",
      });
    emit("hook_started", {});
    return (reading) => {
      const { type, printed } = reading;
      noteHeldStop(reading);
      const { stdout = "", stderr = "", exitCode } = printed ?? {};
      const code = exitCode === undefined ? {} : { exit_code: exitCode };
      const outcome = type === "answer" ? "success" : "error";
      emit("hook_response", { output: `${stdout}${stderr}`, stdout, stderr, ...code, outcome });
    };
  };
}

function mirror({ channel }: SdkConnection, filePath: string, lines: readonly string[]): void {
  const entries = lines.map((line) => JSON.parse(line));
  channel.send({ type: "transcript_mirror", filePath, entries });
}

export function sessionIdOf({ host }: SdkConnection): string {
  return host.current()?.session.plan.sessionId ?? "";
}

/** What every hook input has: session, transcript, folder, mode. */
export function situationOf({ host, policy }: SdkConnection): JsonRecord {
  const session = host.current()?.session;
  if (session === undefined) return {};
  const { plan } = session;
  return {
    session_id: plan.sessionId,
    transcript_path: sessionRecord(session).transcript,
    cwd: plan.directory,
    permission_mode: policy.mode() ?? plan.policy.mode,
  };
}
