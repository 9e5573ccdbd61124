// @io

import { constants, type Stats } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { withoutByteOrderMark } from "@retinue/base/foundation/parse-json-document.ts";
import { type AgentFiles, findAgentFilesIn } from "../discovery/find-agent-files.ts";
import type { Paths } from "../settings/paths.ts";
import { realFolder } from "../settings/trust-store.ts";
import {
  largeFileDiagnostic,
  largestInstructionFile,
  unusableFileDiagnostic,
} from "./instruction-diagnostics.ts";
import type { InstructionKind } from "./instructions.ts";

export interface InstructionPlaces
  extends Pick<Paths, "cwd" | "home" | "projectRoot" | "configDirectory" | "managedDirectory"> {
  /** Folders whose own instruction files count as well. */
  readonly additionalDirectories?: readonly string[];
  /** Whose files are read besides the organisation's; absent means every product's. */
  readonly sources?: readonly ("user" | "project" | "local")[];
}

/** A file that may hold instructions, in the order in which they are read. */
export interface InstructionCandidate {
  readonly file: string;
  readonly kind: InstructionKind;
  readonly isRule: boolean;
  /** The folder that the file and its imports may not lead out of; absent for files of people who decide that. */
  readonly within?: string;
  /** Lies above the project, where another user of the machine could have put it. */
  readonly isAboveProject: boolean;
  /** The folder that globs of a rule are relative to. */
  readonly folder: string;
}

interface InstructionCandidates {
  readonly candidates: readonly InstructionCandidate[];
  readonly diagnostics: readonly Diagnostic[];
}

/** All places where instructions may appear, from the organisation's down to the working folder's. */
export async function findInstructionFiles(places: InstructionPlaces): Promise<InstructionCandidates> {
  const takes = (kind: InstructionKind) =>
    kind === "managed" || places.sources === undefined || places.sources.includes(kind);
  const home = await realFolder(places.home);
  const additional = await Promise.all((places.additionalDirectories ?? []).map(realFolder));
  const folders = [
    ...foldersDownTo(places.cwd).map((folder) => inProject(folder, places)),
    ...additional.map((folder) => ({ folder, within: folder, isAbove: false })),
  ];
  const ruleFolders = [
    join(places.configDirectory, "rules"),
    ...folders.map(({ folder }) => join(folder, ".claude", "rules")),
  ];
  const [ownRules = noFiles, ...rules] = findAgentFilesIn(ruleFolders);
  const found = await Promise.all(
    folders.map((folder, at) => folderCandidates(folder, { ...places, home }, rules[at] ?? noFiles)),
  );
  const all = [{ candidates: ownCandidates(places, ownRules), diagnostics: ownRules.diagnostics }, ...found];
  return {
    candidates: all.flatMap(({ candidates }) => candidates).filter(({ kind }) => takes(kind)),
    diagnostics: all.flatMap(({ diagnostics }) => diagnostics),
  };
}

const noFiles: AgentFiles = { files: [], diagnostics: [] };

function ownCandidates(places: InstructionPlaces, rules: AgentFiles): InstructionCandidate[] {
  const { managedDirectory, configDirectory, projectRoot } = places;
  const free = { isRule: false, isAboveProject: false, folder: projectRoot };
  return [
    { ...free, file: join(managedDirectory, "CLAUDE.md"), kind: "managed" },
    { ...free, file: join(configDirectory, "CLAUDE.md"), kind: "user" },
    ...rules.files.map((file) => ({ ...free, file, kind: "user", isRule: true }) as const),
  ];
}

interface InstructionFolder {
  readonly folder: string;
  readonly within: string;
  readonly isAbove: boolean;
}

/** Above the project each folder means itself: nothing there may lead out of it. */
function inProject(folder: string, { projectRoot }: InstructionPlaces): InstructionFolder {
  const isAbove = folder !== projectRoot && !isInside(folder, projectRoot);
  return { folder, within: isAbove ? folder : projectRoot, isAbove };
}

async function folderCandidates(
  { folder, within, isAbove }: InstructionFolder,
  places: InstructionPlaces,
  below: AgentFiles,
): Promise<InstructionCandidates> {
  const dotted = join(folder, ".claude");
  const isOwn = folder === places.home || dotted === places.configDirectory;
  const main = [join(folder, "CLAUDE.md"), ...(isOwn ? [] : [join(dotted, "CLAUDE.md")])];
  const isThere = await Promise.all(main.map(isFile));
  const texts = isThere.includes(true) ? main : [join(folder, "AGENTS.md")];
  const { files: rules, diagnostics } = isOwn ? noFiles : below;
  const bound = { within, isAboveProject: isAbove, folder };
  return {
    candidates: [
      ...texts.map((file) => ({ ...bound, file, kind: "project", isRule: false }) as const),
      ...rules.map((file) => ({ ...bound, file, kind: "project", isRule: true }) as const),
      { ...bound, file: join(folder, "CLAUDE.local.md"), kind: "local", isRule: false },
    ],
    diagnostics,
  };
}

async function isFile(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined);
  return stats?.isFile() === true;
}

