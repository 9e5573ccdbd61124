import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import type { Usage } from "@retinue/core/conversation/usage.ts";
import type { ModelRequest } from "@retinue/core/models/model.ts";
import type { StepError } from "./script.ts";
import type { Piece, ScriptedAnswer } from "./scripted-answer.ts";

/** A provider's way of speaking: how it is asked, and what an answer looks like on the wire. */
export interface Wire {
  readRequest(body: JsonRecord): ModelRequest;
  /** What the real provider would refuse the request for. */
  findFlaw(body: JsonRecord): string | undefined;
  statusOf(failure: StatusError): number;
  errorBody(failure: StatusError, message: string): JsonRecord;
  /** The answer in one piece. */
  whole(answer: ScriptedAnswer, model: string, usage: Usage): JsonRecord;
  /** The answer as server-sent events, each a text ready to be written. */
  openStream(answer: ScriptedAnswer, body: JsonRecord, usage: Usage): WireStream;
}

export interface WireStream {
  begin(): string;
  piece(piece: Piece): string;
  end(): string;
  /** An error inside the stream. */
  error(failure: StatusError, message: string): string;
  /** An event that breaks off in the middle of its JSON. */
  malformed(): string;
}

export type StatusError = Exclude<StepError, "connection-failed" | "cut" | "malformed" | "stall">;

export function isStatusError(failure: StepError): failure is StatusError {
  return !["connection-failed", "cut", "malformed", "stall"].includes(failure);
}

export function listOf(value: unknown): readonly JsonRecord[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

export function textOfValue(value: unknown): string {
  return typeof value === "string" ? value : "";
}
