import { defined } from "@retinue/base/foundation/defined.ts";
import {
  isRecord,
  isUnreasonablyLarge,
  type JsonRecord,
  kindOf,
  quote,
} from "@retinue/base/foundation/json-record.ts";
import { nearestName } from "@retinue/base/foundation/nearest-name.ts";
import type { FiredEvent } from "@retinue/config/hooks/hook-input.ts";

/** What one hook said, understood. Nothing in it means: continue. */
export interface HookAnswer {
  /** About a call; `blocks` is the word for all other events. */
  readonly verdict?: "allow" | "ask" | "deny";
  readonly blocks?: boolean;
  /** The reason for a verdict or a block. */
  readonly reason?: string;
  /** Takes the place of the whole input of a call. */
  readonly updatedInput?: Readonly<Record<string, unknown>>;
  /** Rules it wants to add while it allows a call, as written. */
  readonly updatedPermissions?: readonly unknown[];
  /** Takes the place of what the model sees of a call's result. */
  readonly updatedOutput?: string;
  /** Text for the model. */
  readonly context?: string;
  /** Text for the person. */
  readonly systemMessage?: string;
  /** The whole run is to end, with this reason. */
  readonly stop?: string;
}

/** A hook that could not say what it wanted is distinguished from one that said nothing. */
export type HookReading = (
  | { readonly type: "answer"; readonly answer: HookAnswer }
  | { readonly type: "failed"; readonly reason: string }
) & {
  /** What a command printed, for watchers. */
  readonly printed?: { readonly stdout: string; readonly stderr: string; readonly exitCode?: number };
};

/** What blocking means for an event: a call is denied, something is held up, or only the user is notified. */
export const blockEffects: Readonly<Record<FiredEvent, "deny" | "block" | "tell-person" | "nothing">> = {
  PreToolUse: "deny",
  PermissionRequest: "deny",
  PostToolUse: "block",
  PostToolUseFailure: "block",
  UserPromptSubmit: "block",
  Stop: "block",
  SubagentStop: "block",
  PreCompact: "block",
  TeammateIdle: "block",
  TaskCreated: "block",
  TaskCompleted: "block",
  SessionStart: "tell-person",
  SessionEnd: "tell-person",
  SubagentStart: "tell-person",
  PostCompact: "tell-person",
  Notification: "nothing",
};

function blockingAnswer(event: FiredEvent, reason: string): HookAnswer {
  switch (blockEffects[event]) {
    case "deny":
      return { verdict: "deny", reason };
    case "block":
      return { blocks: true, reason };
    case "tell-person":
      return { systemMessage: reason };
    case "nothing":
      return {};
  }
}

/** The most characters of one text that continue; the rest is kept in a file. */
const textLimit = 10_000;

interface CutTexts {
  readonly answer: HookAnswer;
  /** Whole texts, each with the name that the shortened one mentions. */
  readonly files: readonly { readonly file: string; readonly text: string }[];
}

const textFields = ["reason", "context", "systemMessage", "stop", "updatedOutput"] as const;

/** Shortens every text that is too long; `fileFor` names the place of the whole, undefined where nothing can be kept. */
export function cutTexts(answer: HookAnswer, fileFor: (field: string) => string | undefined): CutTexts {
  const files: { file: string; text: string }[] = [];
  const cut = textFields.flatMap((field): [string, string][] => {
    const text = answer[field];
    if (text === undefined || text.length <= textLimit) return [];
    const file = fileFor(field);
    if (file !== undefined) files.push({ file, text });
    const where = file === undefined ? "the rest was dropped" : `all of it is in ${file}`;
    return [[field, `${beginning(text)}\n… (cut at ${textLimit} of ${text.length} characters; ${where})`]];
  });
  return { answer: { ...answer, ...Object.fromEntries(cut) }, files };
}

/** Does not part the two halves of one character. */
function beginning(text: string): string {
  const last = text.charCodeAt(textLimit - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? textLimit - 1 : textLimit);
}

