import type { JsonRecord } from "../foundation/json-record.ts";

/** What the caller of a session named, and a later call that continues with it need not name again. */
export interface SessionChoices {
  /** The agent that is the main thread; empty where none was asked for. */
  readonly agent?: string;
  /** The model as it was written: an alias, an id, or `provider/model`. */
  readonly model?: string;
}

/** Lines beside the conversation that keep the choices; of several, the last one counts. */
export function choiceLines(sessionId: string, { agent, model }: SessionChoices): readonly object[] {
  return [
    ...(agent === undefined ? [] : [{ type: choiceTypes.agent, agentSetting: agent, sessionId }]),
    ...(model === undefined ? [] : [{ type: choiceTypes.model, model, sessionId }]),
  ];
}

/** The kinds of these lines; existing viewers know the first, only this product writes the second. */
export const choiceTypes = { agent: "agent-setting", model: "retinue-model" } as const;

/** What one line says of a choice. */
export function readChoice(kind: keyof typeof choiceTypes, record: JsonRecord): string | undefined {
  if (record["type"] !== choiceTypes[kind]) return undefined;
  const value = kind === "agent" ? record["agentSetting"] : record["model"];
  return typeof value === "string" ? value : undefined;
}
