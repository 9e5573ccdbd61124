import {
  byText,
  callIfOffered,
  callsOf,
  childrenOf,
  type FinishedCall,
  failuresOf,
  filesDirectlyIn,
  foldersBelow,
  type ListedFiles,
  type OfflineConversation,
  type OfflineStep,
  readListing,
  readNumberedLines,
  sum,
} from "./offline-conversation.ts";
import {
  firstComment,
  headingsOf,
  importsOf,
  type NumberedLine,
  type OutlineEntry,
  outlineOf,
} from "./outline-of.ts";
import { type ManifestFacts, readManifest, readReadme } from "./read-manifest.ts";

/** The first line of every answer, so that this program is not taken for a language model. */
export const offlineLabel = "[offline model: a built-in program, not a language model]";

export const offlineHelp = `The offline model answers "what is here", "map FOLDER", "where is NAME" and "read FILE".
It runs the real tools by fixed rules and changes nothing.
For a language model, set ANTHROPIC_API_KEY, or pass --model provider/model:
openai/… with OPENAI_API_KEY, or ollama/… for one on this machine.`;

export function offlineAnswer(...sections: readonly (string | undefined)[]): string {
  const filled = sections.filter((section) => section !== undefined && section.trim() !== "");
  return [offlineLabel, ...filled, offlineHelp].join("\n\n");
}

export function counted(count: number, thing: string): string {
  return `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`;
}

const languages: ReadonlyMap<string, string> = new Map(
  `ts TypeScript|tsx TypeScript|mts TypeScript|cts TypeScript|js JavaScript|jsx JavaScript|mjs JavaScript|cjs JavaScript
  py Python|pyi Python|go Go|rs Rust|java Java|kt Kotlin|kts Kotlin|scala Scala|rb Ruby|php PHP|cs C#|fs F#|swift Swift
  c C|h C|cc C++|cpp C++|cxx C++|hpp C++|m Objective-C|ex Elixir|exs Elixir|erl Erlang|hs Haskell|ml OCaml|clj Clojure
  lua Lua|pl Perl|r R|jl Julia|dart Dart|zig Zig|nim Nim|sh Shell|bash Shell|zsh Shell|ps1 PowerShell|sql SQL
  html HTML|css CSS|scss CSS|less CSS|vue Vue|svelte Svelte|md Markdown|mdx Markdown|rst Text|txt Text
  json JSON|jsonc JSON|yaml YAML|yml YAML|toml TOML|xml XML|proto Protobuf|graphql GraphQL|tf Terraform|ipynb Notebook`
    .split(/\||\n/)
    .map((entry) => {
      const [extension = "", ...name] = entry.trim().split(" ");
      return [extension, name.join(" ")] as const;
    }),
);

/** Kinds of text that say little about what a project is written in. */
const plainKinds = new Set(["Markdown", "Text", "JSON", "YAML", "TOML", "XML"]);

export function languageOf(path: string): string | undefined {
  const [, extension] = /\.([A-Za-z0-9]+)$/.exec(path) ?? [];
  return extension === undefined ? undefined : languages.get(extension.toLowerCase());
}

/** Languages by the number of files, programming languages first. */
export function rankLanguages(paths: readonly string[]): readonly (readonly [string, number])[] {
  const counts = new Map<string, number>();
  for (const path of paths) {
    const language = languageOf(path);
    if (language !== undefined) counts.set(language, (counts.get(language) ?? 0) + 1);
  }
  const rank = ([name, count]: readonly [string, number]) =>
    plainKinds.has(name) ? count : count + 1_000_000;
  return [...counts].toSorted((a, b) => rank(b) - rank(a) || (a[0] < b[0] ? -1 : 1));
}

const maxChildText = 4000;
const maxRows = 20;

