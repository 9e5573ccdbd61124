// @io
import { existsSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { findAgentFiles } from "@retinue/config/discovery/find-agent-files.ts";
import {
  type FormatId,
  folderAbove,
  formatFacts,
  formatIds,
  formatOf,
  formatOfFile,
} from "@retinue/config/formats/format-facts.ts";
import type { ReadAgent } from "@retinue/config/formats/portable-agent.ts";
import { largestSource } from "@retinue/config/formats/read-fenced.ts";
import { readPortableFile } from "@retinue/config/formats/read-foreign-file.ts";
import { applyEdits, modify, type ParseError, parse as parseJson } from "jsonc-parser";
import type { ProjectFacts } from "../project-facts.ts";
import { writeNewFile } from "../write-new-file.ts";
import { type Conversion, compareAgents, convertAgent } from "./convert-agent.ts";

export type { RightsRow } from "../../../planning/agent-rights.ts";
export type { Conversion, Loss } from "./convert-agent.ts";

export interface ConvertOptions {
  /** A format, a file or a folder; every other product's files of the project when left out. */
  readonly source?: string;
  readonly from?: string;
  readonly to: string;
  readonly dryRun?: boolean;
  readonly allowWider?: boolean;
  readonly replaces?: boolean;
}

/** `refused` is wider than before and was not asked for, `unreadable` no agent for the target; `exists` would have replaced a file. */
export interface ConvertedAgent extends Conversion {
  readonly output: string;
  readonly status: "written" | "would-write" | "refused" | "unreadable" | "exists";
}

export interface ConvertResult {
  readonly agents: readonly ConvertedAgent[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface ComparedAgent extends Pick<Conversion, "rights" | "mode" | "widenings" | "losses"> {
  readonly name: string;
  readonly before?: string;
  readonly after?: string;
}

export interface CompareResult {
  readonly agents: readonly ComparedAgent[];
  /** Names that only one side has. */
  readonly onlyBefore: readonly string[];
  readonly onlyAfter: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Agent files of other products: converted and compared, never with more rights than before unless that is asked for. */
export interface ProjectFormats {
  convert(options: ConvertOptions): Promise<ConvertResult>;
  compare(before: string, after: string): Promise<CompareResult>;
}

export function projectFormats(gather: () => Promise<ProjectFacts>): ProjectFormats {
  return {
    convert: async (options) => convert(await gather(), options),
    compare: async (before, after) => compare(await gather(), before, after),
  };
}

async function convert({ discovered }: ProjectFacts, options: ConvertOptions): Promise<ConvertResult> {
  const { cwd, projectRoot, temporaryNotes: notes } = discovered.paths;
  const to = knownFormat(options.to);
  const { files, diagnostics } = findSources(options, cwd, projectRoot);
  const { allowWider = false, dryRun = false, replaces = false } = options;
  const folders = formatFacts[to].project;
  const folder =
    formatFacts[to].areFiles === true
      ? projectRoot
      : join(projectRoot, to === "opencode" ? ".opencode/agents" : (folders[0] ?? ""));
  const sources = files.filter(({ agent }) => agent.origin.format !== to || options.source !== undefined);
  const agents: ConvertedAgent[] = [];
  for (const { agent, placeOf, text, isAlone } of sources) {
    const made = convertAgent({ agent, placeOf }, to, { allowWider, ...(isAlone ? { text } : {}) });
    const output = join(folder, made.target);
    const isRefused = made.widenings.length > 0 && !allowWider;
    // Several agents of one file are written into it one after the other.
    const isShared = formatFacts[to].areFiles === true;
    const isTaken = agents.some(
      (other) =>
        other.output === output &&
        (!isShared || other.name === made.name) &&
        other.status !== "refused" &&
        other.status !== "unreadable",
    );
    agents.push({ ...made, output, status: await settle() });

    async function settle(): Promise<ConvertedAgent["status"]> {
      if (isRefused) return "refused";
      if (made.unreadable !== undefined) return "unreadable";
      if (isTaken) return "exists";
      const before = isShared && existsSync(output) ? readFileSync(output, "utf8") : undefined;
      if (before === undefined) {
        if (dryRun) return existsSync(output) && !replaces ? "exists" : "would-write";
        return writeNewFile(output, made.text, { replaces, notes });
      }
      const joined = withAgent(before, made, { replaces, file: output });
      if (joined === undefined) return "exists";
      return dryRun ? "would-write" : writeNewFile(output, joined, { replaces: true, notes });
    }
  }
  return { agents, diagnostics };
}

/** A file of settings with one more agent in it, all else as it was; undefined where it has one of that name already. */
function withAgent(
  before: string,
  { name, text }: Conversion,
  { replaces, file }: { readonly replaces: boolean; readonly file: string },
): string | undefined {
  const errors: ParseError[] = [];
  const settings: unknown = parseJson(before, errors, { allowTrailingComma: true });
  if (errors.length > 0 || !isRecord(settings))
    throw new RetinueError("misuse", `${quote(file, 300)} is not valid JSON, so nothing was added to it.`, {
      advice: "Fix the file first; `retinue agents check` shows where.",
    });
  const { agent } = settings;
  if (isRecord(agent) && Object.hasOwn(agent, name) && !replaces) return undefined;
  const made: unknown = parseJson(text);
  const value = isRecord(made) && isRecord(made["agent"]) ? made["agent"][name] : undefined;
  const note = /^(?:\/\/.*\n)+/.exec(text)?.[0] ?? "";
  const formattingOptions = { insertSpaces: true, tabSize: 2 };
  return `${note}${applyEdits(before, modify(before, ["agent", name], value, { formattingOptions }))}`;
}

async function compare({ discovered }: ProjectFacts, before: string, after: string): Promise<CompareResult> {
  const { cwd, projectRoot } = discovered.paths;
  const [first, second] = [before, after].map((source) => findSources({ source }, cwd, projectRoot));
  const oldFiles = first?.files ?? [];
  const newFiles = second?.files ?? [];
  const diagnostics = [...(first?.diagnostics ?? []), ...(second?.diagnostics ?? [])];
  const isOnePair = oldFiles.length === 1 && newFiles.length === 1;
  const pairs = isOnePair
    ? [[oldFiles[0], newFiles[0]] as const]
    : oldFiles.map((old) => [old, newFiles.find(({ agent }) => agent.id === old.agent.id)] as const);
  const agents = pairs.flatMap(([old, other]) => {
    if (old === undefined || other === undefined) return [];
    return [{ name: old.agent.id, before: fileOf(old), after: fileOf(other), ...compareAgents(old, other) }];
  });
  if (agents.length === 0)
    throw new RetinueError("misuse", `No agent is in both ${quote(before, 200)} and ${quote(after, 200)}.`, {
      advice: "Name two agent files, or two folders with agents of the same names.",
    });
  const only = (some: readonly FoundAgent[], others: readonly FoundAgent[]) =>
    isOnePair
      ? []
      : some.flatMap(({ agent: { id } }) => (others.some(({ agent }) => agent.id === id) ? [] : [id]));
  return { agents, onlyBefore: only(oldFiles, newFiles), onlyAfter: only(newFiles, oldFiles), diagnostics };
}

function fileOf({ agent }: ReadAgent): string {
  return agent.origin.file ?? "";
}

function knownFormat(word: string): FormatId {
  const format = formatOf(word);
  if (format !== undefined) return format;
  throw new RetinueError("misuse", `Unknown format ${quote(word)}.`, {
    advice: `Write one of ${formatIds.join(", ")}.`,
  });
}

interface FoundAgent extends ReadAgent {
  readonly text: string;
  /** It is the only agent of its file. */
  readonly isAlone: boolean;
}

interface FoundSources {
  readonly files: readonly FoundAgent[];
  readonly diagnostics: readonly Diagnostic[];
}

function findSources(
  { source, from }: Pick<ConvertOptions, "source" | "from">,
  cwd: string,
  projectRoot: string,
): FoundSources {
  if (source === undefined)
    return readPlaces(
      formatIds.filter((id) => id !== "claude").flatMap((id) => placesBelow(projectRoot, id)),
    );
  const path = resolve(cwd, source);
  const stats = statSync(path, { throwIfNoEntry: false });
  const named = formatOf(source);
  if (named !== undefined && stats?.isFile() !== true)
    return readPlaces(
      formatIds
        .filter((id) => formatFacts[id].source === formatFacts[named].source)
        .flatMap((id) => placesBelow(projectRoot, id)),
    );
  if (stats === undefined)
    throw new RetinueError("misuse", `There is no format, file or folder ${quote(source, 300)}.`, {
      advice: `Formats are ${formatIds.join(", ")}.`,
    });
  const given = from === undefined ? undefined : knownFormat(from);
  if (stats.isFile()) {
    const format = given ?? formatOfFile(path) ?? formatOfName(basename(path));
    if (format === undefined)
      throw new RetinueError(
        "misuse",
        `The format of ${quote(source, 300)} cannot be inferred from its path.`,
        {
          advice: "Pass it with --from FORMAT.",
        },
      );
    return readPlaces([{ path, format, within: folderAbove(path, format) ?? dirname(path) }]);
  }
  const inside =
    given ??
    formatIds.find((id) => formatFacts[id].project.some((place) => `${path}/`.endsWith(`/${place}/`)));
  if (inside !== undefined)
    return readPlaces(
      formatIds
        .filter(
          (id) =>
            formatFacts[id].source === formatFacts[inside].source && (id === inside || given === undefined),
        )
        .map((format) => ({ path, format, within: folderAbove(path, format) ?? path })),
    );
  return readPlaces(formatIds.flatMap((id) => placesBelow(path, id)));
}

/** Names that no other product uses. */
function formatOfName(name: string): FormatId | undefined {
  if (/\.agent\.md$/i.test(name)) return "copilot";
  return /\.toml$/i.test(name) ? "codex" : undefined;
}

interface SourcePlace {
  readonly path: string;
  readonly format: FormatId;
  readonly within: string;
}

function placesBelow(folder: string, format: FormatId): readonly SourcePlace[] {
  return formatFacts[format].project.map((place) => ({ path: join(folder, place), format, within: folder }));
}

function readPlaces(places: readonly SourcePlace[]): FoundSources {
  const found = places.flatMap((place) => {
    const { files, isDeep = false } = formatFacts[place.format];
    const isNamed = statSync(place.path, { throwIfNoEntry: false })?.isFile() === true;
    const listing = isNamed
      ? { files: [place.path], diagnostics: [] }
      : findAgentFiles(place.path, undefined, { isAgentFile: (name) => files.test(name), isDeep });
    const readings = listing.files.map((file) => readOne(file, place));
    return [{ files: [], diagnostics: listing.diagnostics }, ...readings];
  });
  return {
    files: found.flatMap(({ files }) => files),
    diagnostics: found.flatMap(({ diagnostics }) => diagnostics),
  };
}

function readOne(file: string, place: SourcePlace): FoundSources {
  const problem = (message: string): FoundSources => ({
    files: [],
    diagnostics: [{ severity: "error", code: "unreadable-file", message, file }],
  });
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > largestSource)
    return problem("The file is larger than 1 MiB.");
  try {
    const text = readFileSync(file, "utf8");
    const { agents, diagnostics } = readPortableFile(text, file, place);
    return { files: agents.map((agent) => ({ ...agent, text, isAlone: agents.length === 1 })), diagnostics };
  } catch (error) {
    return problem(
      `This cannot be read (${error instanceof Error && "code" in error ? String(error.code) : String(error)}).`,
    );
  }
}
