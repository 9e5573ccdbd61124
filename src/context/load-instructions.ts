import { dirname, isAbsolute, join, resolve } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import type { MayLoad } from "../permissions/gather-read-rights.ts";
import { findForeignWriters, unsafeManagedDiagnostic } from "../settings/find-foreign-writers.ts";
import {
  findInstructionFiles,
  type InstructionCandidate,
  type InstructionPlaces,
  isInside,
} from "./find-instruction-files.ts";
import { matchesGlob } from "./glob-pattern.ts";
import { findImports, type ImportReference } from "./import-references.ts";
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
} from "./instruction-diagnostics.ts";
import { readInstructionRule } from "./instruction-rule.ts";
import {
  type ConditionalRule,
  type InstructionFile,
  type Instructions,
  noInstructions,
} from "./instructions.ts";
import { cutText, loadInstructionText, loadRealPath } from "./load-instruction-text.ts";
import { readMarkdownLines } from "./markdown-lines.ts";

export interface InstructionOptions extends InstructionPlaces {
  /** As CLAUDE_CODE_DISABLE_CLAUDE_MDS sets it. */
  readonly disabled?: boolean;
  /** Globs over absolute paths, as the setting `claudeMdExcludes` has them; the organisation's file is never skipped. */
  readonly excludes?: readonly string[];
  /** Whether a file outside of the project may be read because a file of the project points to it. */
  readonly allowOutside?: (file: string) => boolean;
  /** Whether rules let a file be read. */
  readonly mayLoad?: MayLoad;
  /** What the organisation's settings say under `claudeMd`, with the file they stand in; it comes first. */
  readonly managedText?: { readonly file: string; readonly text: string };
  /** Who runs this program; files above the project that belong to others are not used. */
  readonly userId?: number;
}

/** Reads all instruction files with their imports. Never throws: what cannot be used becomes a problem. */
export async function loadInstructions(options: InstructionOptions): Promise<Instructions> {
  if (options.disabled === true) return noInstructions;
  const { candidates, diagnostics } = await findInstructionFiles(options);
  const reading = await createReading(options, diagnostics);
  for (const candidate of candidates) await reading.take(candidate, { depth: 0 });
  return reading.instructions();
}

/** How a file came to be read. */
interface Origin {
  readonly depth: number;
  readonly importedBy?: string;
  readonly spot?: ImportSpot;
  readonly reference?: ImportReference;
  /** The files that led here, by their real paths. */
  readonly chain?: readonly string[];
}

