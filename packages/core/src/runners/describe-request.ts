import type { RequestPermissionRequest, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";

/** A call of one of our tools that says what a program of another vendor wants to do. */
export interface DescribedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly mcp?: { readonly server: string; readonly tool: string };
}

/** What is asked for and no tool of ours describes. */
export const otherTool = "RunnerTool";

/** The file as it is now, for distinguishing whole files from pieces; undefined where there is none. */
export type TextNow = (path: string) => string | undefined;

/**
 * The calls of our tools that together are what a permission is asked for: all of them must be allowed. Whatever names a
 * command is a command and whatever names files concerns each of them, whatever kind the program says it is. Pure.
 */
export function describeRequest(
  call: ToolCallUpdate,
  { directory, textNow }: { readonly directory: string; readonly textNow: TextNow },
): readonly DescribedCall[] {
  const raw = isRecord(call.rawInput) ? call.rawInput : {};
  const server = serverOf(call);
  if (server !== undefined) return [{ tool: otherTool, input: otherInput(call, raw), mcp: server }];
  const command = commandOf(raw) ?? (call.kind === "execute" ? titledCommand(call.title) : undefined);
  const edits = editsOf(call, textNow);
  const paths = pathsOf(call, raw);
  const changes = changingKinds.has(call.kind ?? "") || edits.length > 0;
  const described: DescribedCall[] = [];
  if (command !== undefined) described.push(commandCall(command, raw, directory));
  described.push(...edits);
  const known = new Set(edits.map(({ input }) => input["file_path"]));
  const others = paths.filter((path) => !known.has(path));
  if (changes) described.push(...others.map((path) => edit(path, "", "")));
  else if (call.kind === "read")
    described.push(...others.map((path) => ({ tool: "Read", input: { file_path: path } })));
  else if (call.kind === "search" && command === undefined)
    described.push(...(others.length === 0 ? [directory] : others).map((path) => search(raw, path)));
  const url = urlOf(raw);
  if (call.kind === "fetch" && url !== undefined)
    described.push({ tool: "WebFetch", input: { url, prompt: textOf(raw["prompt"]) ?? "" } });
  return described.length === 0 ? [{ tool: otherTool, input: otherInput(call, raw) }] : described;
}

/** The option that answers this one request; never one that would answer later ones as well. */
export function chooseOption(
  { options }: Pick<RequestPermissionRequest, "options">,
  answer: "allow" | "reject",
): string | undefined {
  return options.find(({ kind }) => kind === `${answer}_once`)?.optionId;
}

const changingKinds: ReadonlySet<string> = new Set(["edit", "delete", "move"]);

function editsOf({ content }: ToolCallUpdate, textNow: TextNow): readonly DescribedCall[] {
  return (content ?? []).flatMap((part): DescribedCall[] => {
    if (part.type !== "diff") return [];
    const { path, oldText, newText } = part;
    const now = textNow(path);
    // The whole file, as it is: the same as writing it.
    const isWhole = now === undefined || now === (oldText ?? "");
    if (isWhole) return [{ tool: "Write", input: { file_path: path, content: newText } }];
    return [edit(path, oldText ?? "", newText)];
  });
}

function edit(path: string, old: string, now: string): DescribedCall {
  return { tool: "Edit", input: { file_path: path, old_string: old, new_string: now } };
}

function search(raw: Readonly<Record<string, unknown>>, path: string): DescribedCall {
  const pattern = textOf(raw["pattern"]) ?? textOf(raw["query"]) ?? "*";
  return { tool: "Grep", input: { pattern, path } };
}

/** A command line as our shell would read it. */
function commandOf(raw: Readonly<Record<string, unknown>>): string | undefined {
  const given = raw["command"] ?? raw["cmd"];
  if (typeof given === "string") return given.trim() === "" ? undefined : given;
  if (!Array.isArray(given) || given.length === 0) return undefined;
  const words = given.map(String);
  const [shell = "", flag = "", script, ...rest] = words;
  const isShell = /(?:^|\/)(?:ba|da|z|k)?sh$/.test(shell) && /^-[a-z]*c$/.test(flag);
  if (isShell && script !== undefined && rest.length === 0) return script;
  return commandText(words);
}

/** Programs that say nothing else of a command have it as the title, some with the folder behind it. */
function titledCommand(title: string | null | undefined): string | undefined {
  const text = (title ?? "").replace(/ \[(?:current working directory|in directory) [\s\S]*$/, "").trim();
  const bare = /^`([^`]+)`$/.exec(text)?.[1] ?? text;
  return bare === "" ? undefined : bare;
}

function commandCall(
  command: string,
  raw: Readonly<Record<string, unknown>>,
  directory: string,
): DescribedCall {
  const cwd = textOf(raw["cwd"]) ?? textOf(raw["workdir"]) ?? textOf(raw["directory"]);
  const description = textOf(raw["description"]) ?? textOf(raw["reason"]);
  const line = cwd === undefined || cwd === "" || cwd === directory ? command : inFolder(cwd, command);
  return { tool: "Bash", input: { command: line, ...(description === undefined ? {} : { description }) } };
}

/** A program with its arguments as one line; options stay as they are, so that rules and people read them as usual. */
export function commandText(words: readonly string[]): string {
  return words.map((word) => (/^-[\w@%+=:,./-]+$/.test(word) ? word : shellWord(word))).join(" ");
}

/** A command that begins in another folder. */
export function inFolder(folder: string, command: string): string {
  return `cd ${shellWord(folder)} && ${command}`;
}

const pathKeys =
  /^(?:(?:abs(?:olute)?_?|file_?|notebook_?|dir_?|target_?|source_?|destination_?|old_?|new_?)?path|file|filename|filepath|target_?file)s?$/i;

/** Every file that is named: by places, and by the fields in which programs name files. */
function pathsOf({ locations }: ToolCallUpdate, raw: Readonly<Record<string, unknown>>): readonly string[] {
  const named = Object.entries(raw).flatMap(([key, value]) => (pathKeys.test(key) ? textsOf(value) : []));
  const { changes } = raw;
  const changed = isRecord(changes) ? Object.keys(changes) : [];
  return [...new Set([...(locations ?? []).map(({ path }) => path), ...named, ...changed])].filter(
    (path) => path !== "",
  );
}

function textsOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");
}

function urlOf(raw: Readonly<Record<string, unknown>>): string | undefined {
  const url = textOf(raw["url"]) ?? textOf(raw["uri"]);
  return url !== undefined && URL.canParse(url) ? url : undefined;
}

function serverOf({ name, title }: ToolCallUpdate): DescribedCall["mcp"] | undefined {
  for (const text of [name, title]) {
    const [, server, tool] = /^mcp__(.+?)__([\w.-]+)$/.exec(text?.trim() ?? "") ?? [];
    if (server !== undefined && tool !== undefined) return { server, tool };
  }
  return undefined;
}

function otherInput(
  { title, kind, name }: ToolCallUpdate,
  raw: Readonly<Record<string, unknown>>,
): Readonly<Record<string, unknown>> {
  return {
    title: title ?? name ?? "something that it does not name",
    ...(kind === undefined || kind === null ? {} : { kind }),
    ...(Object.keys(raw).length === 0 ? {} : { details: raw }),
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