export function mapReport(
  conversation: OfflineConversation,
  files: ListedFiles,
  folder: string | undefined,
): string {
  if (files.paths.length === 0) {
    const where = folder === undefined ? "here" : `in ${folder}`;
    return offlineAnswer(`No files were found ${where}.`, failuresOf(conversation));
  }
  const texts = callsOf(conversation, "Read").flatMap(({ input, text, isError }) => {
    const path = input["file_path"];
    if (isError || typeof path !== "string") return [];
    const lines = readNumberedLines(text).lines.map((line) => line.text);
    return [{ name: path.slice(path.lastIndexOf("/") + 1), lines }];
  });
  const readme = texts.flatMap(({ name, lines }) =>
    /^readme/i.test(name) ? [readReadme(lines) ?? ""] : [],
  )[0];
  const documents: Documents = {
    ...(readme === undefined || readme === "" ? {} : { readme: `## What its README says\n${readme}` }),
    manifests: texts
      .filter(({ name }) => !/^readme/i.test(name))
      .map(({ name, lines }) => readManifest(name, lines.join("\n"))),
  };
  return offlineAnswer(
    summary(conversation, files, folder),
    documents.readme,
    folderTable(files, folder),
    rootFiles(files, folder),
    entryPoints(files, documents.manifests),
    commands(documents.manifests),
    children(conversation),
    failuresOf(conversation),
  );
}

function summary({ directory }: OfflineConversation, files: ListedFiles, folder: string | undefined): string {
  const { paths, lines, total, isCut } = files;
  const name = folder === undefined || folder === "." ? (directory ?? "this folder") : folder;
  const languages = rankLanguages(paths)
    .slice(0, 6)
    .map(([language, count]) => `${language} ${count}`);
  const tests = paths.filter((path) =>
    /(?:^|[/._-])(?:tests?|specs?|__tests__)(?:[/._-]|$)/i.test(path),
  ).length;
  const fileCount = Math.max(paths.length, total?.files ?? 0);
  const lineCount = total?.lines ?? sum([...lines.values()]);
  const size = lineCount === 0 ? "" : `, ${counted(lineCount, "line")} of text`;
  const isLowerBound = isCut && total === undefined;
  return [
    `# Map of ${name}`,
    `${isLowerBound ? "At least " : ""}${counted(fileCount, "file")}${size}.`,
    isCut ? `The tools listed ${counted(paths.length, "file")} by name; what follows counts only those.` : "",
    languages.length === 0 ? "" : `Files by language: ${languages.join(", ")}.`,
    tests === 0 ? "" : `${counted(tests, "file")} with "test" or "spec" in the path.`,
  ]
    .filter((line) => line !== "")
    .join("\n");
}

interface Documents {
  readonly readme?: string;
  readonly manifests: readonly ManifestFacts[];
}

function folderTable(files: ListedFiles, folder: string | undefined): string | undefined {
  const folders = foldersBelow(files, folder);
  if (folders.length === 0) return undefined;
  const rows = folders.slice(0, maxRows).map(({ path, files: inside, lines }) => {
    const languages = rankLanguages(inside)
      .slice(0, 2)
      .map(([language]) => language);
    const size = lines === 0 ? "" : `, ${counted(lines, "line")}`;
    return `- ${path}/: ${counted(inside.length, "file")}${size}${languages.length === 0 ? "" : ` (${languages.join(", ")})`}`;
  });
  const more = folders.length > maxRows ? [`- … and ${folders.length - maxRows} smaller ones`] : [];
  return ["## Folders", ...rows, ...more].join("\n");
}

function rootFiles(files: ListedFiles, folder: string | undefined): string | undefined {
  const here = filesDirectlyIn(files, folder);
  if (here.length === 0) return undefined;
  const more = here.length > maxRows ? ` and ${here.length - maxRows} more` : "";
  const names = here.slice(0, maxRows).map((path) => path.slice(path.lastIndexOf("/") + 1));
  return `## Files beside them\n${names.join(", ")}${more}`;
}

const entryName =
  /(?:^|\/)(?:main|index|app|server|cli|__main__|manage|program|lib|mod)\.(?:tsx?|mts|jsx?|mjs|cjs|py|go|rs|rb|java|kt|cs|php|swift|dart|exs?|c|cc|cpp)$/i;

