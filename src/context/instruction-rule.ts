import { readFrontmatter } from "../definitions/read-frontmatter.ts";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { unclearPathsDiagnostic } from "./instruction-diagnostics.ts";

export interface InstructionRule {
  readonly text: string;
  /** Globs that say for which files the rule counts; absent when it counts always. */
  readonly paths?: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a file of a `rules` folder: the text without its frontmatter, and what `paths` says. */
export function readInstructionRule(source: string, file: string): InstructionRule {
  const frontmatter = readFrontmatter(source);
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
