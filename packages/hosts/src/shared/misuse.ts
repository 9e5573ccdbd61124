import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** The error of a command that is called wrongly, with what to write instead. */
export function misuse(message: string, advice?: string): RetinueError {
  return new RetinueError("misuse", message, advice === undefined ? {} : { advice });
}

/** Commands of agents carry this mark; a person's own shell does not. */
export function refuseAgents({
  environment,
}: {
  readonly environment: Readonly<Record<string, string | undefined>>;
}): void {
  if ((environment["CLAUDECODE"] ?? "") === "") return;
  throw new RetinueError("not-a-person", "This is a command of an agent, and only a person decides this.", {
    advice: "Run it in a terminal of your own, where CLAUDECODE is not set.",
  });
}
