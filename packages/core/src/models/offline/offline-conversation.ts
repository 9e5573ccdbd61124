import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { type Message, type ToolResultBlock, toolCallsOf } from "../../conversation/message.ts";
import type { ModelRequest, ToolSpecification } from "../model.ts";

/** A call of this task that has been answered. */
export interface FinishedCall {
  readonly name: string;
  readonly input: JsonRecord;
  readonly text: string;
  readonly isError: boolean;
}

/** A conversation as far as the offline model looks at it. */
export interface OfflineConversation {
  /** What was asked last. */
  readonly task: string;
  /** The calls since then. */
  readonly calls: readonly FinishedCall[];
  readonly tools: ReadonlyMap<string, ToolSpecification>;
  /** The working folder, where the system prompt shows it. */
  readonly directory?: string;
}

export function readOfflineConversation(request: ModelRequest): OfflineConversation {
  const { messages, system, toolChoice } = request;
  const start = messages.findLastIndex(
    (message) =>
      message.role === "user" &&
      !(typeof message.content !== "string" && message.content.some(({ type }) => type === "tool_result")),
  );
  const asked = messages[start];
  const offered = toolChoice === "none" ? [] : request.tools;
  const [, directory] = /^Working directory: (.+)$/m.exec(system.join("\n")) ?? [];
  return {
    task: asked === undefined ? "" : lastPrompt(asked),
    calls: finishedCalls(messages.slice(start + 1)),
    tools: new Map(offered.map((tool) => [tool.name, tool])),
    directory,
  };
}

export function callsOf(conversation: OfflineConversation, name: string): readonly FinishedCall[] {
  return conversation.calls.filter((call) => call.name === name);
}

/** The prompt is the last text of a message: reports and the output of commands run at the prompt come before it. */
function lastPrompt({ content }: Message): string {
  if (typeof content === "string") return withoutReminders(content);
  const texts = content.flatMap((block) => (block.type === "text" ? [withoutReminders(block.text)] : []));
  return texts.findLast((text) => text !== "") ?? "";
}

/** Texts that the program around us adds are not what the person asked. */
function withoutReminders(text: string): string {
  return text.replace(/<system-reminder>[\s\S]*?<\/system-reminder>/g, "").trim();
}

function finishedCalls(messages: readonly Message[]): FinishedCall[] {
  const results = new Map<string, ToolResultBlock>();
  for (const message of messages) {
    if (message.role !== "user" || typeof message.content === "string") continue;
    for (const block of message.content)
      if (block.type === "tool_result") results.set(block.tool_use_id, block);
  }
  return messages.flatMap((message) => {
    if (message.role !== "assistant") return [];
    return toolCallsOf(message).flatMap(({ id, name, input }) => {
      const result = results.get(id);
      if (result === undefined) return [];
      const isError = result.is_error === true;
      return [{ name, input: isRecord(input) ? input : {}, text: resultText(result), isError }];
    });
  });
}

