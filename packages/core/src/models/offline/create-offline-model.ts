import type { AssistantBlock, AssistantMessage } from "../../conversation/message.ts";
import { noUsage } from "../../conversation/usage.ts";
import type { Model, ModelEvent, ModelFacts, ModelRequest } from "../model.ts";
import { counted, mapReport, offlineAnswer, offlineLabel, readStep } from "./offline-answer.ts";
import {
  callIfOffered,
  callsOf,
  childrenOf,
  exploreCalls,
  type FoundLine,
  failuresOf,
  filesDirectlyIn,
  isCut,
  listedFiles,
  maxOfflineCalls,
  type OfflineCall,
  type OfflineConversation,
  type OfflineStep,
  planCalls,
  readCountRemark,
  readFoundLines,
  readListing,
  readNumberedLines,
  readOfflineConversation,
  spawnToolName,
  withoutBuiltFolders,
} from "./offline-conversation.ts";
import { nameDefinedIn } from "./outline-of.ts";
import { manifestNames } from "./read-manifest.ts";

export const offlineFacts: ModelFacts = {
  id: "offline",
  provider: "offline",
  contextWindow: 200_000,
  maxOutputTokens: 32_000,
  price: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  supportsServerTools: false,
};

const chunkLength = 400;

/**
 * Serves where no model is configured: a deterministic program, labelled as such, that drives the real tools by simple
 * rules. It reaches no network, costs nothing and never asks for a change.
 */
export function createOfflineModel(): Model {
  return {
    facts: offlineFacts,
    async *stream(request, { signal }) {
      signal.throwIfAborted();
      for (const event of answerEvents(request)) {
        yield event;
        signal.throwIfAborted();
      }
    },
  };
}

function* answerEvents(request: ModelRequest): Generator<ModelEvent> {
  const step = nextOfflineStep(request);
  const mark = markOf(request);
  const id = `msg_offline_${mark}_${request.messages.filter(({ role }) => role === "assistant").length + 1}`;
  const model = offlineFacts.id;
  const answer: AssistantBlock = {
    type: "text",
    text: step.type === "answer" ? step.text : `[offline model] ${step.text}`,
  };
  const before = request.messages.flatMap(({ role, content }) =>
    role === "assistant" ? content.filter(({ type }) => type === "tool_use") : [],
  ).length;
  const calls = (step.type === "calls" ? step.calls : []).map(
    ({ name, input }, at): AssistantBlock => ({
      type: "tool_use",
      id: `toolu_offline_${mark}_${before + at + 1}`,
      name,
      input,
    }),
  );
  const message: AssistantMessage = { role: "assistant", content: [answer, ...calls] };
  yield { type: "message-started", id, model, usage: noUsage };
  for (const [index, block] of message.content.entries()) {
    if (block.type === "text") {
      yield { type: "block-started", index, block: { type: "text", text: "" } };
      // Pieces that end with a line where they can, and never in the middle of a pair.
      for (const text of block.text.match(
        new RegExp(`[\\s\\S]{1,${chunkLength}}(?:\\n|$)|[\\s\\S]{1,${chunkLength}}`, "gu"),
      ) ?? [])
        yield { type: "text-delta", index, text };
    }
    if (block.type === "tool_use") {
      yield { type: "block-started", index, block: { ...block, input: {} } };
      yield { type: "input-delta", index, json: JSON.stringify(block.input) };
    }
    yield { type: "block-ended", index, block };
  }
  const stopReason = calls.length > 0 ? "tool_use" : "end_turn";
  yield { type: "message-ended", id, model, message, stopReason, usage: noUsage };
}

/** Ids must differ between conversations that are shown side by side, and be the same when one is run again. */
function markOf({ system, messages }: ModelRequest): string {
  const text = JSON.stringify([system, messages[0] ?? ""]);
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}