/** How a command ended, and what it wrote. */
interface CommandOutput {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** More was written than is here. */
  readonly truncated: boolean;
}

/**
 * Exit 0: what was printed counts. Exit 2: blocks, and JSON can only give the reason. Any other: a failure, unless JSON
 * decides; of a call, such JSON may only deny.
 */
export function readCommandOutput(event: FiredEvent, output: CommandOutput): HookReading {
  if (output.exitCode === 0) return readPrinted(event, output.stdout, output.truncated);
  const printed = looksLikeJson(output.stdout) ? readPrinted(event, output.stdout, false) : undefined;
  const parsed = printed?.type === "answer" ? printed.answer : undefined;
  const blocks = parsed?.verdict === "deny" || parsed?.blocks === true;
  if (output.exitCode === 2) {
    const reason = (blocks ? parsed?.reason : undefined) ?? firstText(output.stderr, output.stdout);
    return answer({ ...blockingAnswer(event, reason ?? "the hook gave no reason"), ...stopOf(parsed) });
  }
  if (parsed !== undefined && (blocks || blockEffects[event] !== "deny")) return answer(parsed);
  const detail = firstText(output.stderr, output.stdout);
  return failed(`it ended with code ${output.exitCode}${detail === undefined ? "" : `: ${brief(detail)}`}`);
}

/** Reads what was printed, or what a server answered: JSON where it begins with a brace, else plain text. */
export function readPrinted(event: FiredEvent, text: string, truncated: boolean): HookReading {
  if (truncated) return failed(`it printed more than ${text.length} characters, which is not an answer`);
  if (!looksLikeJson(text)) {
    if (hidesDecision(event, text))
      return failed(`its decision is not the object that it printed: ${brief(text)}`);
    const context = text.trim();
    return answer(context !== "" && takesPlainText.has(event) ? { context } : {});
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return failed(`it printed JSON that is not complete: ${brief(text)}`);
  }
  return readAnswer(event, value);
}

/** Reads an answer that is already a value: from a function, or parsed. */
export function readAnswer(event: FiredEvent, value: unknown): HookReading {
  if (value === undefined || value === null) return answer({});
  if (!isRecord(value)) return failed(`its answer must be an object, but it is ${kindOf(value)}`);
  if (isUnreasonablyLarge(value)) return failed("its answer is nested too deeply or too large");
  const specific = value["hookSpecificOutput"] ?? {};
  if (!isRecord(specific))
    return failed(`"hookSpecificOutput" must be an object, but it is ${kindOf(specific)}`);
  const named = specific["hookEventName"];
  if (named !== undefined && named !== event) {
    return failed(`"hookEventName" says ${quote(named)}, but the event is ${event}`);
  }
  const complaint =
    misspeltField(value) ??
    misspeltField(specific) ??
    (blockEffects[event] === "deny" ? (strangeFields(value) ?? strangeFields(specific)) : undefined) ??
    wrongKinds(value, specific);
  if (complaint !== undefined) return failed(complaint);
  const decided = readDecision(event, value, specific);
  if (typeof decided === "string") return failed(decided);
  return answer({ ...readTexts(value, specific), ...decided, ...readChanges(event, specific) });
}

/** Only where a person or a program speaks to the model is plain text taken as meant for it. */
const takesPlainText: ReadonlySet<FiredEvent> = new Set(["UserPromptSubmit", "SessionStart", "PreCompact"]);

/** A decision under a name that is nearly right was meant, and is not left out. */
function misspeltField(fields: JsonRecord): string | undefined {
  for (const key of Object.keys(fields)) {
    const meant = knownFields.has(key) ? undefined : nearestName(key, decidingFields, 2);
    if (meant !== undefined) return `there is no field "${key}"; did it mean "${meant}"?`;
  }
  return undefined;
}

