import { isToolEntry } from "@retinue/core/kernel/options/find-bad-rule.ts";
import type { SessionOptions } from "@retinue/core/kernel/options/runtime-options.ts";
import { type CommandFlags, checkFlags, type RunFlags, sessionOptionsOf } from "./flags.ts";
import { misuse } from "./misuse.ts";

const outputFormats = ["text", "json", "stream-json"] as const;
const inputFormats = ["text", "stream-json"] as const;

/** What `retinue -p` was asked to do. The table of flags has checked each value; here is checked what they mean together. */
export interface PrintRequest {
  readonly output: (typeof outputFormats)[number];
  readonly input: (typeof inputFormats)[number];
  readonly partial: boolean;
  readonly replay: boolean;
  /** What children say too, not only what they do. */
  readonly childText: boolean;
  /** JSON is a list of all messages, not the result alone. */
  readonly verbose: boolean;
  readonly session: SessionOptions;
}

interface Surroundings {
  readonly words: readonly string[];
  readonly cwd: string;
  readonly session: CommandFlags;
}

export function readPrintOptions(options: RunFlags, { words, cwd, session }: Surroundings): PrintRequest {
  const input = formatOf(inputFormats, options.inputFormat);
  if (input === "stream-json" && words.length > 0) {
    throw misuse(
      "With --input-format stream-json the prompts come from stdin alone.",
      "Leave out the prompt.",
    );
  }
  const { allowedTools, tools } = options;
  checkFlags(session, cwd, options);
  // People write `--allowedTools Read Edit`; the second name would quietly become a word of the prompt.
  const hasList = [allowedTools, tools, session.disallowedTools].some((list) => list !== undefined);
  const stray = words.length > 1 && hasList ? words.find(isToolEntry) : undefined;
  if (stray !== undefined)
    throw misuse(
      `${JSON.stringify(stray)} was given where a prompt is expected.`,
      'Write lists of tools with commas, as in --allowedTools "Read,Edit", and the prompt in quotes.',
    );
  return {
    output: formatOf(outputFormats, options.outputFormat),
    input,
    partial: options.includePartialMessages === true,
    replay: options.replayUserMessages === true,
    childText: options.forwardSubagentText === true,
    verbose: session.verbose === true,
    session: sessionOptionsOf(options, cwd),
  };
}

/** One of these, as the table of flags has checked; the first where none is given. */
function formatOf<Format extends string>(
  known: readonly [Format, ...Format[]],
  given: string | undefined,
): Format {
  return known.find((format) => format === given) ?? known[0];
}