async function createReading(options: InstructionOptions, found: readonly Diagnostic[]) {
  const { managedText } = options;
  const files: InstructionFile[] = managedText === undefined ? [] : [{ ...managedText, kind: "managed" }];
  const conditional: ConditionalRule[] = [];
  const heldBack = new Set<string>();
  const diagnostics: Diagnostic[] = [...found];
  const seen = new Set<string>();
  const isExcluded = createExclusion(options);
  const ownConfiguration = await loadRealPath(options.configDirectory);
  const userId = options.userId ?? process.getuid?.();
  let bytesLeft = largestInstructions;
  let isFull = false;
  return {
    take,
    instructions: (): Instructions => ({ files, conditional, heldBack: [...heldBack], diagnostics }),
  };

  async function take(candidate: InstructionCandidate, origin: Origin): Promise<void> {
    const real = await loadRealPath(candidate.file);
    if (real.type !== "real") return reportFailure(real, origin);
    if (isExcluded(candidate.kind, [candidate.file, real.path])) return;
    if (seen.has(real.path)) return reportCircle(real.path, origin);
    if (origin.depth > deepestImport && origin.spot !== undefined) {
      diagnostics.push(tooDeepDiagnostic(origin.reference?.path ?? candidate.file, origin.spot));
      return;
    }
    if (await isDenied(candidate, real.path, origin)) {
      diagnostics.push(
        deniedImportDiagnostic(origin.reference?.path ?? candidate.file, origin.spot, candidate.file),
      );
      return;
    }
    if (leadsOutside(candidate, real.path)) {
      heldBack.add(real.path);
      diagnostics.push(heldBackDiagnostic(real.path, origin.spot, candidate.file));
      return;
    }
    const writers =
      candidate.kind === "managed" ? await findForeignWriters(candidate.file, userId) : undefined;
    if (writers !== undefined) {
      diagnostics.push(unsafeManagedDiagnostic(candidate.file, writers, "is not used"));
      return;
    }
    const loaded = await loadInstructionText(real.path, ({ uid }) =>
      candidate.isAboveProject && userId !== undefined && uid !== userId && uid !== 0
        ? foreignOwnerDiagnostic(candidate.file)
        : undefined,
    );
    if (loaded.type !== "text") return reportFailure(loaded, origin);
    seen.add(real.path);
    diagnostics.push(...loaded.diagnostics);
    await keep(candidate, loaded.text, { ...origin, realPath: real.path });
  }

  async function keep(
    candidate: InstructionCandidate,
    source: string,
    origin: Origin & { readonly realPath: string },
  ): Promise<void> {
    const rule = candidate.isRule
      ? readInstructionRule(source, candidate.file)
      : { text: source, diagnostics: [] };
    diagnostics.push(...rule.diagnostics);
    const lines = readMarkdownLines(rule.text);
    const text = withinTotal(
      lines
        .map((line) => line.text)
        .join("\n")
        .trim(),
      candidate.file,
    );
    if (text === undefined) return;
    const { file, kind, folder } = candidate;
    const entry = {
      file,
      kind,
      text,
      ...(origin.importedBy === undefined ? {} : { importedBy: origin.importedBy }),
    };
    const paths = "paths" in rule ? rule.paths : undefined;
    if (paths !== undefined) conditional.push({ ...entry, paths, folder });
    else files.push(entry);
    // A rule that does not count yet must not bring in what it imports.
    if (paths !== undefined) return;
    for (const reference of findImports(lines)) await takeImport(candidate, reference, origin);
  }

  async function takeImport(
    importer: InstructionCandidate,
    reference: ImportReference,
    origin: Origin & { readonly realPath: string },
  ): Promise<void> {
    const file = importedPath(reference.path, importer.file, options.home);
    const within = importer.within ?? projectBoundary(origin.realPath);
    const { line, column } = reference;
    await take(
      {
        file,
        kind: importer.kind,
        isRule: false,
        isAboveProject: importer.isAboveProject,
        folder: importer.folder,
        ...(within === undefined ? {} : { within }),
      },
      {
        depth: origin.depth + 1,
        importedBy: importer.file,
        reference,
        spot: { file: importer.file, line, column, length: reference.path.length + 1 },
        chain: [...(origin.chain ?? []), origin.realPath],
      },
    );
  }

  /** What a person's own file imports from the project is the project's word, and is bound like it. */
  function projectBoundary(realPath: string): string | undefined {
    const { projectRoot } = options;
    const holdsConfiguration =
      ownConfiguration.type === "real" && isInside(ownConfiguration.path, projectRoot);
    return !holdsConfiguration && isInside(realPath, projectRoot) ? projectRoot : undefined;
  }

  /** No rule, which may be a repository's, takes away the word of the organisation or the person's own file. */
  async function isDenied(
    { file, kind }: InstructionCandidate,
    realPath: string,
    { depth }: Origin,
  ): Promise<boolean> {
    const { mayLoad } = options;
    const isFound = depth === 0 && (kind === "managed" || kind === "user");
    const isManaged = kind === "managed" && isInside(realPath, options.managedDirectory);
    if (mayLoad === undefined || isFound || isManaged) return false;
    // The second is what will be opened, whatever the first leads to by now.
    return !(await mayLoad(file)) || !(await mayLoad(realPath));
  }

  function leadsOutside({ within }: InstructionCandidate, realPath: string): boolean {
    if (within === undefined || isInside(realPath, within)) return false;
    return options.allowOutside?.(realPath) !== true;
  }

  /** A file that was read already is not read again; only one that leads back to itself is worth a word. */
  function reportCircle(path: string, { chain = [], spot, reference }: Origin): void {
    if (chain.includes(path) && spot !== undefined)
      diagnostics.push(circularImportDiagnostic(reference?.path ?? path, spot));
  }

  function reportFailure(
    failure: { readonly type: "missing" } | { readonly type: "unusable"; readonly diagnostic: Diagnostic },
    { reference, spot }: Origin,
  ): void {
    if (failure.type === "unusable") diagnostics.push(failure.diagnostic);
    else if (reference?.isSurelyFile === true && spot !== undefined)
      diagnostics.push(missingImportDiagnostic(reference.path, spot));
  }

  function withinTotal(text: string, file: string): string | undefined {
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
  }
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
