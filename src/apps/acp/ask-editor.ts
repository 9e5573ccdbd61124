import type {
  PermissionOption,
  RequestPermissionRequest,
  RequestPermissionResponse,
} from "@agentclientprotocol/sdk";
import { isRecord, type JsonRecord } from "../../foundation/json-record.ts";
import { toolCall } from "./acp-updates.ts";

/** Puts the question of a call to the editor, in the form in which hosts of the Agent SDK are asked. */
export type AskEditor = (request: JsonRecord, signal?: AbortSignal) => Promise<JsonRecord>;

type RequestPermission = (
  request: RequestPermissionRequest,
  signal: AbortSignal | undefined,
) => Promise<RequestPermissionResponse>;

const once: readonly PermissionOption[] = [
  { optionId: "allow", name: "Allow", kind: "allow_once" },
  { optionId: "reject", name: "Reject", kind: "reject_once" },
];
const always: PermissionOption = { optionId: "always", name: "Allow for this session", kind: "allow_always" };

export function createAskEditor(sessionId: () => string, requestPermission: RequestPermission): AskEditor {
  return async (request, signal) => {
    const { tool_name: name, tool_use_id: id, input, permission_suggestions: suggestions } = request;
    const updates = (Array.isArray(suggestions) ? suggestions : []).filter(isRecord);
    const call = { type: "tool_use", id: String(id), name: String(name), input } as const;
    const { sessionUpdate: _kind, ...shown } = toolCall(call, "pending");
    const options = updates.length === 0 ? [...once] : [always, ...once];
    const { outcome } = await requestPermission({ sessionId: sessionId(), toolCall: shown, options }, signal);
    if (outcome.outcome === "cancelled")
      return { behavior: "deny", message: "the editor cancelled the question", interrupt: true };
    if (outcome.optionId === "reject") return { behavior: "deny", message: "the person rejected it" };
    if (outcome.optionId !== "always") return { behavior: "allow" };
    const forSession = updates.map((update) => ({ ...update, destination: "session" }));
    return { behavior: "allow", updatedPermissions: forSession };
  };
}
