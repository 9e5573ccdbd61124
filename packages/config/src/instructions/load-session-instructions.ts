import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import { agentVocabulary } from "../agents/agent-vocabulary.ts";
import { readFrontmatter } from "../agents/read-frontmatter.ts";
import type { DiscoveredAgents } from "../discovery/discover-agents.ts";
import { findForeignWriters, unsafeManagedDiagnostic } from "../settings/load-settings.ts";
import {
  cutText,
  findInstructionFiles,
  type InstructionCandidate,
  type InstructionPlaces,
  isInside,
  loadInstructionText,
  loadRealPath,
  loadRealPaths,
  type RealPath,
} from "./find-instruction-files.ts";
import { findImports, type ImportReference, readMarkdownLines } from "./import-references.ts";
import {
  circularImportDiagnostic,
  deepestImport,
  deniedImportDiagnostic,
  foreignOwnerDiagnostic,
  heldBackDiagnostic,
  type ImportSpot,
  largestInstructions,
  missingImportDiagnostic,
  tooDeepDiagnostic,
  totalSizeDiagnostic,
  unclearPathsDiagnostic,
} from "./instruction-diagnostics.ts";
import {
  type ConditionalRule,
  type InstructionFile,
  type Instructions,
  noInstructions,
} from "./instructions.ts";
import { matchesGlob } from "./matches-glob.ts";

/** The instruction files of a place, as its settings and variables want them. */
export function loadSessionInstructions(
  { paths, settings }: Pick<DiscoveredAgents, "paths" | "settings">,
  {
    disabled,
    mayLoad,
    sources,
  }: {
    readonly disabled: boolean;
    readonly mayLoad: MayLoad | undefined;
    readonly sources?: readonly ("user" | "project" | "local")[] | undefined;
  },
): Promise<Instructions> {
  const { claudeMdExcludes: excludes, claudeMd: text } = settings.settings.plain;
  // Only an organisation's own file may set it.
  const file = settings.settings.sources.get("claudeMd")?.file ?? paths.settings.managed;
  return loadInstructions({
    ...paths,
    disabled,
    ...(text === undefined ? {} : { managedText: { file, text } }),
    excludes,
    mayLoad,
    sources,
  });
}

export interface InstructionOptions extends InstructionPlaces {
  /** As CLAUDE_CODE_DISABLE_CLAUDE_MDS sets it. */
  readonly disabled?: boolean;
  /** Globs over absolute paths, as the setting `claudeMdExcludes` has them; the organisation's file is never skipped. */
  readonly excludes?: readonly string[];
  /** Whether a file outside the project may be read because a file of the project points to it. */
  readonly allowOutside?: (file: string) => boolean;
  /** Whether rules let a file be read. */
  readonly mayLoad?: MayLoad;
  /** What the organisation's settings have under `claudeMd`, with the file they are in; it comes first. */
  readonly managedText?: { readonly file: string; readonly text: string };
  /** Who runs this program; files above the project that belong to others are not used. */
  readonly userId?: number;
}

/** Reads all instruction files with their imports. Never throws: what cannot be used becomes a problem. */
export async function loadInstructions(options: InstructionOptions): Promise<Instructions> {
  if (options.disabled === true) return noInstructions;
  const { candidates, diagnostics } = await findInstructionFiles(options);
  const files = candidates.map(({ file }) => file);
  const [ownConfiguration, ...paths] = await loadRealPaths([options.configDirectory, ...files]);
  const reading = createReading(options, { diagnostics, ownConfiguration });
  for (const [at, candidate] of candidates.entries())
    await reading.take(candidate, { depth: 0, real: paths[at] });
  return reading.instructions();
}

/** How a file came to be read. */
interface Origin {
  readonly depth: number;
  readonly importedBy?: string;
  readonly spot?: ImportSpot;
  readonly reference?: ImportReference;
  /** Where its links lead, where that is known already. */
  readonly real?: RealPath | undefined;
  /** The files that led here, by their real paths. */
  readonly chain?: readonly string[];
}

interface Reading {
  readonly options: InstructionOptions;
  readonly files: InstructionFile[];
  readonly conditional: ConditionalRule[];
  readonly heldBack: Set<string>;
  readonly diagnostics: Diagnostic[];
  readonly seen: Set<string>;
  readonly isExcluded: ReturnType<typeof createExclusion>;
  /** The person's own configuration folder, links followed. */
  readonly ownConfiguration: RealPath | undefined;
  readonly userId: number | undefined;
  readonly withinTotal: (text: string, file: string) => string | undefined;
}

