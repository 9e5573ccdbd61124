// @io
import { stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type AgentFiles, findAgentFilesIn } from "../definitions/find-agent-files.ts";
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
