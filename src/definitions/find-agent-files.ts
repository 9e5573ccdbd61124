// @io
import { type Dirent, readdirSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Diagnostic } from "../foundation/diagnostic.ts";

export interface AgentFiles {
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** No one keeps more; a link into a whole disk would. */
const maxFiles = 20_000;
const deepest = 16;

export function findAgentFilesIn(paths: readonly string[]): readonly AgentFiles[] {
  return paths.map(findAgentFiles);
}

/** All Markdown files below a path, or the path itself if it is one, in a stable order. A missing path has none. */
export function findAgentFiles(path: string): AgentFiles {
  const files: string[] = [];
  const diagnostics: Diagnostic[] = [];
  const visited = new Set<string>();
  const kind = kindOf(path);
  if (kind === "file") return { files: isMarkdown(path) ? [path] : [], diagnostics };
  if (kind === "directory") walk(path, 0);
  return { files, diagnostics };

  function walk(directory: string, depth: number): void {
    const entries = readEntries(directory, diagnostics);
    for (const entry of entries) {
      const child = join(directory, entry.name);
      const childKind = entry.isSymbolicLink() ? kindOf(child) : kindOfEntry(entry);
      if (childKind === "file" && isMarkdown(entry.name)) files.push(child);
      if (files.length >= maxFiles) {
        stopAt(directory, `more than ${maxFiles} files`);
        return;
      }
      if (childKind !== "directory" || entry.name === "node_modules" || entry.name === ".git") continue;
      if (depth >= deepest) stopAt(child, `folders nested more than ${deepest} deep`);
      else if (entersFirstTime(child, entry)) walk(child, depth + 1);
    }
  }

  /** Links may form a circle; only a link can, so only then the real path is asked for. */
  function entersFirstTime(child: string, entry: Dirent): boolean {
    if (!entry.isSymbolicLink()) return true;
    const real = realpathSync(child);
    if (visited.has(real) || path.startsWith(`${real}/`) || path === real) return false;
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
