import type { ProcessEnding } from "../../foundation/drive-process.ts";
import type { ToolOutcome } from "../tool.ts";
import type { CommandOutputView } from "../write-command-output.ts";
import type { TimeLimit } from "./bash-limits.ts";

/** What a model should know about how a command ended, besides its output. */
export function endingNotes(ending: ProcessEnding, limit: TimeLimit): readonly string[] {
  const notes: string[] = [];
  if (ending.notStarted !== undefined) notes.push(`The command could not be started: ${ending.notStarted}`);
  if (ending.aborted) notes.push("The command was interrupted before it ended.");
  if (ending.timedOut) {
    notes.push(
      `The command was ended after ${limit.milliseconds} ms, its time limit. Give it a longer timeout, or run_in_background.`,
    );
  } else if (ending.exitCode !== undefined && ending.exitCode !== 0) {
    notes.push(`Exit code ${ending.exitCode}`);
  } else if (ending.signal !== undefined && !ending.aborted) notes.push(`Ended by ${ending.signal}`);
  if (ending.leftBehind > 0 && !ending.timedOut && !ending.aborted) {
    notes.push(
      `Processes it had left behind were ended (${ending.leftBehind}). Use run_in_background for what should go on.`,
    );
  }
  return notes;
}

export function outcomeOf(
  view: CommandOutputView,
  ending: ProcessEnding,
  { notes, durationMs }: { readonly notes: readonly (string | undefined)[]; readonly durationMs: number },
): ToolOutcome {
  const said = notes.filter((note) => note !== undefined);
  const output = view.text.trimEnd();
  const parts =
    output === "" && said.length === 0 ? ["(no output)"] : [output, ...said].filter((part) => part !== "");
  const interrupted = ending.timedOut || ending.aborted;
  return {
    content: parts.join("\n"),
    isError: interrupted || ending.exitCode !== 0,
    data: {
      stdout: view.text,
      stderr: "",
      interrupted,
      ...(ending.exitCode === undefined ? {} : { exitCode: ending.exitCode }),
      ...(view.file === undefined ? {} : { persistedOutputPath: view.file }),
      durationMs,
    },
  };
}
