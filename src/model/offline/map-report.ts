import { childrenOf } from "./explore-calls.ts";
import { rankLanguages } from "./language-of.ts";
import { filesDirectlyIn, foldersBelow, type ListedFiles, sum } from "./listed-files.ts";
import { counted, offlineAnswer, withoutFrame } from "./offline-answer.ts";
import { failuresOf } from "./offline-call.ts";
import { callsOf, type OfflineConversation } from "./offline-conversation.ts";
import { byText, readNumberedLines } from "./read-listing.ts";
import { type ManifestFacts, readManifest, readReadme } from "./read-manifest.ts";

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
  const documents = readDocuments(conversation);
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

function readDocuments(conversation: OfflineConversation): Documents {
  const texts = callsOf(conversation, "Read").flatMap(({ input, text, isError }) => {
    const path = input["file_path"];
    if (isError || typeof path !== "string") return [];
    const lines = readNumberedLines(text).lines.map((line) => line.text);
    return [{ name: path.slice(path.lastIndexOf("/") + 1), lines }];
  });
  const said = texts.flatMap(({ name, lines }) =>
    /^readme/i.test(name) ? [readReadme(lines) ?? ""] : [],
  )[0];
  return {
    ...(said === undefined || said === "" ? {} : { readme: `## What its README says\n${said}` }),
    manifests: texts
      .filter(({ name }) => !/^readme/i.test(name))
      .map(({ name, lines }) => readManifest(name, lines.join("\n"))),
  };
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
    const plain = withoutFrame(text).replace(/\s*\[agent id [^\]]*\]\s*$/, "");
    const short = plain.length > maxChildText ? `${plain.slice(0, maxChildText)}\n[cut here]` : plain;
    return `### ${String(input["subagent_type"])}: ${String(input["description"])}\n${short.replace(/^#{1,3} /gm, "#### ")}`;
  });
  return ["## What the child agents report", ...sections].join("\n\n");
}