function resultText({ content }: ToolResultBlock): string {
  if (typeof content === "string") return withoutReminders(content);
  return withoutReminders(content.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n"));
}

const childrenConcurrency = 3;

/** The tool that starts child agents, if one is offered in the shape we know. */
export function spawnToolName({ tools }: OfflineConversation): string | undefined {
  return ["Agent", "Task"].find((name) => {
    const fields = tools.get(name)?.inputSchema["properties"];
    return (
      isRecord(fields) &&
      ["description", "prompt", "subagent_type"].every((key) => Object.hasOwn(fields, key))
    );
  });
}

/** One Explore child for each of the largest folders. A prompt that names a folder is never handed on again. */
export function exploreCalls(conversation: OfflineConversation, files: ListedFiles): readonly OfflineCall[] {
  const tool = spawnToolName(conversation);
  if (tool === undefined) return [];
  return foldersToExplore(files).flatMap(({ path }) =>
    callIfOffered(conversation, tool, {
      description: `Map ${path}`,
      prompt: `Map the folder \`${path}\`: which files and folders it holds, what they are for, and where to start reading. Be quick, and change nothing.`,
      subagent_type: "Explore",
    }),
  );
}

/** After the others are back, one Plan child for an order to read in. */
export function planCalls(conversation: OfflineConversation, files: ListedFiles): readonly OfflineCall[] {
  const tool = spawnToolName(conversation);
  const back = childrenOf(conversation, "Explore").filter(({ isError }) => !isError);
  if (tool === undefined || back.length === 0 || childrenOf(conversation, "Plan").length > 0) return [];
  const largest = foldersToExplore(files)[0]?.path ?? ".";
  const explored = back.map(({ input }) => String(input["description"]));
  return callIfOffered(conversation, tool, {
    description: "Plan a first reading",
    prompt: `Plan in which order a newcomer should read the folder \`${largest}\`: name the files, the entry points first, and say why. Already looked at: ${explored.join(", ")}. Change nothing.`,
    subagent_type: "Plan",
  });
}

export function childrenOf(conversation: OfflineConversation, type: string): readonly FinishedCall[] {
  return ["Agent", "Task"]
    .flatMap((name) => callsOf(conversation, name))
    .filter(({ input }) => input["subagent_type"] === type);
}

/** Where everything lies in one or two folders, the largest is looked at by its parts. */
function foldersToExplore(files: ListedFiles): readonly ListedFolder[] {
  const top = foldersBelow(files).filter(({ path }) => !path.startsWith("."));
  const largest = top[0];
  if (top.length >= childrenConcurrency || largest === undefined) return top.slice(0, childrenConcurrency);
  const parts = foldersBelow(files, largest.path);
  if (parts.length === 0) return top;
  return [...parts, ...top.slice(1)]
    .toSorted((a, b) => b.files.length - a.files.length || byText(a.path, b.path))
    .slice(0, childrenConcurrency);
}

interface ListedFolder {
  /** As it is before the files' names, without a slash at the end. */
  readonly path: string;
  readonly files: readonly string[];
  readonly lines: number;
}

/** All files that the tools have named so far. */
export interface ListedFiles {
  readonly paths: readonly string[];
  readonly lines: ReadonlyMap<string, number>;
  /** The tools left something out, so every number is a lower bound. */
  readonly isCut: boolean;
  /** What the tools report about all text files, listed or not. */
  readonly total?: { readonly files: number; readonly lines: number };
}

/** Folders whose files tools write. Without a .gitignore they would outnumber the project's own files. */
const builtFolders: ReadonlySet<string> = new Set([
  "node_modules",
  "bower_components",
  "dist",
  "coverage",
  "__pycache__",
  ".venv",
  "venv",
  ".next",
  ".nuxt",
  ".gradle",
  ".terraform",
]);

/** A `glob` for Grep that leaves built folders out, unless the folder to search is one of them or inside one. */
export function withoutBuiltFolders(folder = "."): string | undefined {
  return isBuilt(folder) ? undefined : [...builtFolders].map((name) => `!**/${name}`).join(" ");
}

function isBuilt(path: string): boolean {
  return path.split("/").some((part) => builtFolders.has(part));
}

export function listedFiles(conversation: OfflineConversation): ListedFiles {
  const { directory } = conversation;
  const lines = new Map<string, number>();
  const paths = new Set<string>();
  const globs = callsOf(conversation, "Glob").filter(({ isError }) => !isError);
  const counts = callsOf(conversation, "Grep").filter(({ isError }) => !isError);
  for (const { text, input } of globs) {
    const isWanted = (path: string) => !isBuilt(path) || isBuilt(String(input["path"] ?? "."));
    for (const path of readListing(text, directory).paths.filter(isWanted)) paths.add(path);
  }
  for (const { text } of counts)
    for (const [path, count] of readCounts(text, directory)) lines.set(path, count);
  for (const path of lines.keys()) paths.add(path);
  const total = counts.map(({ text }) => readCountRemark(text).total).find((found) => found !== undefined);
  const isWhole = total === undefined ? !counts.some(({ text }) => isCut(text)) : lines.size >= total.files;
  return {
    paths: [...paths].toSorted(byText),
    lines,
    // A list of names that is cut matters only where no count has seen all files.
    isCut: !isWhole || (counts.length === 0 && globs.some(({ text }) => isCut(text))),
    total,
  };
}

/** The folders directly below one, the largest first; `.` is the working folder. */
export function foldersBelow({ paths, lines }: ListedFiles, folder = "."): readonly ListedFolder[] {
  const prefix = folder === "." ? "" : `${folder}/`;
  const byFolder = new Map<string, string[]>();
  for (const path of paths) {
    const slash = path.indexOf("/", prefix.length);
    if (!path.startsWith(prefix) || slash === -1) continue;
    const name = path.slice(0, slash);
    const files = byFolder.get(name);
    if (files === undefined) byFolder.set(name, [path]);
    else files.push(path);
  }
  return [...byFolder]
    .map(([path, files]) => ({ path, files, lines: sum(files.map((file) => lines.get(file) ?? 0)) }))
    .toSorted((a, b) => b.files.length - a.files.length || byText(a.path, b.path));
}

export function filesDirectlyIn({ paths }: ListedFiles, folder = "."): readonly string[] {
  const prefix = folder === "." ? "" : `${folder}/`;
  return paths.filter((path) => path.startsWith(prefix) && !path.includes("/", prefix.length));
}

export function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** For one question. */
export const maxOfflineCalls = 8;

export interface OfflineCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>>;
}

