import { isRecord, kindOf } from "@retinue/base/foundation/json-record.ts";
import { resolveToolName } from "@retinue/config/tools/tool-entry.ts";
import type { ToolUseBlock } from "../conversation/message.ts";
import type { Tool } from "../tools/tool.ts";
import type { Authorization, AuthorizeOptions, CallRequest, LoopPorts } from "./loop-ports.ts";

type Allowed = Extract<Authorization, { readonly type: "allowed" }>;
type Denied = Extract<Authorization, { readonly type: "denied" }>;

/** A call that may run, with what let it through; its input is checked by the tool's own schema. */
export interface AuthorizedCall extends CallRequest, Omit<Allowed, "type" | "input"> {
  readonly type: "authorized";
  /** How long it was decided about. */
  readonly decidedMs?: number;
}

/** A call that is answered without being run. `denied` distinguishes a refusal of permission from a mistake of the model. */
export interface RefusedCall extends Pick<Denied, "reason" | "asked" | "approval"> {
  readonly type: "refused";
  readonly call: ToolUseBlock;
  readonly denied: boolean;
  readonly decidedMs?: number;
}

/** A call of a tool that is there, with an input that the tool can take. */
export interface ReadCall extends CallRequest {
  readonly type: "read";
}

/** Finds the tool of a call and checks the input against its schema. */
export function readCall(call: ToolUseBlock, ports: LoopPorts): ReadCall | RefusedCall {
  const tool = findTool(call.name, ports);
  if (tool === undefined) return missingTool(call, ports);
  const checked = checkInput(tool, call.input);
  if (checked.type === "invalid") return refusedCall(call, checked.reason);
  return { type: "read", call, tool, input: checked.input };
}

/** Asks whether a call may run. */
export async function authorizeCall(
  { call, tool, input }: ReadCall,
  ports: LoopPorts,
  options: AuthorizeOptions,
): Promise<AuthorizedCall | RefusedCall> {
  // Calls before this one may have taken the tool away, as one that moves the agent to the background.
  if (ports.isOffered?.(tool) === false) return missingTool(call, ports);
  try {
    const authorization = await ports.authorize({ call, tool, input }, options);
    if (authorization.type === "denied") {
      const { reason, asked, approval } = authorization;
      return { ...refusedCall(call, reason, true), asked, approval };
    }
    if (authorization.input === input) return { ...authorization, type: "authorized", call, tool };
    // A hook or a person changed the input; it is checked like the model's own.
    const changed = checkInput(tool, authorization.input);
    return changed.type === "invalid"
      ? refusedCall(call, changed.reason)
      : { ...authorization, type: "authorized", call, tool, input: changed.input };
  } catch (error) {
    if (options.signal.aborted) return refusedCall(call, undecidedText);
    // A guard that fails does not let through.
    const reason = String(error instanceof Error ? error.message : error);
    return refusedCall(call, `This call was not allowed, because deciding about it failed: ${reason}.`, true);
  }
}

function refusedCall(call: ToolUseBlock, reason: string, denied = false): RefusedCall {
  return { type: "refused", call, reason, denied };
}

function missingTool(call: ToolUseBlock, ports: LoopPorts): RefusedCall {
  const offered = offeredTools(ports);
  // Those that are not loaded are for the search to name.
  const names = (ports.present?.(offered, []) ?? offered).map(({ name }) => name).join(", ");
  const available = names === "" ? "none" : names;
  return refusedCall(call, `There is no tool ${JSON.stringify(call.name)} here. Available: ${available}.`);
}

/** It was not refused: an agent that continues the conversation must not take the end of a process for a refusal. */
const undecidedText =
  "This call has not run: the run was stopped while the call waited for a decision. No one has refused it. Make the same call again if it is still needed; an answer that was given meanwhile counts.";

/** The literal name first; models that learned an old name or another spelling reach today's tool. */
export function findTool(name: string, ports: LoopPorts): Tool | undefined {
  const tools = offeredTools(ports);
  const literal = tools.find((tool) => tool.name === name);
  if (literal !== undefined) return literal;
  const meaning = resolveToolName(name);
  return meaning.type === "renamed" ? tools.find((tool) => tool.name === meaning.name) : undefined;
}

type InputCheck =
  | { readonly type: "valid"; readonly input: unknown }
  | { readonly type: "invalid"; readonly reason: string };

function checkInput(tool: Tool, input: unknown): InputCheck {
  if (!isRecord(input)) {
    // What a model gets whose call has an input that is no JSON object, so that it can write it again.
    const flaw = typeof input === "string" ? jsonErrorOf(input) : undefined;
    const what =
      flaw === undefined ? `it is ${kindOf(input)}` : `it is not valid JSON: ${flaw.slice(0, 200)}`;
    const unreadable = `The input of ${tool.name} must be one JSON object, but ${what}. The call was not run; make it again with a valid input.`;
    return { type: "invalid", reason: unreadable };
  }
  if (tool.input === undefined) return { type: "valid", input };
  const result = tool.input.safeParse(input);
  if (result.success) return { type: "valid", input: result.data };
  const issues = result.error.issues.slice(0, 5).map((issue) => {
    const where = issue.path.length === 0 ? "the input" : `\`${issue.path.join(".")}\``;
    return `${where}: ${issue.message}`;
  });
  return { type: "invalid", reason: `The input of ${tool.name} is not valid. ${issues.join("; ")}.` };
}

function jsonErrorOf(text: string): string | undefined {
  try {
    JSON.parse(text);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The tools there are at this turn, in an order that stays. */
export function offeredTools({ tools, isOffered }: Pick<LoopPorts, "tools" | "isOffered">): readonly Tool[] {
  return isOffered === undefined ? tools : tools.filter(isOffered);
}
