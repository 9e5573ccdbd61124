import { languageOf } from "./language-of.ts";
import { counted, offlineAnswer } from "./offline-answer.ts";
import { callIfOffered, failuresOf, type OfflineStep } from "./offline-call.ts";
import { callsOf, type FinishedCall, type OfflineConversation } from "./offline-conversation.ts";
import {
  firstComment,
  headingsOf,
  importsOf,
  type NumberedLine,
  type OutlineEntry,
  outlineOf,
} from "./outline-of.ts";
import { readListing, readNumberedLines } from "./read-listing.ts";
import { readManifest } from "./read-manifest.ts";

const maxEntries = 60;

/** Reads a file, looking for it by name where the path is not right, and extracts what has a form. */
export function readStep(conversation: OfflineConversation, file: string): OfflineStep {
  const reads = callsOf(conversation, "Read");
  const done = reads.find(({ isError }) => !isError);
  if (done !== undefined) return { type: "answer", text: fileReport(done) };
  if (reads.length === 0) {
    const calls = callIfOffered(conversation, "Read", { file_path: file });
    if (calls.length > 0) return { type: "calls", say: `Reading ${file}.`, calls };
    return {
      type: "answer",
      text: offlineAnswer("Reading a file needs the tool Read, which is not offered here."),
    };
  }
  const searches = callsOf(conversation, "Glob");
  const name = file.slice(file.lastIndexOf("/") + 1);
  if (searches.length === 0) {
    const pattern = name.includes(".") ? `**/${name}` : `**/${name}*`;
    const calls = callIfOffered(conversation, "Glob", { pattern });
    if (calls.length > 0) return { type: "calls", say: `Looking for files named ${name}.`, calls };
  }
  const candidates = searches.flatMap(({ text, isError }) =>
    isError ? [] : readListing(text, conversation.directory).paths,
  );
  const nearest = candidates.toSorted((a, b) => a.split("/").length - b.split("/").length)[0];
  if (nearest !== undefined && reads.length === 1) {
    const calls = callIfOffered(conversation, "Read", { file_path: nearest });
    return { type: "calls", say: `Reading ${nearest}.`, calls };
  }
  const text = `The file ${file} could not be read.`;
  return { type: "answer", text: offlineAnswer(text, failuresOf(conversation)) };
}

function fileReport({ input, text }: FinishedCall): string {
  const path = String(input["file_path"]);
  const { lines, isCut } = readNumberedLines(text);
  const language = languageOf(path);
  const size = isCut ? `the first ${counted(lines.length, "line")}` : counted(lines.length, "line");
  return offlineAnswer(
    `# ${path}\n${language === undefined ? "" : `${language}, `}${size}. What follows is taken from the text by its form.`,
    ...(language === "Markdown" ? markdownSections(lines) : codeSections(path, lines)),
  );
}

function markdownSections(lines: readonly NumberedLine[]): readonly (string | undefined)[] {
  const start = lines.findIndex(({ text }) => /^[\p{L}\p{N}*_`"'[]/u.test(text));
  const end = lines.findIndex(({ text }, at) => at > start && text.trim() === "");
  const paragraph = start === -1 ? [] : lines.slice(start, end === -1 ? undefined : end);
  const said = paragraph.map(({ text }) => text.trim()).join(" ");
  return [
    said === "" ? undefined : `First paragraph: ${said.slice(0, 800)}`,
    entryList("## Headings", headingsOf(lines)),
  ];
}

function codeSections(path: string, lines: readonly NumberedLine[]): readonly (string | undefined)[] {
  const comment = firstComment(lines);
  const imports = importsOf(lines);
  const outline = outlineOf(lines);
  const name = path.slice(path.lastIndexOf("/") + 1);
  const { title, commands, entries } = readManifest(name, lines.map(({ text }) => text).join("\n"));
  const facts = [
    ...(title === undefined ? [] : [title]),
    ...entries.map((entry) => `- entry: ${entry}`),
    ...commands.map(([command, runs]) => `- ${command}${runs === "" ? "" : `: ${runs}`}`),
  ];
  const isBare = comment === undefined && imports.length + outline.length + facts.length === 0;
  const beginning = lines
    .slice(0, 20)
    .map(({ number, text }) => `${String(number).padStart(5)}  ${text.slice(0, 200)}`);
  return [
    comment === undefined ? undefined : `First comment: ${comment}`,
    facts.length === 0 ? undefined : ["## As a manifest", ...facts.slice(0, maxEntries)].join("\n"),
    imports.length === 0 ? undefined : `Needs: ${imports.slice(0, 40).join(", ")}`,
    entryList("## Named in it", outline),
    isBare
      ? ["Nothing in it has a form that this program knows. It begins:", ...beginning].join("\n")
      : undefined,
  ];
}

function entryList(heading: string, entries: readonly OutlineEntry[]): string | undefined {
  if (entries.length === 0) return undefined;
  const rows = entries.slice(0, maxEntries).map(({ line, text }) => `- ${line}: ${text.slice(0, 160)}`);
  const more = entries.length > maxEntries ? [`- … and ${entries.length - maxEntries} more`] : [];
  return [heading, ...rows, ...more].join("\n");
}
