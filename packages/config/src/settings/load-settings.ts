// @io

import { constants } from "node:fs";
import { lstat, open, readdir, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { checkArgument, checks } from "@retinue/base/foundation/check-arguments.ts";
import { type Diagnostic, placeFindings } from "@retinue/base/foundation/diagnostic.ts";
import type { FileSnapshot } from "@retinue/base/foundation/file-snapshot.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { parseJsonDocument } from "@retinue/base/foundation/parse-json-document.ts";
import type { Paths } from "./paths.ts";
import { readSettings, type SettingsScope } from "./settings.ts";
import {
  type MergedSettings,
  mergeSettings,
  type SettingsLayer,
  type SettingsSource,
} from "./settings-layer.ts";

export interface LoadSettingsOptions {
  readonly paths: Paths;
  /** Which of a person's files count; the organisation's always do. All, when absent. */
  readonly sources?: readonly ("user" | "project" | "local")[] | undefined;
  /** What `--settings` was given: JSON, or the path of a file. */
  readonly flagSettings?: string | undefined;
  readonly trusted: boolean;
  /** Gets every path that is looked at. */
  readonly footprint?: FileSnapshot | undefined;
}

export interface LoadedSettings {
  readonly settings: MergedSettings;
  readonly layers: readonly SettingsLayer[];
  readonly diagnostics: readonly Diagnostic[];
  /** A file that exists could not be read, so restrictions in it are not known: nothing may run unattended. */
  readonly incomplete: boolean;
  readonly incompleteScopes: readonly SettingsScope[];
}

/** Reads all settings files and puts them together. Never throws; a file that is not there is no problem. */
const loadShape = checks.shape(
  { paths: checks.thing, sources: checks.texts, flagSettings: checks.text, trusted: checks.flag },
  ["paths", "trusted"],
);

export async function loadSettings(options: LoadSettingsOptions): Promise<LoadedSettings> {
  checkArgument("The options of loadSettings()", loadShape, options);
  const { footprint: snapshot } = options;
  const entries = await listSources(options);
  const readings = await Promise.all(entries.map((entry) => readSource(entry, snapshot)));
  const layers = readings.flatMap((reading) => reading.layer ?? []);
  const incompleteScopes = [...new Set(readings.flatMap((reading) => reading.unusable ?? []))];
  return {
    settings: mergeSettings(layers, { trusted: options.trusted }),
    layers,
    diagnostics: readings.flatMap((reading) => reading.diagnostics),
    incomplete: incompleteScopes.length > 0,
    incompleteScopes,
  };
}

const sizeLimit = 2 * 1024 * 1024;

interface SourceEntry {
  readonly source: SettingsSource;
  /** The JSON itself, where it did not come from a file. */
  readonly text?: string;
  /** The caller named this file, so it must be there. */
  readonly mustExist?: boolean;
  /** Why this source cannot be read at all. */
  readonly failure?: Diagnostic;
}

async function listSources({
  paths,
  sources,
  flagSettings,
  footprint: snapshot,
}: LoadSettingsOptions): Promise<readonly SourceEntry[]> {
  const wants = (scope: "user" | "project" | "local") => sources === undefined || sources.includes(scope);
  const { settings } = paths;
  const entries: SourceEntry[] = [];
  if (wants("user"))
    entries.push({ source: { scope: "user", file: settings.user, anchor: paths.configDirectory } });
  for (const file of wants("project") ? settings.project : []) {
    entries.push({ source: { scope: "project", file, anchor: dirname(dirname(file)) } });
  }
  for (const file of wants("local") ? settings.local : []) {
    entries.push({ source: { scope: "local", file, anchor: paths.cwd } });
  }
  if (flagSettings !== undefined) entries.push(flagSource(flagSettings, paths.cwd));
  const managed = { scope: "managed", anchor: paths.managedDirectory } as const;
  entries.push({ source: { ...managed, file: settings.managed } });
  const filesOf = (some: readonly SourceEntry[]) => some.flatMap(({ source: { file } }) => file ?? []);
  snapshot?.add([settings.managedDropIns, ...filesOf(entries)]);
  const dropIns = await listDropIns(settings.managedDropIns, managed);
  if (dropIns.length > 0) snapshot?.add(filesOf(dropIns));
  return [...entries, ...dropIns];
}

function flagSource(given: string, cwd: string): SourceEntry {
  if (given.trimStart().startsWith("{")) return { source: { scope: "flags", anchor: cwd }, text: given };
  const file = resolve(cwd, given);
  return { source: { scope: "flags", file, anchor: dirname(file) }, mustExist: true };
}

async function listDropIns(
  directory: string,
  source: Omit<SettingsSource, "file">,
): Promise<readonly SourceEntry[]> {
  try {
    const names = (await readdir(directory)).filter(
      (name) => name.endsWith(".json") && !name.startsWith("."),
    );
    return names.sort().map((name) => ({ source: { ...source, file: join(directory, name) } }));
  } catch (error) {
    if (isMissing(error)) return [];
    const failure = unreadable(directory, reasonOf(error));
    return [{ source: { ...source, file: directory }, failure }];
  }
}

interface SourceReading {
  readonly layer?: SettingsLayer;
  readonly diagnostics: readonly Diagnostic[];
  readonly unusable?: SettingsScope;
}

async function readSource(entry: SourceEntry, snapshot: FileSnapshot | undefined): Promise<SourceReading> {
  const { source } = entry;
  const failed = (diagnostic: Diagnostic): SourceReading => ({
    diagnostics: [diagnostic],
    unusable: source.scope,
  });
  if (entry.failure !== undefined) return failed(entry.failure);
  const content =
    entry.text === undefined
      ? await readBounded(source.file ?? "")
      : { type: "text" as const, text: entry.text };
  if (content.type === "missing") {
    return entry.mustExist === true
      ? failed(unreadable(source.file, "there is no such file"))
      : { diagnostics: [] };
  }
  if (content.type === "unreadable") return failed(unreadable(source.file, content.reason));
  if (content.text.replace("\uFEFF", "").trim() === "") return { diagnostics: [emptyFile(source.file)] };
  return refuseForeign(readText(content.text, source), snapshot);
}

/** What is in a file of the organisation that others can write is not the organisation's word. */
async function refuseForeign(
  reading: SourceReading,
  snapshot: FileSnapshot | undefined,
): Promise<SourceReading> {
  const { layer, diagnostics } = reading;
  const file = layer?.source.scope === "managed" ? layer.source.file : undefined;
  const why = file === undefined ? undefined : await findForeignWriters(file, { snapshot });
  if (layer === undefined || file === undefined || why === undefined) return reading;
  const diagnostic = unsafeManagedDiagnostic(file, why, "only its restrictions apply");
  return { ...reading, layer: { ...layer, isUnsafe: true }, diagnostics: [diagnostic, ...diagnostics] };
}

function readText(text: string, source: SettingsSource): SourceReading {
  const document = parseJsonDocument(text, source.file);
  if (document.diagnostic !== undefined)
    return { diagnostics: [document.diagnostic], unusable: source.scope };
  const { settings, issues } = readSettings(document.value, { scope: source.scope });
  const isUnusable = issues.some((issue) => issue.path.length === 0 && issue.severity === "error");
  return {
    layer: { source, settings },
    diagnostics: placeFindings(issues, source.file, document.locate),
    ...(isUnusable ? { unusable: source.scope } : {}),
  };
}

type Content =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "missing" }
  | { readonly type: "unreadable"; readonly reason: string };