function createReading(
  options: InstructionOptions,
  found: Pick<Reading, "ownConfiguration"> & { readonly diagnostics: readonly Diagnostic[] },
) {
  const { managedText } = options;
  const diagnostics = [...found.diagnostics];
  const reading: Reading = {
    options,
    files: managedText === undefined ? [] : [{ ...managedText, kind: "managed" }],
    conditional: [],
    heldBack: new Set(),
    diagnostics,
    seen: new Set(),
    isExcluded: createExclusion(options),
    ownConfiguration: found.ownConfiguration,
    userId: options.userId ?? process.getuid?.(),
    withinTotal: createTotal(diagnostics),
  };
  return {
    take: (candidate: InstructionCandidate, origin: Origin) => take(candidate, origin, reading),
    instructions: (): Instructions => ({
      files: reading.files,
      conditional: reading.conditional,
      heldBack: [...reading.heldBack],
      diagnostics,
    }),
  };
}

async function take(candidate: InstructionCandidate, origin: Origin, reading: Reading): Promise<void> {
  const { diagnostics, seen, userId } = reading;
  const real = origin.real ?? (await loadRealPath(candidate.file));
  if (real.type !== "real") return reportFailure(real, origin, diagnostics);
  if (reading.isExcluded(candidate.kind, [candidate.file, real.path])) return;
  if (seen.has(real.path)) {
    // A file that was read already is not read again; only one that leads back to itself is reported.
    const { chain = [], spot, reference } = origin;
    if (chain.includes(real.path) && spot !== undefined)
      diagnostics.push(circularImportDiagnostic(reference?.path ?? real.path, spot));
    return;
  }
  const refusal = await refuse(candidate, { realPath: real.path, origin }, reading);
  if (refusal !== undefined) {
    diagnostics.push(refusal);
    return;
  }
  const loaded = await loadInstructionText(real.path, ({ uid }) =>
    candidate.isAboveProject && userId !== undefined && uid !== userId && uid !== 0
      ? foreignOwnerDiagnostic(candidate.file)
      : undefined,
  );
  if (loaded.type !== "text") return reportFailure(loaded, origin, diagnostics);
  seen.add(real.path);
  diagnostics.push(...loaded.diagnostics);
  await keep(candidate, loaded.text, { origin: { ...origin, realPath: real.path }, reading });
}

/** Why a file that exists is not read: imported too deeply, denied, outside of where it may lead, or written by others. */
async function refuse(
  candidate: InstructionCandidate,
  { realPath, origin }: { readonly realPath: string; readonly origin: Origin },
  { options, heldBack, userId }: Reading,
): Promise<Diagnostic | undefined> {
  const named = origin.reference?.path ?? candidate.file;
  if (origin.depth > deepestImport && origin.spot !== undefined) return tooDeepDiagnostic(named, origin.spot);
  if (await isDenied(candidate, { realPath, origin }, options))
    return deniedImportDiagnostic(named, origin.spot, candidate.file);
  if (leadsOutside(candidate, realPath, options)) {
    heldBack.add(realPath);
    return heldBackDiagnostic(realPath, origin.spot, candidate.file);
  }
  const writers =
    candidate.kind === "managed" ? await findForeignWriters(candidate.file, { userId }) : undefined;
  return writers === undefined ? undefined : unsafeManagedDiagnostic(candidate.file, writers, "is not used");
}

interface Kept {
  readonly origin: Origin & { readonly realPath: string };
  readonly reading: Reading;
}

async function keep(
  candidate: InstructionCandidate,
  source: string,
  { origin, reading }: Kept,
): Promise<void> {
  const rule = candidate.isRule
    ? readInstructionRule(source, candidate.file)
    : { text: source, diagnostics: [] };
  reading.diagnostics.push(...rule.diagnostics);
  const lines = readMarkdownLines(rule.text);
  const whole = lines
    .map((line) => line.text)
    .join("\n")
    .trim();
  const text = reading.withinTotal(whole, candidate.file);
  if (text === undefined) return;
  const { file, kind, folder } = candidate;
  const entry = {
    file,
    kind,
    text,
    importedBy: origin.importedBy,
  };
  const paths = "paths" in rule ? rule.paths : undefined;
  if (paths !== undefined) reading.conditional.push({ ...entry, paths, folder });
  else reading.files.push(entry);
  // A rule that does not apply yet must not bring in what it imports.
  if (paths !== undefined) return;
  for (const reference of findImports(lines)) await takeImport(candidate, reference, { origin, reading });
}

async function takeImport(
  importer: InstructionCandidate,
  reference: ImportReference,
  { origin, reading }: Kept,
): Promise<void> {
  const file = importedPath(reference.path, importer.file, reading.options.home);
  const within = importer.within ?? projectBoundary(origin.realPath, reading);
  const { line, column } = reference;
  await take(
    {
      file,
      kind: importer.kind,
      isRule: false,
      isAboveProject: importer.isAboveProject,
      folder: importer.folder,
      within,
    },
    {
      depth: origin.depth + 1,
      importedBy: importer.file,
      reference,
      spot: { file: importer.file, line, column, length: reference.path.length + 1 },
      chain: [...(origin.chain ?? []), origin.realPath],
    },
    reading,
  );
}

