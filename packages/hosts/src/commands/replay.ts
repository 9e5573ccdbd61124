import { join, relative, resolve } from "node:path";
import { refuseSystemPath } from "@retinue/base/foundation/find-working-folder.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { writeNewFile } from "@retinue/core/kernel/project/write-new-file.ts";
import {
  describeReplay,
  findGaps,
  type ReplaySessionOptions,
} from "@retinue/core/kernel/replay/replay-session.ts";
import { saveRecording } from "@retinue/core/kernel/replay/save-recording.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { displayPath } from "../shared/display-path.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { pathsOf } from "../shared/find-named-task.ts";
import { checkFlags, type RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { createPrintRuntime } from "../shared/open-print-session.ts";
import { openFolder } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

export interface ReplayCommandOptions extends RunFlags {
  readonly from?: string;
  readonly prompt?: string;
  readonly save?: string;
  readonly runner?: keyof typeof runners;
  readonly json?: boolean;
}

/** `retinue replay [ID]`: drives the loop through a recorded session without a model, and shows what is different now. */
export async function replay(
  context: CommandContext,
  words: readonly string[],
  options: ReplayCommandOptions,
): Promise<number> {
  const { host } = context;
  checkFlags(context.session, host.cwd);
  const written = words.length === 0 ? undefined : words.join(" ");
  if (options.save !== undefined) return save(host, written, options);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    await using runtime = createPrintRuntime(context, { approvals: "refuse" });
    const { tools, from, agent, model, prompt, ...others } = options;
    if (tools !== undefined && tools !== "recorded" && tools !== "real")
      throw misuse(`--tools must be recorded or real for a replay, but is ${JSON.stringify(tools)}.`);
    if (from === undefined && (model !== undefined || prompt !== undefined))
      throw misuse(
        `--${model === undefined ? "prompt" : "model"} needs --from: the message from which on it counts.`,
        "Give the number of an answer, or the beginning of the id of a message.",
      );
    const { systemPrompt, appendSystemPrompt } = others;
    const asked: ReplaySessionOptions = {
      tools,
      from,
      agent,
      model,
      prompt,
      systemPrompt,
      appendSystemPrompt,
    };
    const report = await runtime.replay(written, { ...asked, signal: stop.signal });
    if (stop.signal.aborted) return exitCodeOf(stop.signal.reason);
    if (options.json === true) host.stdout.write(`${JSON.stringify(report, undefined, 2)}\n`);
    else host.stdout.write(describe(host, report));
    // With a change the caller wants to see what it makes different; without one nothing should be.
    const isSame = report.differences.length === 0 && findGaps(report).length === 0;
    return isSame || asked.from !== undefined ? 0 : 1;
  } finally {
    forget();
  }
}

function describe(host: CliHost, report: Parameters<typeof describeReplay>[0] & ReplayExtras): string {
  const paint = createPaint(host.stdout.isColourAllowed);
  const safely = (style: (text: string) => string) => (text: string) => style(stripControlCharacters(text));
  const style = {
    heading: safely(paint.bold),
    removed: safely(paint.error),
    added: safely(paint.good),
    text: stripControlCharacters,
  };
  const notes = report.notes.map((note) => `Note: ${note}\n`).join("");
  const as =
    report.replayedAs === undefined
      ? ""
      : `It was run as session ${report.replayedAs}; \`retinue inspect ${report.replayedAs.slice(0, 8)}\` shows it.\n`;
  return `${describeReplay(report, style)}\n${notes}${as}`;
}

interface ReplayExtras {
  readonly notes: readonly string[];
  readonly replayedAs?: string;
}

const runners = { vitest: "vitest", node: "node:test" } as const;

/** `--save FOLDER`: the session as a file, and a test that replays it. */
async function save(
  host: CliHost,
  written: string | undefined,
  { save: folder = "", runner = "node", from, tools, model, agent, prompt }: ReplayCommandOptions,
): Promise<number> {
  if (folder === "") throw misuse("--save needs the name of a folder.", "Write, for example, --save test/.");
  if ([from, tools, model, agent, prompt].some((option) => option !== undefined))
    throw misuse(
      "--save keeps the session as it was recorded.",
      "Leave out --from, --tools, --model, --agent and --prompt.",
    );
  const directory = resolve(host.cwd, folder);
  await refuseSystemPath(directory);
  const { recording, title, gaps } = await openFolder(host).sessions.recording(written);
  refuseIncomplete(gaps);
  const saved = await saveRecording(recording, { directory, title, home: host.home, make: createRuntime });
  const data = `${saved.name}.replay.json`;
  const test = join(directory, `${saved.name}.test.mjs`);
  const { temporaryNotes: notes } = pathsOf(host);
  await writeNewFile(join(directory, data), saved.text, { replaces: true, notes });
  // A test that was edited stays as it is.
  const isNew = await writeNewFile(test, testText(saved.title, data, runner), {
    replaces: false,
    notes,
  });
  const run =
    runner === "node"
      ? `node --test ${relative(host.cwd, test)}`
      : `npx vitest run ${relative(host.cwd, test)}`;
  host.stderr.write(`Written: ${displayPath(join(directory, data), host)}\n`);
  if (isNew === "written") host.stderr.write(`Written: ${displayPath(test, host)}\n`);
  host.stderr.write(`Run it: ${run}\n`);
  return 0;
}

/** A test of a recording with gaps would pass or fail for the wrong reason. */
function refuseIncomplete(gaps: readonly string[]): void {
  if (gaps.length === 0) return;
  throw new RetinueError("incomplete-recording", `This session cannot become a test. ${gaps.join(" ")}`, {
    advice: "Record the session again, then save that one.",
  });
}

function testText(title: string, data: string, runner: keyof typeof runners): string {
  return `import { test } from "${runners[runner]}";
import { assertReplay } from "retinue/testing";

// Replays a recorded session without a model or network. It fails where prompts, tools, decisions or cost have changed.
test(${JSON.stringify(`replays: ${title}`)}, async () => {
  await assertReplay(new URL(${JSON.stringify(`./${data}`)}, import.meta.url));
});
`;
}
