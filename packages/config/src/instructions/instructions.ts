import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";

/** Whose word an instruction file is; the later one in this order is nearer to the work. */
export type InstructionKind = "managed" | "user" | "project" | "local";

export interface InstructionFile {
  readonly file: string;
  readonly kind: InstructionKind;
  readonly text: string;
  /** The file that names this one with `@path`. */
  readonly importedBy?: string;
}

/** A rule that only counts once a file that fits one of its globs is worked on. */
export interface ConditionalRule extends InstructionFile {
  readonly paths: readonly string[];
  /** The folder the globs are relative to. */
  readonly folder: string;
}

/** Everything people wrote down for agents that work here, in the order in which it is read. */
export interface Instructions {
  readonly files: readonly InstructionFile[];
  readonly conditional: readonly ConditionalRule[];
  /** Files outside the project that project files point to and that have not been allowed yet. */
  readonly heldBack: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

export const noInstructions: Instructions = { files: [], conditional: [], heldBack: [], diagnostics: [] };

const kindWords: Readonly<Record<InstructionKind, string>> = {
  managed: "your organisation",
  user: "the user, for all projects",
  project: "the project",
  local: "the user, for this project only",
};

const preface = `# Instructions for this project
People wrote the files below for agents that work here. Follow them where they concern the task. Where two disagree,
your organisation's come first, and otherwise the file that is further down counts.`;

interface InstructionsTextOptions {
  /** For agents that leave CLAUDE.md out: what the organisation wrote holds for them too. */
  readonly only?: "managed";
}

/** One text for a prompt: each file under its name. Undefined when there is nothing to say. */
export function instructionsText(
  { files }: Pick<Instructions, "files">,
  { only }: InstructionsTextOptions = {},
): string | undefined {
  const shown = files.filter(({ kind, text }) => text.trim() !== "" && (only === undefined || kind === only));
  if (shown.length === 0) return undefined;
  return [preface, ...shown.map(fileText)].join("\n\n");
}

/** A file that writes the closing mark itself could pose as another one; its mark is made harmless. */
function fileText({ file, kind, text, importedBy }: InstructionFile): string {
  const from = importedBy === undefined ? "" : ` imported-by="${attribute(importedBy)}"`;
  const body = text.trim().replace(/<(\/?)instructions\b/gi, "‹$1instructions");
  return `<instructions file="${attribute(file)}" from="${kindWords[kind]}"${from}>\n${body}\n</instructions>`;
}

function attribute(path: string): string {
  return path.replace(/["<>\p{Cc}]/gu, "_");
}