/** What a person's own file imports from the project is the project's text, and is bound like it. */
function projectBoundary(realPath: string, { options, ownConfiguration }: Reading): string | undefined {
  const { projectRoot } = options;
  const holdsConfiguration =
    ownConfiguration?.type === "real" && isInside(ownConfiguration.path, projectRoot);
  return !holdsConfiguration && isInside(realPath, projectRoot) ? projectRoot : undefined;
}

/** No rule, which may be a repository's, takes away the organisation's text or the person's own file. */
async function isDenied(
  { file, kind }: InstructionCandidate,
  { realPath, origin: { depth } }: { readonly realPath: string; readonly origin: Origin },
  { mayLoad, managedDirectory }: InstructionOptions,
): Promise<boolean> {
  const isFound = depth === 0 && (kind === "managed" || kind === "user");
  const isManaged = kind === "managed" && isInside(realPath, managedDirectory);
  if (mayLoad === undefined || isFound || isManaged) return false;
  // The second is what will be opened, whatever the first leads to by now.
  return !(await mayLoad(file)) || !(await mayLoad(realPath));
}

function leadsOutside(
  { within }: InstructionCandidate,
  realPath: string,
  { allowOutside }: InstructionOptions,
): boolean {
  if (within === undefined || isInside(realPath, within)) return false;
  return allowOutside?.(realPath) !== true;
}

function reportFailure(
  failure: { readonly type: "missing" } | { readonly type: "unusable"; readonly diagnostic: Diagnostic },
  { reference, spot }: Origin,
  diagnostics: Diagnostic[],
): void {
  if (failure.type === "unusable") diagnostics.push(failure.diagnostic);
  else if (reference?.isSurelyFile === true && spot !== undefined)
    diagnostics.push(missingImportDiagnostic(reference.path, spot));
}

/** Cuts the text that exceeds the size of all instructions together; after it, nothing more is taken. */
function createTotal(diagnostics: Diagnostic[]): Reading["withinTotal"] {
  let bytesLeft = largestInstructions;
  let isFull = false;
  return (text, file) => {
    if (isFull) return undefined;
    const size = Buffer.byteLength(text, "utf8");
    if (size <= bytesLeft) {
      bytesLeft -= size;
      return text;
    }
    isFull = true;
    diagnostics.push(totalSizeDiagnostic(file));
    const note = `[The rest of ${file} and all later files are left out: together they are too large.]`;
    return cutText(text, bytesLeft, note);
  };
}

function importedPath(path: string, importer: string, home: string): string {
  if (path.startsWith("~/")) return join(home, path.slice(2));
  return isAbsolute(path) ? path : resolve(dirname(importer), path);
}

function createExclusion({ excludes = [], home }: InstructionOptions) {
  const patterns = excludes.map((pattern) => {
    const slashed = pattern.replaceAll("\\", "/");
    if (slashed.startsWith("~/")) return join(home, slashed.slice(2)).replaceAll("\\", "/");
    return /^(?:\/|\*\*|[A-Za-z]:)/.test(slashed) ? slashed : `**/${slashed}`;
  });
  return (kind: string, paths: readonly string[]): boolean =>
    kind !== "managed" &&
    patterns.some((pattern) => paths.some((path) => matchesGlob(pattern, path.replaceAll("\\", "/"))));
}

interface InstructionRule {
  readonly text: string;
  /** Globs that say for which files the rule counts; absent when it counts always. */
  readonly paths?: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a file of a `rules` folder: the text without its frontmatter, and what `paths` says. */
export function readInstructionRule(source: string, file: string): InstructionRule {
  const frontmatter = readFrontmatter(source, agentVocabulary);
  if (frontmatter.type !== "read") return { text: source, diagnostics: [] };
  const text = frontmatter.body;
  const field = frontmatter.fields.get("paths");
  if (field === undefined || field.value === null) return { text, diagnostics: [] };
  const paths = readPaths(field.value);
  if (paths === undefined) return { text, diagnostics: [unclearPathsDiagnostic(file, field.place)] };
  const isLimited = paths.length > 0 && !paths.includes("**");
  return { text, ...(isLimited ? { paths } : {}), diagnostics: [] };
}

function readPaths(value: unknown): readonly string[] | undefined {
  if (typeof value === "string") return splitGlobs(value);
  if (!Array.isArray(value)) return undefined;
  const texts = value.filter((entry): entry is string => typeof entry === "string");
  return texts.length === value.length ? texts.flatMap(splitGlobs) : undefined;
}

/** Commas part globs, except inside of braces. */
function splitGlobs(text: string): readonly string[] {
  const parts: string[] = [""];
  let depth = 0;
  for (const sign of text) {
    if (sign === "{") depth += 1;
    if (sign === "}") depth = Math.max(0, depth - 1);
    if (sign === "," && depth === 0) parts.push("");
    else parts.push(`${parts.pop() ?? ""}${sign}`);
  }
  return parts.map((part) => part.trim()).filter((part) => part !== "");
}