/** What the offline model does next, from the conversation alone: the same request always gets the same answer. */
export function nextOfflineStep(request: ModelRequest): OfflineStep {
  const conversation = readOfflineConversation(request);
  const { task, wantsChange } = readOfflineTask(conversation.task);
  const step = stepFor(task, conversation);
  if (step.type === "answer") return wantsChange ? { ...step, text: withRefusal(step.text) } : step;
  const calls = step.calls.slice(0, maxOfflineCalls - conversation.calls.length);
  if (calls.length > 0) return { ...step, calls };
  const text = `The offline model makes at most ${maxOfflineCalls} calls for a question, and they are used up.`;
  return { type: "answer", text: offlineAnswer(text) };
}

function stepFor(task: OfflineTask, conversation: OfflineConversation): OfflineStep {
  switch (task.type) {
    case "map": {
      // Lists the files, reads what describes the project (and sends children out where it can), then reports.
      const looked = callsOf(conversation, "Glob").length + callsOf(conversation, "Grep").length;
      if (looked === 0) {
        const path = pathOf(task.folder);
        const calls = [
          ...callIfOffered(conversation, "Glob", { pattern: "**/*", ...path }),
          ...callIfOffered(conversation, "Grep", countLines(path)),
        ];
        if (calls.length > 0) return { type: "calls", text: "Listing the files.", calls };
        const text = "A map needs the tool Glob or Grep, and neither is offered here.";
        return { type: "answer", text: offlineAnswer(text) };
      }
      const mayDelegate = task.folder === undefined && spawnToolName(conversation) !== undefined;
      const further = lookFurther(conversation, task.folder, mayDelegate);
      if (further.length > 0)
        return { type: "calls", text: "There are more files; listing on.", calls: further };
      const files = listedFiles(conversation);
      const hasRead = callsOf(conversation, "Read").length + childrenOf(conversation, "Explore").length > 0;
      if (!hasRead) {
        const children = mayDelegate ? exploreCalls(conversation, files) : [];
        const room = maxOfflineCalls - looked - (children.length > 0 ? children.length + 1 : 0);
        // The README and manifests of the folder that is mapped.
        const here = filesDirectlyIn(files, task.folder);
        const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
        const readme = here.filter((path) => /^readme(?:\.\w+)?$/i.test(nameOf(path))).slice(0, 1);
        const manifests = manifestNames.flatMap((name) => here.filter((path) => nameOf(path) === name));
        const reads = [...readme, ...manifests]
          .slice(0, Math.min(room, 4))
          .flatMap((file) => callIfOffered(conversation, "Read", { file_path: file, limit: 300 }));
        const calls = [...reads, ...children];
        if (calls.length > 0)
          return { type: "calls", text: describeNext(reads.length, children.length), calls };
      }
      const plan = mayDelegate ? planCalls(conversation, files) : [];
      if (plan.length > 0)
        return { type: "calls", text: "The children are back; one more plans a first reading.", calls: plan };
      return { type: "answer", text: mapReport(conversation, files, task.folder) };
    }
    case "find":
      return findStep(conversation, task.subject);
    case "read":
      return readStep(conversation, task.file);
  }
}

function withRefusal(text: string): string {
  const refusal =
    "You asked for a change. The offline model makes none; this is what it can show you instead.";
  return text.replace(offlineLabel, `${offlineLabel}\n\n${refusal}`);
}

/** How many files one look at their sizes lists; more would not fit into one answer of the tool. */
const filesPerLook = 500;

/** Once more where the first list was too short for all files, as far as the calls that are still needed allow. */
function lookFurther(
  conversation: OfflineConversation,
  folder: string | undefined,
  mayDelegate: boolean,
): readonly OfflineCall[] {
  const counts = callsOf(conversation, "Grep");
  const [first] = counts;
  if (first === undefined || counts.length > 1) return [];
  const { total, shown } = readCountRemark(first.text);
  if (total === undefined || shown === undefined) return [];
  const needed = Math.ceil((total.files - shown) / filesPerLook);
  const pages = Math.min(needed, mayDelegate ? 1 : 2);
  return Array.from({ length: pages }, (_, at) => shown + at * filesPerLook).flatMap((offset) =>
    callIfOffered(conversation, "Grep", { ...countLines(pathOf(folder)), offset }),
  );
}

