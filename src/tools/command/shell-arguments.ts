import type { Shell } from "./find-shell.ts";

/** What a shell evaluates, and what the agent wrote: the second is only for people who look at the process list. */
export interface ShellText {
  readonly judged: string;
  readonly written: string;
}

/**
 * The arguments that make a shell run a command exactly as it was judged. The command is handed over as a value and
 * evaluated, so nothing in it can swallow what is around it.
 */
export function shellArguments(shell: Shell, text: ShellText): readonly string[] {
  return [...shell.options, "-c", plainScript, "bash", ...valuesOf(text)];
}

/** A shell that expands no file patterns: those of a judged command were expanded when it was judged. */
export function withoutPatterns(shell: Shell): Shell {
  return { ...shell, options: [...shell.options, "-f"] };
}

/** As above; the shell also writes the folder it ends in to descriptor 3, which the command itself cannot reach. */
export function reportingShellArguments(shell: Shell, text: ShellText): readonly string[] {
  return [...shell.options, "-c", reportingScript, "bash", ...valuesOf(text)];
}

function valuesOf({ judged, written }: ShellText): readonly string[] {
  return judged === written || written.length > maxShownLength ? [judged] : [judged, written];
}

/** The folder out of a report: its last line, for an exit trap may have reported twice. */
export function reportedDirectory(report: string): string | undefined {
  const line = report.trimEnd().split("\n").at(-1) ?? "";
  return line.startsWith("/") ? line : undefined;
}

const maxShownLength = 4_096;

const plainScript = ["retinue_command=$1", 'shift "$#"', 'eval "$retinue_command"'].join("\n");

const reportingScript = [
  "trap '{ pwd -P >&3; } 2>/dev/null' EXIT",
  "retinue_command=$1",
  'shift "$#"',
  'eval "$retinue_command" 3>&-',
  "retinue_status=$?",
  "pwd -P >&3",
  "exit $retinue_status",
].join("\n");
