import { addTotals, type RunEnding, type RunTotals } from "../conversation/run-event.ts";

/** Adds what the children took; a run without children is its own tree. */
export function withTree(ending: RunEnding, children: RunTotals | undefined): RunEnding {
  return children === undefined ? ending : { ...ending, tree: addTotals(ending.totals, children) };
}

/** A run that had to be reminded is one run to its caller. */
export function joinEndings(before: RunEnding | undefined, last: RunEnding): RunEnding {
  if (before === undefined) return last;
  return {
    ...last,
    text: last.text === "" ? before.text : last.text,
    denials: [...before.denials, ...last.denials],
    totals: addTotals(before.totals, last.totals),
  };
}

/** What became of a result of a certain form that was asked for. */
export interface OutputResult {
  readonly isMissing: boolean;
  readonly limit: string | undefined;
  readonly handedIn: { readonly output: unknown } | undefined;
}

export function finalEnding(ending: RunEnding, { isMissing, limit, handedIn }: OutputResult): RunEnding {
  if (handedIn !== undefined) return { ...ending, output: handedIn.output };
  if (!isMissing) return ending;
  if (limit !== undefined) return { ...ending, status: "partial", reason: limit };
  const error = "The agent did not hand in a result of the form that was asked for.";
  return { ...ending, status: "failed", reason: "max_structured_output_retries", error };
}
