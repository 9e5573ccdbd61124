import { isRecord } from "../../foundation/json-record.ts";
import type { OfflineConversation } from "./offline-conversation.ts";

/** For one question. */
export const maxOfflineCalls = 8;

export interface OfflineCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the offline model does next: some calls at the same time, or its answer. */
export type OfflineStep =
  | { readonly type: "calls"; readonly say: string; readonly calls: readonly OfflineCall[] }
  | { readonly type: "answer"; readonly text: string };

/** A call of a tool if it is offered, with only the fields that its schema knows; else none. */
export function callIfOffered(
  { tools }: OfflineConversation,
  name: string,
  input: Readonly<Record<string, unknown>>,
): readonly OfflineCall[] {
  const tool = tools.get(name);
  if (tool === undefined) return [];
  const known = tool.inputSchema["properties"];
  const fields = Object.entries(input).filter(
    ([key, value]) => value !== undefined && (!isRecord(known) || Object.hasOwn(known, key)),
  );
  return [{ name, input: Object.fromEntries(fields) }];
}

/** The errors of calls, as one sentence each. */
export function failuresOf({ calls }: OfflineConversation): string | undefined {
  const failed = calls.filter(({ isError }) => isError);
  if (failed.length === 0) return undefined;
  const lines = failed.map(
    ({ name, text }) => `- ${name}: ${text.replace(/\s+/g, " ").trim().slice(0, 300)}`,
  );
  return ["Calls that did not work:", ...lines].join("\n");
}