/** Opens without waiting, so that a pipe in the place of the file cannot hold up the start. */
export async function readBounded(file: string, limit = sizeLimit): Promise<Content> {
  try {
    await using handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK);
    const status = await handle.stat();
    if (!status.isFile()) return { type: "unreadable", reason: "it is not a regular file" };
    const buffer = Buffer.alloc(Math.min(status.size, limit) + 1);
    let length = 0;
    for (let count = -1; count !== 0 && length < buffer.length; length += count) {
      count = (await handle.read(buffer, length, buffer.length - length)).bytesRead;
    }
    if (length > limit)
      return { type: "unreadable", reason: `it is larger than ${Math.round(limit / 1024 / 1024)} MiB` };
    if (length > status.size) return { type: "unreadable", reason: "it grew while it was read" };
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(
      buffer.subarray(0, length),
    );
    return { type: "text", text };
  } catch (error) {
    if (isMissing(error)) return { type: "missing" };
    return {
      type: "unreadable",
      reason: error instanceof TypeError ? "it is not UTF-8 text" : reasonOf(error),
    };
  }
}

function unreadable(file: string | undefined, reason: string): Diagnostic {
  return {
    severity: "error",
    code: "settings-unreadable",
    message: `The settings ${file === undefined ? "given on the command line" : quote(file, 300)} cannot be read: ${reason}.`,
    advice:
      "Fix or remove it; until then unattended runs are blocked because its restrictions can't be read.",
    file,
  };
}

function emptyFile(file: string | undefined): Diagnostic {
  return {
    severity: "note",
    code: "settings-empty",
    message: "This settings file is empty.",
    advice: "Write {} or remove the file.",
    file,
  };
}

function isMissing(error: unknown): boolean {
  const code = codeOf(error);
  return code === "ENOENT" || code === "ENOTDIR";
}

function reasonOf(error: unknown): string {
  return codeOf(error) ?? (error instanceof Error ? error.message : String(error));
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/**
 * Why users other than the administrator and this one could change a file: it, a folder on the way to it or a link in
 * its place belongs to another, or others may write it. Undefined where they cannot, where there is no file, and on
 * systems without such owners.
 */
export async function findForeignWriters(
  file: string,
  { userId = process.getuid?.(), snapshot }: ForeignWritersOptions = {},
): Promise<string | undefined> {
  if (userId === undefined) return undefined;
  snapshot?.add([file], "place");
  const real = await realpath(file).catch(() => undefined);
  if (real === undefined) return undefined;
  const places = [...new Set([...placesOnTheWay(real), ...placesOnTheWay(file)])];
  snapshot?.add(places, "kind");
  for (const place of places) {
    const stats = await lstat(place).catch(() => undefined);
    if (stats === undefined) continue;
    if (stats.uid !== 0 && stats.uid !== userId) return `${place} belongs to another user (${stats.uid})`;
    // The rights of a link are not looked at; in a folder with the sticky bit users cannot replace what others own.
    const isExempt = stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & 0o1000) !== 0);
    if (!isExempt && (stats.mode & 0o022) !== 0)
      return `${place} can be written by others (mode ${(stats.mode & 0o7777).toString(8)})`;
  }
  return undefined;
}

interface ForeignWritersOptions {
  readonly userId?: number | undefined;
  readonly snapshot?: FileSnapshot | undefined;
}

/** The code of the problem below. */
export const unsafeManagedCode = "managed-unsafe";

/** A file of the organisation that others could have written; `effect` says what becomes of it. */
export function unsafeManagedDiagnostic(file: string, why: string, effect: string): Diagnostic {
  return {
    severity: "error",
    code: "managed-unsafe",
    message: `${file} ${effect}: ${why}.`,
    advice:
      "Files of an organisation and the folders they are in must belong to root and be writable by no one else: chown root, chmod go-w.",
    file,
  };
}

function placesOnTheWay(path: string): readonly string[] {
  const parent = dirname(path);
  return parent === path ? [path] : [path, ...placesOnTheWay(parent)];
}
