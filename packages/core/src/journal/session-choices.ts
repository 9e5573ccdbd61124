// @io

import { readFile } from "node:fs/promises";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { parseLines, type ReadLinesOptions, readLines } from "@retinue/base/storage/read-lines.ts";
import {
  type RebuildOptions,
  type RebuiltConversation,
  rebuildConversation,
} from "./rebuild-conversation.ts";
import { findDamage, type TranscriptDamage } from "./transcript-damage.ts";

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
const choiceTypes = { agent: "agent-setting", model: "retinue-model" } as const;

/** What one line records of a choice. */
export function readChoice(kind: keyof typeof choiceTypes, record: JsonRecord): string | undefined {
  if (record["type"] !== choiceTypes[kind]) return undefined;
  const value = kind === "agent" ? record["agentSetting"] : record["model"];
  return typeof value === "string" ? value : undefined;
}

/** What else the caller of a session said that decides what its model is sent; a replay decides by it again. */
export interface DecidingOptions {
  readonly effort?: string | number;
  readonly permissionMode?: string;
  readonly skipPermissions?: boolean;
  readonly tools?: readonly string[];
  readonly allowedTools?: readonly string[];
  readonly disallowedTools?: readonly string[];
  readonly systemPrompt?: string;
  readonly appendSystemPrompt?: string;
  readonly maxTurns?: number;
}

export const decidingKeys = [
  "effort",
  "permissionMode",
  "skipPermissions",
  "tools",
  "allowedTools",
  "disallowedTools",
  "systemPrompt",
  "appendSystemPrompt",
  "maxTurns",
] as const satisfies readonly (keyof DecidingOptions)[];

const optionsType = "retinue-options";

/** A line beside the conversation with the options that were given; none where there were none. */
export function optionLines(sessionId: string, options: DecidingOptions): readonly object[] {
  const given = pickOptions({ ...options });
  return Object.keys(given).length === 0 ? [] : [{ type: optionsType, options: given, sessionId }];
}

/** The options that a line shows; undefined where it shows none. */
export function readOptionLine({ type, options }: JsonRecord): DecidingOptions | undefined {
  return type === optionsType && isRecord(options) ? pickOptions(options) : undefined;
}

function pickOptions(options: JsonRecord): DecidingOptions {
  const given = decidingKeys.filter((key) => isPlain(options[key])).map((key) => [key, options[key]]);
  return Object.fromEntries(given) as DecidingOptions;
}

function isPlain(value: unknown): boolean {
  if (Array.isArray(value)) return value.every((entry) => typeof entry === "string");
  return ["string", "number", "boolean"].includes(typeof value);
}

export interface LoadedSession extends RebuiltConversation {
  readonly records: readonly JsonRecord[];
  /** What `openAppendLog` takes as the expected length, so that nothing written meanwhile is overlooked. */
  readonly length: number;
  /** What of it could not be read or is not there. */
  readonly damage: TranscriptDamage;
}

/** Reads a transcript and makes its conversation again; throws a RetinueError only when the file cannot be read. */
export async function loadSession(
  file: string,
  options: ReadLinesOptions & RebuildOptions = {},
): Promise<LoadedSession> {
  const read = await readLines(file, options);
  const { values, length } = read;
  return { ...rebuildConversation(values, options), records: values, length, damage: findDamage(read) };
}

/** The choices a transcript keeps. A file that cannot be read says nothing; opening it reports why. */
export async function findChoices(file: string): Promise<SessionChoices> {
  const bytes = await readFile(file).catch(() => Buffer.alloc(0));
  const agent = lastChoice(bytes, "agent");
  const model = lastChoice(bytes, "model");
  return { agent, model };
}

/** Looks from the end for the kind's mark and reads only lines that have it, since a transcript can be long. */
function lastChoice(bytes: Buffer, kind: keyof typeof choiceTypes): string | undefined {
  const mark = `"type":"${choiceTypes[kind]}"`;
  let at = bytes.lastIndexOf(mark);
  while (at !== -1) {
    const start = bytes.lastIndexOf("\n", at) + 1;
    const end = bytes.indexOf("\n", at);
    const [record] = parseLines(bytes.subarray(start, end === -1 ? bytes.length : end)).values;
    const choice = record === undefined ? undefined : readChoice(kind, record);
    if (choice !== undefined) return choice;
    if (start === 0) return undefined;
    at = bytes.lastIndexOf(mark, start - 1);
  }
  return undefined;
}
