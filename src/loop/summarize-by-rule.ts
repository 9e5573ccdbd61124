import {
  type AssistantMessage,
  type Message,
  type ToolResultBlock,
  type ToolUseBlock,
  textOf,
  toolCallsOf,
} from "../conversation/message.ts";
import { isRecord } from "../foundation/json-record.ts";
import { canonicalToolName, type ToolFacts, toolFacts } from "../foundation/tool-table.ts";
import { blocksOf, ownTexts, readOpening, summaryEnd, summaryStart } from "./choose-cut.ts";
import { briefLine, shortenText } from "./shorten-text.ts";

/** A summary without a model: what was asked, which files and commands there were, what failed, and the last words. */
export function summarizeByRule(messages: readonly Message[], tokens: number): string {
  const calls = collectCalls(messages);
  const sections = [
    section("What was said to the agent", said(messages)),
    section("Files it changed", filesOf(calls, changing)),
    section("Files it read", filesOf(calls, reading)),
    section("Commands it ran, newest last", commandsOf(calls)),
    section("Calls that failed, newest last", failuresOf(calls)),
    section("Its last words", lastWords(messages)),
  ].join("");
  const earlier = readOpening(messages).summary;
  if (earlier === undefined) return shortenText(sections.trim(), tokens);
  const own = shortenText(sections.trim(), Math.floor(tokens / 2));
  const before = shortenText(bareSummary(earlier), Math.floor(tokens / 2));
  return shortenText(`### From before\n${before}\n\n${own}`, tokens);
}

const maxPrompts = 20;
const maxFiles = 60;
const maxCommands = 20;
const maxFailures = 10;
const maxWords = 3;

interface AnsweredCall {
  readonly call: ToolUseBlock;
  readonly result: ToolResultBlock | undefined;
}

function collectCalls(messages: readonly Message[]): readonly AnsweredCall[] {
  const results = new Map<string, ToolResultBlock>();
  for (const message of messages) {
    if (message.role !== "user") continue;
    for (const block of blocksOf(message))
      if (block.type === "tool_result") results.set(block.tool_use_id, block);
  }
  return messages
    .filter((message): message is AssistantMessage => message.role === "assistant")
    .flatMap(toolCallsOf)
    .map((call) => ({ call, result: results.get(call.id) }));
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? "" : `### ${title}\n${lines.map((line) => `- ${line}`).join("\n")}\n\n`;
}

/** Without the first message, which is word for word beside the summary. */
function said(messages: readonly Message[]): readonly string[] {
  const texts = messages
    .slice(1)
    .flatMap((message) => (message.role === "user" ? ownTexts(message) : []))
    .filter((text) => !text.startsWith("<system-reminder>") && text.trim() !== "");
  return texts.slice(-maxPrompts).map((text) => briefLine(text, 600));
}

type IsTool = (facts: ToolFacts) => boolean;

const changing: IsTool = ({ effect }) => effect === "edit";
/** Tools that show one file; searches show many and name none. */
const reading: IsTool = ({ effect, searches }) => effect === "read" && searches === undefined;
const running: IsTool = ({ subject }) => subject === "command";

/** Also under the old names that transcripts hold. */
function isTool({ name }: AnsweredCall["call"], kind: IsTool): boolean {
  const facts = toolFacts(canonicalToolName(name));
  return facts !== undefined && kind(facts);
}

function filesOf(calls: readonly AnsweredCall[], kind: IsTool): readonly string[] {
  const files = calls
    .filter(({ call, result }) => isTool(call, kind) && result?.is_error !== true)
    .flatMap(({ call }) => {
      const { pathFields = [] } = toolFacts(canonicalToolName(call.name)) ?? {};
      return pathFields.flatMap((field) => inputText(call, field) ?? []);
    });
  return [...new Set(files)].slice(-maxFiles).map((file) => briefLine(file, 300));
}

function commandsOf(calls: readonly AnsweredCall[]): readonly string[] {
  return calls
    .flatMap(({ call, result }) => {
      const command = isTool(call, running) ? inputText(call, "command") : undefined;
      return command === undefined ? [] : [`\`${briefLine(command, 200)}\` → ${headOf(result)}`];
    })
    .slice(-maxCommands);
}

function failuresOf(calls: readonly AnsweredCall[]): readonly string[] {
  return calls
    .filter(({ call, result }) => result?.is_error === true && !isTool(call, running))
    .slice(-maxFailures)
    .map(({ call, result }) => `${call.name}: ${headOf(result)}`);
}

function lastWords(messages: readonly Message[]): readonly string[] {
  return messages
    .filter(({ role }) => role === "assistant")
    .map(textOf)
    .filter((text) => text.trim() !== "")
    .slice(-maxWords)
    .map((text) => briefLine(text, 1500));
}

function headOf(result: ToolResultBlock | undefined): string {
  if (result === undefined) return "(no result)";
  const { content } = result;
  const parts = typeof content === "string" ? [{ type: "text" as const, text: content }] : content;
  const text = parts.flatMap((part) => (part.type === "text" ? [part.text] : [])).join(" ");
  return `${result.is_error === true ? "failed: " : ""}${briefLine(text, 200)}`;
}

function inputText({ input }: ToolUseBlock, key: string): string | undefined {
  const value = isRecord(input) && Object.hasOwn(input, key) ? input[key] : undefined;
  return typeof value === "string" ? value : undefined;
}

function bareSummary(text: string): string {
  return text.replace(summaryStart, "").replace(summaryEnd, "").trim();
}