/** An object that has fields, and none of an answer, was meant as something: a guard that speaks so is not understood. */
function strangeFields(fields: JsonRecord): string | undefined {
  const keys = Object.keys(fields);
  if (keys.length === 0 || keys.some((key) => answerFields.has(key))) return undefined;
  return `its answer has none of the fields of an answer, but ${keys.slice(0, 3).map(quote).join(", ")}`;
}

const answerFields: ReadonlySet<string> = new Set([
  "decision",
  "reason",
  "continue",
  "stopReason",
  "suppressOutput",
  "systemMessage",
  "terminalSequence",
  "hookSpecificOutput",
  "hookEventName",
  "permissionDecision",
  "permissionDecisionReason",
  "behavior",
  "message",
  "updatedInput",
  "updatedPermissions",
  "additionalContext",
  "async",
  "asyncTimeout",
]);

const decidingFields = [
  "decision",
  "permissionDecision",
  "hookSpecificOutput",
  "behavior",
  "continue",
] as const;
const knownFields: ReadonlySet<string> = new Set([...decidingFields, "permissionDecisionReason"]);

const textKeys = ["reason", "stopReason", "systemMessage"] as const;
const specificTextKeys = ["permissionDecisionReason", "additionalContext"] as const;

/** A field of the wrong kind is a failure and not left out: the hook meant something by it. */
function wrongKinds(value: JsonRecord, specific: JsonRecord): string | undefined {
  const wrong = (fields: JsonRecord, keys: readonly string[]): string | undefined => {
    const key = keys.find((name) => isGiven(fields[name]) && typeof fields[name] !== "string");
    return key === undefined ? undefined : `"${key}" must be a string, but it is ${kindOf(fields[key])}`;
  };
  if (isGiven(value["continue"]) && typeof value["continue"] !== "boolean")
    return `"continue" must be true or false, but it is ${quote(value["continue"])}`;
  if (isGiven(specific["updatedInput"]) && !isRecord(specific["updatedInput"]))
    return `"updatedInput" must be an object, but it is ${kindOf(specific["updatedInput"])}`;
  return wrong(value, textKeys) ?? wrong(specific, specificTextKeys);
}

const words: ReadonlyMap<unknown, "allow" | "ask" | "deny"> = new Map([
  ["allow", "allow"],
  ["approve", "allow"],
  ["ask", "ask"],
  // Holding a call back for later is not possible here, so a person is asked.
  ["defer", "ask"],
  ["deny", "deny"],
  ["block", "deny"],
]);

/** A text is a complaint. */
function readDecision(event: FiredEvent, value: JsonRecord, specific: JsonRecord): HookAnswer | string {
  const behaviour = event === "PermissionRequest" ? specific["decision"] : undefined;
  if (isGiven(behaviour)) return readPermission(behaviour);
  const given = event === "PreToolUse" ? (specific["permissionDecision"] ?? value["decision"]) : undefined;
  const written = given ?? value["decision"] ?? misplacedDecision(value, specific);
  if (!isGiven(written)) return {};
  const verdict = words.get(written);
  if (verdict === undefined)
    return `it decides ${quote(written)}; the words are allow, ask, deny, approve, block`;
  const reason = textIn(specific["permissionDecisionReason"]) ?? textIn(value["reason"]);
  if (verdict === "deny") return blockingAnswer(event, reason ?? "the hook gave no reason");
  if (blockEffects[event] !== "deny") return {};
  return { verdict, reason };
}

/** A decision where none is looked for: it may restrict, but an approval counts only in its own place. */
function misplacedDecision(value: JsonRecord, specific: JsonRecord): unknown {
  const places = [specific, value].flatMap((fields) => [
    fields["permissionDecision"],
    fields["decision"],
    fields["behavior"],
  ]);
  return places.filter(isGiven).find((word) => words.get(word) !== "allow");
}

