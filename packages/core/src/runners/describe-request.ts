import type { RequestPermissionRequest, ToolCallUpdate } from "@agentclientprotocol/sdk";
import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { shellWord } from "@retinue/base/foundation/shell-word.ts";

/** A call of one of our tools that says what a program of another vendor wants to do. */
export interface DescribedCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** Whose tool it is, where it is one of an MCP server. */
  readonly mcp?: { readonly server: string; readonly tool: string };
  /** What the program wants may be this: rules that name it hold, and nothing else is asked about it. */
  readonly onlyRules?: true;
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
  const kind = typeof call.kind === "string" ? call.kind.toLowerCase() : "other";
  const mcp = serverOf(call);
  const described: DescribedCall[] =
    mcp === undefined ? [] : [{ tool: otherTool, input: otherInput(call, raw), mcp }];
  const { content } = call;

  const edits = (content ?? []).flatMap((part): DescribedCall[] => {
    if (part.type !== "diff") return [];
    const { path, oldText, newText } = part;
    const now = textNow(path);
    // The whole file, as it is: the same as writing it.
    const isWhole = now === undefined || now === (oldText ?? "");
    if (isWhole) return [{ tool: "Write", input: { file_path: path, content: newText } }];
    return [edit(path, oldText ?? "", newText)];
  });
  // The input of a server's tool is its own, unless the program says what it does here.
  if (mcp !== undefined && !localKinds.has(kind)) return [...described, ...edits];
  // Every command that is named, in whatever fields programs have for it.
  const depth = kind === "execute" ? deepest : 0;
  const found = recordsIn(raw, depth).flatMap((record): readonly string[] => {
    const given = ["command", "cmd", "commandLine", "command_line", "script"].flatMap((key) => {
      const line = commandOf(record[key], record["args"] ?? record["arguments"]);
      return line === undefined ? [] : [line];
    });
    return [...given, ...textsOf(record["commands"] ?? [])];
  });
  const commands = [...new Set(found)].filter((line) => line.trim() !== "");
  const titled = mcp === undefined && kind === "execute" ? titledCommand(call.title) : undefined;
  const lines = commands.length === 0 && titled !== undefined ? [titled] : commands;
  described.push(...lines.map((line) => commandCall(line, raw, directory)), ...edits);
  const known = new Set(edits.map(({ input }) => input["file_path"]));
  const paths = pathsOf(call, raw, kind).filter((path) => !known.has(path));
  // What changes or reads something without a name may be anything of the folder.
  const orFolder = paths.length === 0 && described.length === 0 ? [directory] : paths;
  if (changingKinds.has(kind) || edits.length > 0)
    described.push(...orFolder.map((path) => edit(path, "", "")));
  else if (kind === "read") described.push(...orFolder.map(read));
  else if (kind === "search") {
    if (lines.length === 0) described.push(...orFolder.map((path) => search(raw, path)));
  } else if (kind === "fetch") described.push(...urlsOf(call, raw).map((url) => fetchOf(url, raw)));
  else if (kind !== "execute") {
    if (described.length === 0) described.push({ tool: otherTool, input: otherInput(call, raw) });
    const calls = [
      ...paths.flatMap((path) => [read(path), edit(path, "", "")]),
      ...urlsIn(raw).map((url) => fetchOf(url, raw)),
    ];
    described.push(...calls.map((each): DescribedCall => ({ ...each, onlyRules: true })));
  }
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
const localKinds: ReadonlySet<string> = new Set([...changingKinds, "read", "search", "execute", "fetch"]);
/** Programs put what matters into objects and lists of their own, and no deeper. */
const deepest = 3;

function recordsIn(value: unknown, depth: number): readonly Readonly<Record<string, unknown>>[] {
  if (Array.isArray(value)) return value.flatMap((each: unknown) => recordsIn(each, depth));
  if (!isRecord(value)) return [];
  if (depth === 0) return [value];
  return [value, ...Object.values(value).flatMap((each) => recordsIn(each, depth - 1))];
}

function edit(path: string, old: string, now: string): DescribedCall {
  return { tool: "Edit", input: { file_path: path, old_string: old, new_string: now } };
}

function read(path: string): DescribedCall {
  return { tool: "Read", input: { file_path: path } };
}

