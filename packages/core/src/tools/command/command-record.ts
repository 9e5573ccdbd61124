import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { type ProcessIdentity, toIdentity } from "@retinue/base/storage/process-identity.ts";
import type { TaskRunState } from "../task-source.ts";

/** A command that an agent runs, as it is written down before it runs. */
export interface CommandRecord {
  readonly id: string;
  /** One that is waited for is forgotten when it ends; one in the background is remembered for TaskOutput. */
  readonly kind: "foreground" | "background";
  readonly agentId: string;
  readonly command: string;
  readonly description: string;
  readonly outputFile?: string;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  /** The process that started it. */
  readonly owner: ProcessIdentity;
  /** The head of its process group. */
  readonly leader: ProcessIdentity;
  readonly end?: CommandEnd;
}

export interface CommandEnd {
  readonly state: Exclude<TaskRunState, "running">;
  readonly exitCode?: number;
  readonly note?: string;
  /** Milliseconds since 1970. */
  readonly at: number;
  /** The process of its session ended before it did. */
  readonly isCutOff?: true;
}

export function formatCommandRecord(record: CommandRecord): string {
  return `${JSON.stringify({ version: 1, ...record })}\n`;
}

/** Undefined for everything that is not a whole record, as a kill in the middle of writing leaves it: nothing ran then. */
export function parseCommandRecord(text: string): CommandRecord | undefined {
  const value = parseJson(text);
  if (!isRecord(value) || value.version !== 1) return undefined;
  const { id, kind, agentId, command, description, outputFile, startedAt } = value;
  const [owner, leader] = [toIdentity(value.owner), toIdentity(value.leader)];
  if (kind !== "foreground" && kind !== "background") return undefined;
  if (owner === undefined || leader === undefined || typeof startedAt !== "number") return undefined;
  if (typeof id !== "string" || typeof agentId !== "string") return undefined;
  if (typeof command !== "string" || typeof description !== "string") return undefined;
  const end = readEnd(value.end);
  return {
    id,
    kind,
    agentId,
    command,
    description,
    startedAt,
    owner,
    leader,
    ...(typeof outputFile === "string" ? { outputFile } : {}),
    end,
  };
}

const endStates = ["completed", "failed", "stopped", "timed-out"] as const;

function readEnd(value: unknown): CommandEnd | undefined {
  if (!isRecord(value) || typeof value.at !== "number") return undefined;
  const state = endStates.find((known) => known === value.state);
  if (state === undefined) return undefined;
  return {
    state,
    at: value.at,
    ...(typeof value.exitCode === "number" ? { exitCode: value.exitCode } : {}),
    ...(typeof value.note === "string" ? { note: value.note } : {}),
    ...(value.isCutOff === true ? { isCutOff: true } : {}),
  };
}