function readPermission(decision: unknown): HookAnswer | string {
  if (!isRecord(decision)) return `"decision" must be an object, but it is ${kindOf(decision)}`;
  const { behavior, message, updatedInput, updatedPermissions, interrupt } = decision;
  if (behavior === "deny") {
    const reason = textIn(message) ?? "the hook gave no reason";
    return { verdict: "deny", reason, ...(interrupt === true ? { stop: reason } : {}) };
  }
  if (behavior !== "allow") return `"behavior" must be allow or deny, but it is ${quote(behavior)}`;
  if (isGiven(updatedInput) && !isRecord(updatedInput))
    return `"updatedInput" must be an object, but it is ${kindOf(updatedInput)}`;
  if (isGiven(updatedPermissions) && !Array.isArray(updatedPermissions))
    return `"updatedPermissions" must be a list, but it is ${kindOf(updatedPermissions)}`;
  return {
    verdict: "allow",
    ...(isRecord(updatedInput) ? { updatedInput } : {}),
    ...(Array.isArray(updatedPermissions) ? { updatedPermissions } : {}),
  };
}

function readTexts(value: JsonRecord, specific: JsonRecord): HookAnswer {
  const context = textIn(specific["additionalContext"]) ?? textIn(value["additionalContext"]);
  const systemMessage = textIn(value["systemMessage"]);
  return {
    context,
    systemMessage,
    ...(value["continue"] === false ? { stop: textIn(value["stopReason"]) ?? "a hook ended the run" } : {}),
  };
}

function readChanges(event: FiredEvent, specific: JsonRecord): HookAnswer {
  const { updatedInput } = specific;
  if (event === "PreToolUse" && isRecord(updatedInput)) return { updatedInput };
  if (event !== "PostToolUse") return {};
  const output = specific["updatedToolOutput"] ?? specific["updatedMCPToolOutput"];
  if (!isGiven(output)) return {};
  return { updatedOutput: typeof output === "string" ? output : JSON.stringify(output) };
}

/** What a model said about an event: `{"ok": false, "reason": "…"}`, or one of the usual answers. */
export function readModelAnswer(event: FiredEvent, text: string): HookReading {
  const start = text.indexOf("{");
  const end = text.lastIndexOf("}");
  let value: unknown;
  try {
    value = JSON.parse(text.slice(start, end + 1));
  } catch {
    return failed(`the model did not answer with JSON: ${brief(text)}`);
  }
  if (!isRecord(value)) return failed(`the model did not answer with an object: ${brief(text)}`);
  // A model that finds nothing wrong does not thereby grant the call.
  if (value["ok"] === true) return answer({});
  if (value["ok"] === false)
    return answer(blockingAnswer(event, textIn(value["reason"]) ?? "the model gave no reason"));
  const reading = readAnswer(event, value);
  if (reading.type === "failed" || reading.answer.verdict !== "allow") {
    const isEmpty = reading.type === "answer" && Object.keys(defined(reading.answer)).length === 0;
    if (!isEmpty) return reading;
    if (value["decision"] !== "approve")
      return failed(`the model did not say whether it is ok: ${brief(text)}`);
  }
  return answer({});
}

function answer(parsed: HookAnswer): HookReading {
  return { type: "answer", answer: parsed };
}

function failed(reason: string): HookReading {
  return { type: "failed", reason };
}

function stopOf(parsed: HookAnswer | undefined): HookAnswer {
  return parsed?.stop === undefined ? {} : { stop: parsed.stop };
}

/** A list of answers, or an answer after other text, is not read; one that decides is not taken for silence either. */
function hidesDecision(event: FiredEvent, text: string): boolean {
  const decides = /"(?:decision|permissionDecision|behavior)"\s*:\s*"(?:deny|block|ask|defer)"/.test(text);
  return decides && (blockEffects[event] === "deny" || /^\s*\[/.test(text));
}

function looksLikeJson(text: string): boolean {
  return /^\s*\{/.test(text);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function textIn(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value : undefined;
}

function firstText(...texts: readonly string[]): string | undefined {
  return texts.map((text) => text.trim()).find((text) => text !== "");
}

function brief(text: string): string {
  return quote(text.trim(), 200);
}