function foldersDownTo(folder: string): readonly string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [...foldersDownTo(parent), folder];
}

/** Whether a path lies in a folder or is the folder itself; both absolute. */
export function isInside(path: string, folder: string): boolean {
  const base = folder.replace(/[/\\]+$/, "");
  return path === folder || path.startsWith(`${base}/`) || path.startsWith(`${base}\\`);
}

type InstructionText =
  | { readonly type: "missing" }
  | { readonly type: "unusable"; readonly diagnostic: Diagnostic }
  | { readonly type: "text"; readonly text: string; readonly diagnostics: readonly Diagnostic[] };

/** The real path of a file, or why there is none. A folder counts as missing: people mention folders with `@` too. */
export type RealPath =
  | { readonly type: "real"; readonly path: string }
  | Exclude<InstructionText, { type: "text" }>;

export function loadRealPaths(files: readonly string[]): Promise<readonly RealPath[]> {
  return Promise.all(files.map(loadRealPath));
}

export async function loadRealPath(file: string): Promise<RealPath> {
  try {
    return { type: "real", path: await realpath(file) };
  } catch (error) {
    return failure(file, error);
  }
}

/** Reads the beginning of a file whose links were followed, at most as much as instructions may have. */
export async function loadInstructionText(
  file: string,
  accept: (stats: Stats) => Diagnostic | undefined = () => undefined,
): Promise<InstructionText> {
  try {
    const { stats, content } = await loadDecidedBeginning(file, largestInstructionFile + 1);
    if (stats.isDirectory()) return { type: "missing" };
    if (content === undefined)
      return { type: "unusable", diagnostic: unusableFileDiagnostic(file, "no regular file") };
    const refusal = accept(stats);
    return refusal === undefined ? decode(file, content) : { type: "unusable", diagnostic: refusal };
  } catch (error) {
    return failure(file, error);
  }
}

function decode(file: string, bytes: Buffer): InstructionText {
  if (bytes.includes(0)) return { type: "unusable", diagnostic: unusableFileDiagnostic(file, "not a text") };
  if (bytes.length <= largestInstructionFile) {
    return { type: "text", text: withoutByteOrderMark(bytes.toString("utf8")), diagnostics: [] };
  }
  const beginning = cutText(
    withoutByteOrderMark(bytes.toString("utf8")),
    largestInstructionFile,
    `[The rest of ${file} is left out: it is too large.]`,
  );
  return { type: "text", text: beginning, diagnostics: [largeFileDiagnostic(file)] };
}

/** Cuts at the last line break that fits into so many bytes and says so. */
export function cutText(text: string, bytes: number, note: string): string {
  const head = Buffer.from(text, "utf8")
    .subarray(0, bytes)
    .toString("utf8")
    .replace(/\uFFFD+$/, "");
  const lineEnd = head.lastIndexOf("\n");
  return `${lineEnd > 0 ? head.slice(0, lineEnd) : head}\n\n${note}`;
}

function failure(file: string, error: unknown): Exclude<InstructionText, { type: "text" }> {
  const code = error instanceof Error && "code" in error ? String(error.code) : String(error);
  if (["ENOENT", "ENOTDIR", "EISDIR"].includes(code)) return { type: "missing" };
  return { type: "unusable", diagnostic: unusableFileDiagnostic(file, code) };
}

interface Beginning {
  readonly stats: Stats;
  /** Absent for what is no regular file. */
  readonly content: Buffer | undefined;
}

/** The first bytes of a regular file. Rejects as the file system does; a pipe or device is never waited for. */
export async function loadBeginning(file: string, bytes: number): Promise<Beginning> {
  return loadOpened(file, bytes, 0);
}

/**
 * The same for a path whose links were followed before it was decided about: rejects with `EREPLACED` where a link has
 * taken the place of the file or of a folder on the way to it.
 */
export async function loadDecidedBeginning(realFile: string, bytes: number): Promise<Beginning> {
  const beginning = await loadOpened(realFile, bytes, constants.O_NOFOLLOW ?? 0).catch((error: unknown) => {
    throw isLoop(error) ? replaced() : error;
  });
  const [real, now] = await Promise.all([realpath(realFile), stat(realFile)]);
  const { ino, dev } = beginning.stats;
  if (real !== realFile || now.ino !== ino || now.dev !== dev) throw replaced();
  return beginning;
}

function replaced(): Error {
  return Object.assign(new Error("it was replaced while it was read"), { code: "EREPLACED" });
}

function isLoop(error: unknown): boolean {
  return error instanceof Error && "code" in error && error.code === "ELOOP";
}

async function loadOpened(file: string, bytes: number, flags: number): Promise<Beginning> {
  // Opening a pipe would otherwise wait until another process writes to it.
  const handle = await open(file, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0) | flags);
  try {
    const stats = await handle.stat();
    if (!stats.isFile()) return { stats, content: undefined };
    const most = Math.min(stats.size + 1, bytes);
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(most), { length: most });
    return { stats, content: buffer.subarray(0, bytesRead) };
  } finally {
    await handle.close();
  }
}
