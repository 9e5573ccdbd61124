import type { ShellAnalysis } from "./shell-types.ts";

export type { PathOperand, ShellAnalysis, ShellUnit } from "./shell-types.ts";

/** Understands a Bash command by its grammar, which is loaded at the first call; never throws. */
export async function analyseShell(command: string): Promise<ShellAnalysis> {
  const kept = recent.get(command);
  if (kept !== undefined) return kept;
  const [grammar, { analyseWith }] = await Promise.all([import("unbash"), import("./shell-grammar.ts")]);
  const analysis = analyseWith(grammar, command);
  if (recent.size >= keptCount) recent.clear();
  if (command.length <= keptLength) recent.set(command, analysis);
  return analysis;
}

/** Only saves time: an analysis depends on nothing but the text. */
const recent = new Map<string, ShellAnalysis>();
const keptCount = 256;
const keptLength = 4_000;
