import { counted, offlineAnswer } from "./offline-answer.ts";
import { callIfOffered, failuresOf, type OfflineStep } from "./offline-call.ts";
import { callsOf, type OfflineConversation } from "./offline-conversation.ts";
import { nameDefinedIn } from "./outline-of.ts";
import { type FoundLine, isCut, readFoundLines, readListing, readNumberedLines } from "./read-listing.ts";

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
      return { type: "calls", say: `Searching for ${subject}.`, calls };
    const text = "Finding a word needs the tool Grep, which is not offered here.";
    return { type: "answer", text: offlineAnswer(text) };
  }
  if (found.length === 0 && searches.length === 1 && searches[0]?.isError === false) {
    const calls = callIfOffered(conversation, "Grep", searchFor(subject, true));
    return { type: "calls", say: "Nothing as it is; searching more loosely.", calls };
  }
  const definition = likelyDefinition(found, subject);
  if (definition !== undefined && callsOf(conversation, "Read").length === 0) {
    const offset = Math.max(1, definition.line - 3);
    const calls = callIfOffered(conversation, "Read", { file_path: definition.path, offset, limit: 20 });
    if (calls.length > 0) return { type: "calls", say: "Looking at the likely definition.", calls };
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
    "-n": true,
    ...(ignoresCase ? { "-i": true } : {}),
    head_limit: 300,
  };
}

/** The first line that by its form gives the word a meaning; tests and documents only if there is nothing else. */
function likelyDefinition(found: readonly FoundLine[], subject: string): FoundLine | undefined {
  const wanted = (subject.split(/[.#]|::/).at(-1) ?? subject).toLowerCase();
  const defining = found.filter(({ text }) => nameDefinedIn(text)?.toLowerCase() === wanted);
  const isCode = ({ path }: FoundLine) =>
    !/(?:^|[/._-])(?:tests?|specs?|fixtures?|docs?)(?:[/._-]|$)|\.md$/i.test(path);
  return defining.find(isCode) ?? defining[0];
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
      ? `# ${subject}\nNothing was found, neither as it is nor in another case.`
      : `# ${subject}\n${least}${counted(found.length, "line")} in ${counted(byFile.size, "file")}.`;
  const groups = [...byFile].slice(0, maxFiles).map(([path, lines]) => fileGroup(path, lines, definition));
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

function fileGroup(path: string, lines: readonly FoundLine[], definition: FoundLine | undefined): string {
  const shown = lines.slice(0, linesPerFile).map((line) => {
    const mark = line === definition ? "  ← likely the definition" : "";
    return `  ${line.line}: ${line.text.trim().slice(0, 160)}${mark}`;
  });
  const more = lines.length > linesPerFile ? [`  … ${lines.length - linesPerFile} more here`] : [];
  return [`- ${path} (${lines.length})`, ...shown, ...more].join("\n");
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
