// @io
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { findAgentFiles } from "../definitions/find-agent-files.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { Paths } from "../settings/paths.ts";
import { realFolder } from "../settings/trust-store.ts";
import type { InstructionKind } from "./instructions.ts";

export interface InstructionPlaces
  extends Pick<Paths, "cwd" | "home" | "projectRoot" | "configDirectory" | "managedDirectory"> {
  /** Folders whose own instruction files count as well. */
  readonly additionalDirectories?: readonly string[];
  /** Whose files are read besides the organisation's; absent means everybody's. */
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

export interface InstructionCandidates {
  readonly candidates: readonly InstructionCandidate[];
  readonly diagnostics: readonly Diagnostic[];
}

/** All places where instructions may appear, from the organisation's down to the working folder's. */
export async function findInstructionFiles(places: InstructionPlaces): Promise<InstructionCandidates> {
  const diagnostics: Diagnostic[] = [];
  const takes = (kind: InstructionKind) =>
    kind === "managed" || places.sources === undefined || places.sources.includes(kind);
  const own = ownCandidates(places, diagnostics).filter(({ kind }) => takes(kind));
  const home = await realFolder(places.home);
  const additional = await Promise.all((places.additionalDirectories ?? []).map(realFolder));
  const folders = [
    ...foldersDownTo(places.cwd).map((folder) => inProject(folder, places)),
    ...additional.map((folder) => ({ folder, within: folder, isAbove: false })),
  ];
  const found = await Promise.all(
    folders.map((folder) => folderCandidates(folder, { ...places, home }, diagnostics)),
  );
  return { candidates: [...own, ...found.flat().filter(({ kind }) => takes(kind))], diagnostics };
}

function ownCandidates(places: InstructionPlaces, diagnostics: Diagnostic[]): InstructionCandidate[] {
  const { managedDirectory, configDirectory, projectRoot } = places;
  const free = { isRule: false, isAboveProject: false, folder: projectRoot };
  return [
    { ...free, file: join(managedDirectory, "CLAUDE.md"), kind: "managed" },
    { ...free, file: join(configDirectory, "CLAUDE.md"), kind: "user" },
    ...rulesIn(join(configDirectory, "rules"), diagnostics).map(
      (file) => ({ ...free, file, kind: "user", isRule: true }) as const,
    ),
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
  diagnostics: Diagnostic[],
): Promise<InstructionCandidate[]> {
  const dotted = join(folder, ".claude");
  const isOwn = folder === places.home || dotted === places.configDirectory;
  const main = [join(folder, "CLAUDE.md"), ...(isOwn ? [] : [join(dotted, "CLAUDE.md")])];
  const isThere = await Promise.all(main.map(isFile));
  const texts = isThere.includes(true) ? main : [join(folder, "AGENTS.md")];
  const rules = isOwn ? [] : rulesIn(join(dotted, "rules"), diagnostics);
  const bound = { within, isAboveProject: isAbove, folder };
  return [
    ...texts.map((file) => ({ ...bound, file, kind: "project", isRule: false }) as const),
    ...rules.map((file) => ({ ...bound, file, kind: "project", isRule: true }) as const),
    { ...bound, file: join(folder, "CLAUDE.local.md"), kind: "local", isRule: false },
  ];
}

function rulesIn(folder: string, diagnostics: Diagnostic[]): readonly string[] {
  const found = findAgentFiles(folder);
  diagnostics.push(...found.diagnostics);
  return found.files;
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
