// @io
import { type Dirent, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, sep } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import {
  createFileSnapshot,
  type FileSnapshot,
  type PathStamp,
} from "@retinue/base/foundation/file-snapshot.ts";
import type { AgentDefinition } from "../agents/agent-definition.ts";
import type { AgentScope } from "../agents/agent-source.ts";
import {
  largestDefinition,
  type ParsedAgent,
  parseAgentDefinition,
  refuseLargeFile,
} from "../agents/parse-agent-definition.ts";
import { type FormatId, formatFacts } from "../formats/format-facts.ts";

export interface AgentFiles {
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** More than anyone keeps; a link into a whole disk would exceed it. */
const maxFiles = 20_000;
const maxFolders = 2_000;
const deepest = 16;

export function findAgentFilesIn(paths: readonly string[]): readonly AgentFiles[] {
  return paths.map((path) => findAgentFiles(path));
}

/** Which files of a folder hold agents. */
interface FileKinds {
  readonly isAgentFile: (name: string) => boolean;
  readonly isDeep: boolean;
}

const markdownFiles: FileKinds = { isAgentFile: isMarkdown, isDeep: true };

/** All Markdown files below a path, or the path itself if it is one, in a stable order. A missing path has none. */
export function findAgentFiles(
  path: string,
  snapshot?: FileSnapshot,
  { isAgentFile, isDeep }: FileKinds = markdownFiles,
): AgentFiles {
  const files: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const visited = new Set<string>();
  let folders = 0;
  let isFull = false;
  const kind = kindOf(path);
  if (kind === "file") return { files: isAgentFile(path) ? [path] : [], diagnostics };
  if (kind === "directory") walk(path, 0);
  return { files, diagnostics };

  function walk(directory: string, depth: number): void {
    snapshot?.add([directory]);
    folders += 1;
    const entries = readEntries(directory, diagnostics);
    for (const entry of entries) {
      const child = join(directory, entry.name);
      // Where a link leads can change without the folder that holds it.
      if (entry.isSymbolicLink()) snapshot?.add([child]);
      const childKind = entry.isSymbolicLink() ? kindOf(child) : kindOfEntry(entry);
      if (childKind === "file" && isAgentFile(entry.name)) files.push(child);
      if (isFull) return;
      if (files.length >= maxFiles || folders > maxFolders) {
        isFull = true;
        stopAt(
          directory,
          files.length >= maxFiles ? `more than ${maxFiles} files` : `more than ${maxFolders} folders`,
        );
        return;
      }
      if (!isDeep || childKind !== "directory" || entry.name === "node_modules" || entry.name === ".git")
        continue;
      if (depth >= deepest) stopAt(child, `folders nested more than ${deepest} deep`);
      else if (entersFirstTime(child, entry)) walk(child, depth + 1);
    }
  }

  /** Links may form a circle; only a link can, so only then the real path is asked for. */
  function entersFirstTime(child: string, entry: Dirent): boolean {
    if (!entry.isSymbolicLink()) return true;
    const real = realpathSync(child);
    if (visited.has(real) || path.startsWith(`${real}${sep}`) || path === real) return false;
    visited.add(real);
    return true;
  }

  function stopAt(file: string, what: string): void {
    if (diagnostics.some((diagnostic) => diagnostic.code === "too-many-files")) return;
    const message = `There are ${what} here; the rest was not read.`;
    diagnostics.push({
      severity: "warning",
      code: "too-many-files",
      message,
      advice: "Keep only agent files in this folder.",
      file,
    });
  }
}

function readEntries(directory: string, diagnostics: Diagnostic[]): Dirent[] {
  try {
    return readdirSync(directory, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch (error) {
    diagnostics.push(unreadable(directory, error));
    return [];
  }
}

/** The problem of a file or folder that the system does not let us read. */
export function unreadable(file: string, error: unknown): Diagnostic {
  const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
  return {
    severity: "error",
    code: "unreadable-file",
    message: `This cannot be read (${reason}).`,
    advice: "Check that it exists and that you may read it.",
    file,
  };
}

function kindOfEntry(entry: Dirent): "file" | "directory" | undefined {
  if (entry.isFile()) return "file";
  return entry.isDirectory() ? "directory" : undefined;
}

/** A dangling or forbidden link is neither. */
function kindOf(path: string): "file" | "directory" | undefined {
  try {
    const stats = statSync(path);
    if (stats.isFile()) return "file";
    return stats.isDirectory() ? "directory" : undefined;
  } catch {
    return undefined;
  }
}

function isMarkdown(name: string): boolean {
  return name.toLowerCase().endsWith(".md");
}

/** A folder or file that holds agents of one scope. */
export interface AgentPlace {
  readonly scope: AgentScope;
  readonly path: string;
  readonly plugin?: string | undefined;
  /** Whose files they are, where not our own. */
  readonly format?: FormatId | undefined;
  /** What files of another format may name lies below this folder. */
  readonly within?: string | undefined;
  /** Its folder is not trusted by itself. */
  readonly untrusted?: true | undefined;
  /** The id of an agent in this place, where it is not its bare name. */
  readonly idOf?: ((file: string, name: string) => string) | undefined;
}

export interface LoadedAgents {
  /** In the order of the places, which is the order of precedence within a scope. */
  readonly definitions: readonly AgentDefinition[];
  readonly diagnostics: readonly Diagnostic[];
  /** Every file looked at, also those that define nothing. */
  readonly files: readonly string[];
}

export interface AgentFileLoader {
  /** The snapshot gets every path that is looked at. */
  load(places: readonly AgentPlace[], snapshot?: FileSnapshot): Promise<LoadedAgents>;
}

interface CachedFile {
  readonly stamp: PathStamp;
  /** Of further files that it depends on, such as settings above it. */
  readonly others: ReadonlyMap<string, PathStamp>;
  readonly parsed: readonly ParsedAgent[];
}

/** Reads one file of another format; loaded with the first place that needs it. */
type ReadForeign = (
  text: string,
  file: string,
  place: AgentPlace & { readonly looksAt: (file: string) => void },
) => readonly ParsedAgent[];

/** Let other work of the host continue while thousands of files are read. */
const filesPerSlice = 128;

/** Reads agent files and keeps what it parsed, so that the next load only reads what changed on disk. */
export function createAgentFileLoader(): AgentFileLoader {
  let cache = new Map<string, CachedFile>();
  return {
    async load(places, snapshot = createFileSnapshot()) {
      const fresh = new Map<string, CachedFile>();
      const definitions: AgentDefinition[] = [];
      const diagnostics: Diagnostic[] = [];
      const files: string[] = [];
      snapshot.add(
        places.map(({ path }) => path),
        "kind",
      );
      let readForeign: ReadForeign | undefined;
      for (const place of places) {
        const found = findAgentFiles(place.path, snapshot, kindsOf(place));
        diagnostics.push(...found.diagnostics);
        for (const file of found.files) {
          if (files.length > 0 && files.length % filesPerSlice === 0)
            await new Promise((resolve) => setImmediate(resolve));
          files.push(file);
          if (place.format !== undefined)
            readForeign ??= (await import("../formats/read-foreign-file.ts")).readForeignFile;
          const { parsed } = readCached(file, place, { cache, fresh, snapshot, readForeign });
          for (const { definition, diagnostics: its } of parsed) {
            diagnostics.push(...its);
            if (definition !== undefined) definitions.push(placed(definition, file, place));
          }
        }
      }
      cache = fresh;
      return { definitions, diagnostics, files };
    },
  };
}

function kindsOf({ format }: AgentPlace): FileKinds {
  if (format === undefined) return markdownFiles;
  const { files, isDeep = false } = formatFacts[format];
  return { isAgentFile: (name) => files.test(name), isDeep };
}

function placed(definition: AgentDefinition, file: string, place: AgentPlace): AgentDefinition {
  const { idOf, untrusted } = place;
  if (idOf === undefined && untrusted === undefined) return definition;
  const source = {
    ...definition.source,
    ...(idOf === undefined ? {} : { id: idOf(file, definition.name) }),
    ...(untrusted === undefined ? {} : { untrusted }),
  };
  return { ...definition, source };
}

function readCached(
  file: string,
  place: AgentPlace,
  {
    cache,
    fresh,
    snapshot,
    readForeign,
  }: {
    readonly cache: ReadonlyMap<string, CachedFile>;
    readonly fresh: Map<string, CachedFile>;
    readonly snapshot: FileSnapshot;
    readonly readForeign: ReadForeign | undefined;
  },
): CachedFile {
  const key = `${place.scope}\0${place.format ?? ""}\0${place.plugin ?? ""}\0${file}`;
  const { stamp, size } = snapshot.stamp(file);
  const known = cache.get(key);
  const isKnown =
    stamp !== undefined &&
    known?.stamp === stamp &&
    [...known.others].every(([path, was]) => was !== undefined && snapshot.stamp(path).stamp === was);
  const others = new Map<string, PathStamp>();
  const looksAt = (path: string): void => void others.set(path, snapshot.stamp(path).stamp);
  const entry = isKnown
    ? known
    : { stamp, others, parsed: parseFile(file, place, { size, readForeign, looksAt }) };
  fresh.set(key, entry);
  return entry;
}

function parseFile(
  file: string,
  place: AgentPlace,
  {
    size,
    readForeign,
    looksAt,
  }: {
    readonly size: number;
    readonly readForeign: ReadForeign | undefined;
    readonly looksAt: (file: string) => void;
  },
): readonly ParsedAgent[] {
  const { scope, plugin } = place;
  if (size > largestDefinition) return [refuseLargeFile(file)];
  try {
    const text = readFileSync(file, "utf8");
    if (place.format !== undefined && readForeign !== undefined)
      return readForeign(text, file, { ...place, looksAt });
    return [parseAgentDefinition(text, { file, scope, plugin })];
  } catch (error) {
    return [{ diagnostics: [unreadable(file, error)] }];
  }
}