function search(raw: Readonly<Record<string, unknown>>, path: string): DescribedCall {
  const pattern = textOf(raw["pattern"]) ?? textOf(raw["query"]) ?? "*";
  return { tool: "Grep", input: { pattern, path } };
}

function fetchOf(url: string, raw: Readonly<Record<string, unknown>>): DescribedCall {
  return { tool: "WebFetch", input: { url, prompt: textOf(raw["prompt"]) ?? "" } };
}

/** A command line as our shell would read it. */
function commandOf(given: unknown, more: unknown): string | undefined {
  const rest = Array.isArray(more) ? more.map(String) : [];
  if (typeof given === "string") return rest.length === 0 ? given : `${given} ${commandText(rest)}`;
  if (!Array.isArray(given) || given.length === 0) return undefined;
  const words = [...given.map(String), ...rest];
  const [shell = "", flag = "", script, ...others] = words;
  const isShell = /(?:^|\/)(?:ba|da|z|k)?sh$/.test(shell) && /^-[a-z]*c$/.test(flag);
  if (isShell && script !== undefined && others.length === 0) return script;
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

/** Every file that is named: by places, by the fields in which programs name files, and in patches. */
function pathsOf(
  { locations }: ToolCallUpdate,
  raw: Readonly<Record<string, unknown>>,
  kind: string,
): readonly string[] {
  const isPath = (key: string): boolean =>
    pathKeys.test(key) || (kind === "move" && /^(?:from|to|src|dest|source|destination)$/i.test(key));
  const named = recordsIn(raw, deepest).flatMap((record) =>
    Object.entries(record).flatMap(([key, value]) => {
      if (isPath(key)) return textsOf(value);
      return typeof value === "string" ? filesOfPatch(value) : [];
    }),
  );
  const { changes } = raw;
  const changed = isRecord(changes) ? Object.keys(changes) : [];
  return [...new Set([...(locations ?? []).map(({ path }) => path), ...named, ...changed])]
    .map((path) => (path.startsWith("file://") ? pathOfUrl(path) : path))
    .filter((path) => path !== "");
}

function pathOfUrl(url: string): string {
  return decodeURIComponent(url.replace(/^file:\/\/(?:localhost)?/, "").replace(/%(?![0-9a-f]{2})/gi, "%25"));
}

/** The files that a patch adds, changes, deletes or moves, in the two forms of patches. */
function filesOfPatch(text: string): readonly string[] {
  if (!/^\*\*\* Begin Patch|^(?:---|\+\+\+) \S/m.test(text)) return [];
  const found = text.matchAll(
    /^(?:\*\*\* (?:Add File|Update File|Delete File|Move to): (.+)|(?:---|\+\+\+) (?:[ab]\/)?([^\t\n\r]+).*)$/gm,
  );
  return [...found].flatMap(([, one, other]) => {
    const path = (one ?? other ?? "").trim();
    return path === "" || path === "/dev/null" ? [] : [path];
  });
}

function textsOf(value: unknown): readonly string[] {
  return (Array.isArray(value) ? value : [value]).filter((each) => typeof each === "string");
}

function urlsIn(raw: Readonly<Record<string, unknown>>): readonly string[] {
  const named = recordsIn(raw, deepest).flatMap((record) =>
    ["url", "uri", "urls"].flatMap((key) => textsOf(record[key] ?? [])),
  );
  return [...new Set(named)].filter((url) => URL.canParse(url) && !url.startsWith("file:"));
}

/** The pages that are named; of a program that has no field for them those in its words. */
function urlsOf({ title }: ToolCallUpdate, raw: Readonly<Record<string, unknown>>): readonly string[] {
  const named = urlsIn(raw);
  if (named.length > 0) return named;
  const words = [title ?? "", ...Object.values(raw).flatMap(textsOf)].join("\n");
  const found = [...words.matchAll(/https?:\/\/[^\s"'<>()[\]{}]+/g)].map(([url]) =>
    url.replace(/[.,;:]+$/, ""),
  );
  return [...new Set(found)].filter((url) => URL.canParse(url));
}

function serverOf({ name, title }: ToolCallUpdate): DescribedCall["mcp"] | undefined {
  for (const text of [name, title]) {
    const [, server, tool] = /^mcp__([\w.-]+?)__([\w.-]+)$/.exec(text?.trim() ?? "") ?? [];
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