function entryPoints({ paths }: ListedFiles, manifests: readonly ManifestFacts[]): string | undefined {
  const declared = [...new Set(manifests.flatMap(({ entries }) => entries))].slice(0, 8);
  const depth = (path: string) => path.split("/").length;
  const named = paths
    .filter((path) => entryName.test(path) && !/(?:^|\/)(?:tests?|fixtures?|examples?|vendor)\//i.test(path))
    .toSorted((a, b) => depth(a) - depth(b) || byText(a, b))
    .filter((path) => !declared.includes(path))
    .slice(0, 8);
  if (declared.length + named.length === 0) return undefined;
  return [
    "## Where to start reading",
    ...declared.map((path) => `- ${path} (declared)`),
    ...named.map((path) => `- ${path} (by its name)`),
  ].join("\n");
}

function commands(manifests: readonly ManifestFacts[]): string | undefined {
  const found = manifests.flatMap(({ commands: some }) => some).slice(0, maxRows);
  const titles = manifests.flatMap(({ title }) => (title === undefined ? [] : [title]));
  if (found.length + titles.length === 0) return undefined;
  const rows = found.map(([name, runs]) => (runs === "" ? `- ${name}` : `- ${name}: ${runs.slice(0, 160)}`));
  return ["## What its manifest says", ...titles, ...rows].join("\n");
}

function children(conversation: OfflineConversation): string | undefined {
  const reported = [...childrenOf(conversation, "Explore"), ...childrenOf(conversation, "Plan")].filter(
    ({ isError }) => !isError,
  );
  if (reported.length === 0) return undefined;
  const sections = reported.map(({ input, text }) => {
    // What a child that ran on this same program said, without the frame around it.
    const plain = text
      .replace(offlineLabel, "")
      .replace(offlineHelp, "")
      .trim()
      .replace(/\s*\[agent id [^\]]*\]\s*$/, "");
    const short = plain.length > maxChildText ? `${plain.slice(0, maxChildText)}\n[cut here]` : plain;
    return `### ${String(input["subagent_type"])}: ${String(input["description"])}\n${short.replace(/^#{1,3} /gm, "#### ")}`;
  });
  return ["## What the child agents report", ...sections].join("\n\n");
}

const maxEntries = 60;

/** Reads a file, looking for it by name where the path is not right, and extracts what has a form. */
export function readStep(conversation: OfflineConversation, file: string): OfflineStep {
  const reads = callsOf(conversation, "Read");
  const done = reads.find(({ isError }) => !isError);
  if (done !== undefined) return { type: "answer", text: fileReport(done) };
  if (reads.length === 0) {
    const calls = callIfOffered(conversation, "Read", { file_path: file });
    if (calls.length > 0) return { type: "calls", text: `Reading ${file}.`, calls };
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
    if (calls.length > 0) return { type: "calls", text: `Looking for files named ${name}.`, calls };
  }
  const candidates = searches.flatMap(({ text, isError }) =>
    isError ? [] : readListing(text, conversation.directory).paths,
  );
  const nearest = candidates.toSorted((a, b) => a.split("/").length - b.split("/").length)[0];
  if (nearest !== undefined && reads.length === 1) {
    const calls = callIfOffered(conversation, "Read", { file_path: nearest });
    return { type: "calls", text: `Reading ${nearest}.`, calls };
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
    `# ${path}\n${language === undefined ? "" : `${language}, `}${size}. The following is extracted from its text.`,
    ...(language === "Markdown" ? markdownSections(lines) : codeSections(path, lines)),
  );
}

function markdownSections(lines: readonly NumberedLine[]): readonly (string | undefined)[] {
  const start = lines.findIndex(({ text }) => /^[\p{L}\p{N}*_`"'[]/u.test(text));
  const end = lines.findIndex(({ text }, at) => at > start && text.trim() === "");
  const paragraph = start === -1 ? [] : lines.slice(start, end === -1 ? undefined : end);
  const text = paragraph.map(({ text }) => text.trim()).join(" ");
  return [
    text === "" ? undefined : `First paragraph: ${text.slice(0, 800)}`,
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
    isBare ? ["No part of it has a known form. It begins:", ...beginning].join("\n") : undefined,
  ];
}

function entryList(heading: string, entries: readonly OutlineEntry[]): string | undefined {
  if (entries.length === 0) return undefined;
  const rows = entries.slice(0, maxEntries).map(({ line, text }) => `- ${line}: ${text.slice(0, 160)}`);
  const more = entries.length > maxEntries ? [`- … and ${entries.length - maxEntries} more`] : [];
  return [heading, ...rows, ...more].join("\n");
}