/** What the offline model does next: some calls at the same time, or its answer. */
export type OfflineStep =
  | { readonly type: "calls"; readonly text: string; readonly calls: readonly OfflineCall[] }
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

/** Paths of a file listing, and whether the tool says that there are more. */
interface FileListing {
  readonly paths: readonly string[];
  readonly isCut: boolean;
}

export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

const remark = /^[[(]|^(?:No |Found |Showing |Results|Only |…|\.\.\.)|\btruncated\b/i;
const cutWords =
  /truncat|left out|more (?:files|matches|results|lines|paths)|\bfirst \d|\bof \d[\d,]* |limit/i;

/** Where a tool left out the middle of a text, the lines beside the gap may be halves. */
const gap = /[^\n]*\n+\[… [^\n]* left out[^\n]*\]\n+[^\n]*/g;

/** Reads lines of paths. */
export function readListing(text: string, directory: string | undefined): FileListing {
  const lines = linesOf(text).filter((line) => line !== "");
  const paths = lines.filter((line) => !remark.test(line)).map((line) => relativePath(line, directory));
  return { paths: [...new Set(paths)].toSorted(byText), isCut: isCut(text) };
}

/** Lines per file, from a search that counts. */
export function readCounts(text: string, directory: string | undefined): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const line of linesOf(text)) {
    const [, path, count] = /^(.+):(\d+)$/.exec(line) ?? [];
    if (path !== undefined && !remark.test(path)) counts.set(relativePath(path, directory), Number(count));
  }
  return counts;
}

/** Reads `path:line:text`, sorted by path and line. */
export function readFoundLines(text: string, directory: string | undefined): readonly FoundLine[] {
  return text
    .split("\n")
    .flatMap((line) => {
      const [, path, number, content = ""] = /^((?:[A-Za-z]:)?[^:\n]+):(\d+):(.*)$/.exec(line) ?? [];
      if (path === undefined) return [];
      return [{ path: relativePath(path, directory), line: Number(number), text: content }];
    })
    .toSorted((a, b) => byText(a.path, b.path) || a.line - b.line);
}

interface FileText {
  readonly lines: readonly { readonly number: number; readonly text: string }[];
  readonly isCut: boolean;
}

/** Takes the line numbers off again that a reading tool puts before each line. */
export function readNumberedLines(text: string): FileText {
  const raw = text.split("\n");
  const numbered = raw.flatMap((line) => {
    const [, number, content = ""] = /^\s*(\d+)(?:\t|→)(.*)$/.exec(line) ?? [];
    return number === undefined ? [] : [{ number: Number(number), text: content }];
  });
  if (numbered.length === 0)
    return { lines: raw.map((line, at) => ({ number: at + 1, text: line })), isCut: false };
  return { lines: numbered, isCut: /^\[Lines? .*(?:Continue|of \d)/m.test(text) };
}

/** What a counting search reports about everything it found, and where its list continues. */
export function readCountRemark(text: string): {
  readonly total?: { readonly files: number; readonly lines: number };
  readonly shown?: number;
} {
  const [, lines, files] = /^\[.*?(\d+) matching lines? in (\d+) files?\./m.exec(text) ?? [];
  const [, shown] = /^\[Results \d+ to (\d+) of \d+\. Continue/m.exec(text) ?? [];
  return {
    total: lines === undefined ? undefined : { files: Number(files), lines: Number(lines) },
    shown: shown === undefined ? undefined : Number(shown),
  };
}

/** Whether a tool says that it left something out. */
export function isCut(text: string): boolean {
  return text.split("\n").some((line) => remark.test(line) && cutWords.test(line));
}

function linesOf(text: string): readonly string[] {
  return text
    .replace(gap, "")
    .split("\n")
    .map((line) => line.trim());
}

function relativePath(path: string, directory: string | undefined): string {
  const slashed = path.replaceAll("\\", "/");
  const base = directory?.replaceAll("\\", "/").replace(/\/+$/, "");
  if (base !== undefined && slashed.startsWith(`${base}/`)) return slashed.slice(base.length + 1);
  return slashed.replace(/^\.\//, "");
}

/** By code units: the same on every machine, whatever its language. */
export function byText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
