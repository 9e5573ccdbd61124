// @io
import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import type { AgentScope } from "../agents/agent-source.ts";
import type { ParsedAgent } from "../agents/parse-agent-definition.ts";
import { agentFormats } from "./agent-formats.ts";
import { definitionOf } from "./definition-of.ts";
import { type FormatId, pathInPlace } from "./format-facts.ts";
import type { PortableReading } from "./portable-agent.ts";
import { largestSource } from "./read-fenced.ts";

interface ForeignPlace {
  readonly scope: AgentScope;
  readonly path: string;
  readonly format?: FormatId | undefined;
  readonly within?: string | undefined;
  /** Gets each further file that what was read depends on, before it is looked at. */
  readonly looksAt?: ((file: string) => void) | undefined;
}

/** The definitions in a file of another product, with what it says that means nothing here. */
export function readForeignFile(text: string, file: string, place: ForeignPlace): readonly ParsedAgent[] {
  const { agents, diagnostics } = readPortableFile(text, file, place);
  return [{ diagnostics }, ...agents.map((agent) => definitionOf(agent, place))];
}

/** The agents in a file, in the form between formats. */
export function readPortableFile(
  text: string,
  file: string,
  { path, format = "claude", within = dirname(file), looksAt }: Omit<ForeignPlace, "scope">,
): PortableReading {
  const below = (path === file ? pathInPlace(file, format) : relative(path, file)) ?? "";
  const named = below === "" || below.startsWith("..") ? basename(file) : below.split(sep).join("/");
  return agentFormats[format].read(text, {
    file,
    relative: named,
    include: (name) => {
      const included = resolve(dirname(file), name);
      looksAt?.(included);
      // Only what lies within the folder itself, wherever links lead: a file must not bring text from elsewhere to a model.
      try {
        const real = realpathSync(included);
        const root = realpathSync(within);
        const isInside = real.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);
        if (!isInside || statSync(real).size > largestSource) return undefined;
        return readFileSync(real, "utf8");
      } catch {
        return undefined;
      }
    },
    above: (paths) =>
      foldersFromRoot(within).flatMap((folder) =>
        paths.flatMap((each) => {
          const found = join(folder, each);
          looksAt?.(found);
          // Settings hold wherever a link brings them from: they only limit.
          const stats = statSync(found, { throwIfNoEntry: false });
          if (stats?.isFile() !== true) return [];
          try {
            return [
              { file: found, text: stats.size > largestSource ? undefined : readFileSync(found, "utf8") },
            ];
          } catch {
            return [{ file: found, text: undefined }];
          }
        }),
      ),
  });
}

/** From the root of the repository down to a folder; only the folder, where it is in none. */
function foldersFromRoot(folder: string): readonly string[] {
  const folders = [folder];
  for (let at = folder; !existsSync(join(at, ".git")); ) {
    const parent = dirname(at);
    if (parent === at) return [folder];
    folders.unshift(parent);
    at = parent;
  }
  return folders;
}
