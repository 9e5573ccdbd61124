import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { CanUseTool } from "@retinue/core/kernel/agent/create-authorize.ts";
import type { LivePolicy } from "@retinue/core/kernel/live/live-policy.ts";
import type { ToolHost } from "../../../../src/index.ts";
import { parseRule } from "../../../../src/permissions.ts";
import type { ControlChannel } from "./control-channel.ts";

export interface HostPermissionOptions {
  readonly channel: Pick<ControlChannel, "ask">;
  readonly policy: Pick<LivePolicy, "update">;
  /** The id of the main agent; calls of others carry theirs. */
  readonly mainAgentId: () => string;
  /** The folder that paths are shown from. */
  readonly directory: () => string;
  /** Shows that the host is asked, and that it has answered. */
  readonly waiting: (isWaiting: boolean) => void;
  readonly warn: (text: string) => void;
  /** The host wants the turn to end with its refusal. */
  readonly refusedForGood?: () => void;
}

/** Tools whose question is the interaction itself. */
const interactive: ReadonlySet<string> = new Set(["AskUserQuestion", "ExitPlanMode"]);

/** Asks the host about a call, with `can_use_tool`. What the host cannot answer is refused. */
export function createHostPermission(options: HostPermissionOptions): CanUseTool {
  return async (tool, input, context) => {
    const [blocked] = context.outsidePaths();
    const suggestions = [
      ...suggestionsOf(tool, context.suggestedRules(), blocked !== undefined),
      ...commandSuggestions(tool, input, {
        isOutside: blocked !== undefined,
        directory: options.directory(),
      }),
    ];
    const request = {
      subtype: "can_use_tool",
      tool_name: tool,
      input,
      tool_use_id: context.callId,
      ...(suggestions.length === 0 ? {} : { permission_suggestions: suggestions }),
      blocked_path: blocked,
      decision_reason: context.reason,
      decision_reason_type: reasonType(context.reason, blocked),
      display_name: tool,
      ...descriptionOf(input, options.directory()),
      ...(context.agentId === options.mainAgentId() ? {} : { agent_id: context.agentId }),
      ...(context.server === undefined ? {} : { mcp_server: serverOf(context.server) }),
      ...(interactive.has(tool) ? { requires_user_interaction: true } : {}),
    };
    options.waiting(true);
    try {
      const answer = await options.channel.ask(request, context.signal);
      return await follow(answer, options);
    } catch (error) {
      if (context.signal.aborted) throw error;
      const reason = error instanceof Error ? error.message : String(error);
      return { behavior: "deny", message: reason };
    } finally {
      options.waiting(false);
    }
  };
}

async function follow(
  answer: JsonRecord,
  { policy, warn, refusedForGood }: HostPermissionOptions,
): Promise<Awaited<ReturnType<CanUseTool>>> {
  const { behavior, updatedInput, updatedPermissions, message, interrupt } = answer;
  if (behavior !== "allow") {
    if (interrupt === true) refusedForGood?.();
    const text = typeof message === "string" && message !== "" ? message : "the host refused it";
    return { behavior: "deny", message: text, ...(interrupt === true ? { interrupt: true } : {}) };
  }
  for (const update of Array.isArray(updatedPermissions) ? updatedPermissions : []) {
    try {
      await policy.update(update);
    } catch (error) {
      warn(`A permission update was not followed: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
  return { behavior: "allow", ...(isRecord(updatedInput) ? { updatedInput } : {}) };
}

function serverOf({ name, source }: { readonly name: string; readonly source: string }): JsonRecord {
  return { name, source: source === "program" ? "sdk" : source };
}

/** What the call is about, in words of the model or of its input. */
function descriptionOf(input: unknown, directory: string): { readonly description?: string } {
  if (!isRecord(input)) return {};
  const { description, file_path: file, notebook_path: notebook, url, query } = input;
  const path = [file, notebook].find((each) => typeof each === "string");
  const shown = typeof path === "string" ? pathFrom(directory, path) : undefined;
  const text = [description, shown, url, query].find((each) => typeof each === "string");
  return typeof text === "string" ? { description: text } : {};
}

function pathFrom(directory: string, path: string): string {
  return path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : path;
}

/** Commands that change files as Edit and Write do; the mode that accepts edits allows them in the working folders. */
const fileCommands: ReadonlySet<string> = new Set(["mkdir", "touch", "rm", "rmdir", "mv", "cp", "sed"]);

function commandSuggestions(
  tool: string,
  input: unknown,
  { isOutside, directory }: { readonly isOutside: boolean; readonly directory: string },
): readonly JsonRecord[] {
  const command = tool === "Bash" && isRecord(input) ? input["command"] : undefined;
  const [first = ""] = typeof command === "string" ? command.trim().split(/\s/) : [];
  if (isOutside || !fileCommands.has(first)) return [];
  return [
    { type: "addDirectories", directories: [directory], destination: "session" },
    { type: "setMode", mode: "acceptEdits", destination: "session" },
  ];
}

/** Edits are allowed together, paths elsewhere for the session, and everything else from now on. */
function suggestionsOf(tool: string, rules: readonly string[], isOutside: boolean): readonly JsonRecord[] {
  const edits = ["Edit", "Write", "NotebookEdit"].includes(tool);
  const mode = edits ? [{ type: "setMode", mode: "acceptEdits", destination: "session" }] : [];
  if (edits && !isOutside) return mode;
  const destination = edits || tool === "Read" || isOutside ? "session" : "localSettings";
  const written = rules.flatMap((text) => {
    const reading = parseRule(text, { list: "allow" });
    if (reading.type !== "rule") return [];
    const match = /^([^(]+)(?:\((.*)\))?$/s.exec(text);
    const content = match?.[2];
    return [{ toolName: match?.[1] ?? text, ruleContent: content }];
  });
  if (written.length === 0) return mode;
  return [{ type: "addRules", rules: written, behavior: "allow", destination }, ...mode];
}

function reasonType(reason: string, blocked: string | undefined): string {
  if (/\brule\b/.test(reason)) return "rule";
  if (/\bhook\b/.test(reason)) return "hook";
  if (blocked !== undefined) return "workingDir";
  return "other";
}

/** Puts the questions of AskUserQuestion to the host, which answers them in the changed input of the call. */
export function createHostQuestions({
  channel,
  waiting,
}: {
  readonly channel: Pick<ControlChannel, "ask">;
  readonly waiting: (isWaiting: boolean) => void;
}): NonNullable<ToolHost["ask"]> {
  return async (questions, { signal, callId }) => {
    waiting(true);
    try {
      const answer = await channel.ask(
        {
          subtype: "can_use_tool",
          tool_name: "AskUserQuestion",
          input: { questions },
          tool_use_id: callId ?? "",
          requires_user_interaction: true,
          display_name: "AskUserQuestion",
        },
        signal,
      );
      const { behavior, updatedInput, message } = answer;
      if (behavior !== "allow")
        throw new RetinueError(
          "question-declined",
          typeof message === "string" ? message : "the host declined",
        );
      const answers = isRecord(updatedInput) ? updatedInput["answers"] : undefined;
      const entries = Object.entries(isRecord(answers) ? answers : {});
      return Object.fromEntries(
        entries.map(([question, text]) => [question, Array.isArray(text) ? text.join(", ") : String(text)]),
      );
    } finally {
      waiting(false);
    }
  };
}