/** Every line matches, so the count of a file is its length. */
function countLines(path: { readonly path?: string }): Readonly<Record<string, unknown>> {
  const glob = withoutBuiltFolders(path.path);
  return { pattern: "^", output_mode: "count", head_limit: filesPerLook, glob, ...path };
}

function pathOf(folder: string | undefined): { readonly path?: string } {
  return folder === undefined || folder === "." ? {} : { path: folder };
}

function describeNext(reads: number, children: number): string {
  if (children === 0) return "Reading what describes the project.";
  const reading = reads === 0 ? "" : ", and reading what describes the project";
  return `Sending a child agent into each of the largest folders${reading}.`;
}

const maxFiles = 30;
const linesPerFile = 6;

/** Searches for a word as it is, then more loosely, shows the likely definition, and lists the rest by file. */
export function findStep(conversation: OfflineConversation, subject: string): OfflineStep {
  const searches = callsOf(conversation, "Grep");
  const found = searches.flatMap(({ text, isError }) =>
    isError ? [] : readFoundLines(text, conversation.directory),
  );
  if (searches.length === 0) {
    const calls = [
      ...callIfOffered(conversation, "Grep", searchFor(subject, false)),
      ...callIfOffered(conversation, "Glob", { pattern: `**/*${subject.replace(/[^\w.-]+/g, "*")}*` }),
    ];
    if (calls.some(({ name }) => name === "Grep"))
      return { type: "calls", text: `Searching for ${subject}.`, calls };
    const text = "Finding a word needs the tool Grep, which is not offered here.";
    return { type: "answer", text: offlineAnswer(text) };
  }
  if (found.length === 0 && searches.length === 1 && searches[0]?.isError === false) {
    const calls = callIfOffered(conversation, "Grep", searchFor(subject, true));
    return { type: "calls", text: "No exact match; searching more loosely.", calls };
  }
  // The first line that by its form gives the word a meaning; tests and documents only if there is nothing else.
  const wanted = (subject.split(/[.#]|::/).at(-1) ?? subject).toLowerCase();
  const defining = found.filter(({ text }) => nameDefinedIn(text)?.toLowerCase() === wanted);
  const isCode = ({ path }: FoundLine) =>
    !/(?:^|[/._-])(?:tests?|specs?|fixtures?|docs?)(?:[/._-]|$)|\.md$/i.test(path);
  const definition = defining.find(isCode) ?? defining[0];
  if (definition !== undefined && callsOf(conversation, "Read").length === 0) {
    const offset = Math.max(1, definition.line - 3);
    const calls = callIfOffered(conversation, "Read", { file_path: definition.path, offset, limit: 20 });
    if (calls.length > 0) return { type: "calls", text: "Looking at the likely definition.", calls };
  }
  return { type: "answer", text: findReport(conversation, { subject, found, definition }) };
}

function searchFor(subject: string, isLoose: boolean): Readonly<Record<string, unknown>> {
  const plain = subject.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const before = /^\w/.test(subject) ? "\\b" : "";
  const after = /\w$/.test(subject) ? "\\b" : "";
  const ignoresCase = isLoose || subject === subject.toLowerCase();
  return {
    pattern: isLoose ? plain.replace(/[\s_-]+/g, "[\\s_-]*") : `${before}${plain}${after}`,
    output_mode: "content",
    glob: withoutBuiltFolders(),
    "-n": true,
    ...(ignoresCase ? { "-i": true } : {}),
    head_limit: 300,
  };
}

interface Issue {
  readonly subject: string;
  readonly found: readonly FoundLine[];
  readonly definition: FoundLine | undefined;
}

function findReport(conversation: OfflineConversation, { subject, found, definition }: Issue): string {
  const byFile = Map.groupBy(found, ({ path }) => path);
  const cut = callsOf(conversation, "Grep").some(({ text }) => isCut(text));
  const least = cut ? "at least " : "";
  const head =
    found.length === 0
      ? `# ${subject}\nNo file contains it, in any letter case.`
      : `# ${subject}\n${least}${counted(found.length, "line")} in ${counted(byFile.size, "file")}.`;
  const groups = [...byFile].slice(0, maxFiles).map(([path, lines]) => {
    const shown = lines.slice(0, linesPerFile).map((line) => {
      const mark = line === definition ? "  ← likely the definition" : "";
      return `  ${line.line}: ${line.text.trim().slice(0, 160)}${mark}`;
    });
    const more = lines.length > linesPerFile ? [`  … ${lines.length - linesPerFile} more here`] : [];
    return [`- ${path} (${lines.length})`, ...shown, ...more].join("\n");
  });
  const more = byFile.size > maxFiles ? `… and ${counted(byFile.size - maxFiles, "more file")}` : undefined;
  return offlineAnswer(
    head,
    definitionText(conversation, definition),
    groups.length === 0 ? undefined : ["## By file", ...groups].join("\n"),
    more,
    namedFiles(conversation),
    failuresOf(conversation),
  );
}

function definitionText(
  conversation: OfflineConversation,
  definition: FoundLine | undefined,
): string | undefined {
  if (definition === undefined) return undefined;
  const read = callsOf(conversation, "Read").find(({ isError }) => !isError);
  const lines = read === undefined ? [] : readNumberedLines(read.text).lines;
  const code = lines.map(({ number, text }) => `${String(number).padStart(5)}  ${text}`).join("\n");
  const where = `Likely the definition, by its form: ${definition.path}:${definition.line}`;
  return code === "" ? where : `${where}\n\n${code}`;
}

function namedFiles(conversation: OfflineConversation): string | undefined {
  const paths = callsOf(conversation, "Glob")
    .filter(({ isError }) => !isError)
    .flatMap(({ text }) => readListing(text, conversation.directory).paths);
  if (paths.length === 0) return undefined;
  const more = paths.length > 10 ? ` and ${paths.length - 10} more` : "";
  return `Files with it in their name: ${paths.slice(0, 10).join(", ")}${more}`;
}

/** What the offline model can be asked for. */
type OfflineTask =
  | { readonly type: "map"; readonly folder?: string }
  | { readonly type: "find"; readonly subject: string }
  | { readonly type: "read"; readonly file: string };

interface ReadTask {
  readonly task: OfflineTask;
  /** The text also asks for a change, which this model never makes. */
  readonly wantsChange: boolean;
}

const findSigns =
  /\b(?:where(?:'s| is| are| do| does| did)?|find|locate|search(?: for)?|grep(?: for)?|look for|(?:who|what) (?:uses|calls|imports|references)|(?:usages?|uses|callers|references|occurrences) (?:of|to))\b/i;
const readSigns =
  /\b(?:read|summari[sz]e|explain|outline|describe|show|open|view|cat|what(?:'s| is| does))\b/i;
const mapSigns =
  /\b(?:map|overview|structure|layout|tour|explore|plan|architecture|what(?:'s| is) (?:here|in|this))\b/i;
const changeSigns =
  /^(?:please |can you |could you )?(?:add|fix|change|write|create|implement|refactor|rename|delete|remove|update|edit|move|replace|install|commit|make)\b/i;

/** Words around a subject that are not part of it. */
const leading =
  /^(?:is|are|do|does|did|we|you|i|the|an?|all|every|any|for|of|to|this|that|usages?|uses|callers|references|occurrences|function|class|method|variable|type|interface|constant|word|text|string|symbol|identifier|file|name|definition|code|me|out|where|how|which|files?|uses?|calls?|mentions?|contains?)\s+/i;
const trailing =
  /\s+(?:is|are|was|used|uses|defined|declared|called|implemented|handled|located|set|configured|mentioned|referenced|imported|exported|tested|done|made|here|function|class|method|variable|type|interface|constant|come from|in (?:this|the) (?:\w+\s?){1,2})$/i;

const fileName =
  /^(?:[\w@.~/\\-]*\.[A-Za-z][A-Za-z0-9]{0,9}|(?:[\w@.~/\\-]*\/)?(?:Makefile|Dockerfile|README|LICENSE|CHANGELOG|Justfile|Gemfile|Rakefile))$/;

/** Decides by words alone; what fits nothing asks for the map. */
export function readOfflineTask(text: string): ReadTask {
  const line = text.replace(/\s+/g, " ").trim().slice(0, 2000);
  return { task: decide(line), wantsChange: changeSigns.test(line) };
}

function decide(line: string): OfflineTask {
  const folder = folderIn(line);
  if (folder !== undefined) return { type: "map", folder };
  const find = findSigns.exec(line);
  if (find !== null) {
    const subject = subjectIn(line.slice(find.index + find[0].length));
    if (subject !== undefined) return { type: "find", subject };
  }
  const words = line.split(" ").map((word) => word.replace(/^[`"'(]+|[`"'),:;?!.]+$/g, ""));
  const file = words.find((word) => fileName.test(word));
  if (file !== undefined && (readSigns.test(line) || line === file)) return { type: "read", file };
  if (mapSigns.test(line)) return { type: "map" };
  const name = identifierIn(line);
  return name === undefined ? { type: "map" } : { type: "find", subject: name };
}

/** `map src`, `map the folder x`, `what is in src/tools`. */
function folderIn(line: string): string | undefined {
  const named = /\b(?:folder|directory)[ ]+[`"']?([\w@./\\-]+)[`"']?/i.exec(line)?.[1];
  const other =
    /\b([\w@./-]+\/)(?=[\s?.!,]|$)|\b(?:in|map|explore)[ ]+[`"']?([\w@.-]+(?:\/[\w@.-]+)+|src|lib|test|tests|docs|app|packages)[`"']?(?=[\s?.!,]|$)/i.exec(
      line,
    );
  const found = named ?? (mapSigns.test(line) ? (other?.[1] ?? other?.[2]) : undefined);
  const bare = found?.replace(/^[`"']|[`"',.?!]+$/g, "").replace(/(?<=.)\/+$/, "");
  if (found === "." || found === "./") return ".";
  return bare === undefined || bare === "" || /\.[A-Za-z][A-Za-z0-9]{0,9}$/.test(bare) ? undefined : bare;
}

function subjectIn(rest: string): string | undefined {
  const [, back, double, single] = /`([^`]+)`|"([^"]+)"|(?<!\w)'([^']+)'(?!\w)/.exec(rest) ?? [];
  const quoted = back ?? double ?? single;
  if (quoted !== undefined) return quoted;
  let text = rest
    .replace(/[?!.,:;]+(?=\s|$)/g, " ")
    .replace(/\s+/g, " ")
    .trim();
  for (let before = ""; before !== text; ) {
    before = text;
    text = `${text} `.replace(leading, "").trim().replace(trailing, "").trim();
  }
  const name = identifierIn(text);
  if (name !== undefined) return name;
  return /^[\p{L}\p{N}_$.@#/-]{2,}(?: [\p{L}\p{N}_$.@#/-]+){0,3}$/u.test(text) ? text : undefined;
}

/** A word that only a program would contain: camelCase, snake_case, dotted, with a call's parentheses, or quoted. */
function identifierIn(text: string): string | undefined {
  const quoted = /`([^`\s]+)`/.exec(text)?.[1];
  if (quoted !== undefined) return quoted;
  const words = text.match(/[A-Za-z_$][\w$]*(?:(?:\.|::|#)[A-Za-z_$][\w$]*)*(?:\(\))?/g) ?? [];
  const found = words.find((word) => /[a-z0-9][A-Z]|_\w|\(\)$|::|\w#\w|^[A-Z]{2,}_|\w\.\w/.test(word));
  return found?.replace(/\(\)$/, "");
}
