import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { ModelRequest } from "../../models/model.ts";
import { compareRecordings } from "../../replay/compare-recordings.ts";
import { loadRecording } from "../../replay/load-recording.ts";
import type { Recording } from "../../replay/recording.ts";
import { type ReplayReport, replayRecording } from "../../replay/replay-recording.ts";
import type { SessionOptions } from "../options/runtime-options.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { SessionPool } from "../session-pool.ts";
import { createAgentsNow } from "./agents-now.ts";
import { rerunSession } from "./rerun-session.ts";

export { describeReplay } from "../../replay/describe-replay.ts";
export { findGaps } from "../../replay/replay-recording.ts";

export interface ReplaySessionOptions {
  /** `recorded`, the default: tools give what they gave then, and nothing is run. `real`: tools run again. */
  readonly tools?: "recorded" | "real" | undefined;
  /**
   * From this message on the model is asked anew: the number of an answer of the main agent, or the beginning of the id of
   * a prompt or answer. Absent: no model is asked at all.
   */
  readonly from?: string | undefined;
  /** What is to be different: the main agent, its model, its prompt. */
  readonly agent?: string | undefined;
  readonly model?: SessionOptions["model"] | undefined;
  readonly systemPrompt?: string | undefined;
  readonly appendSystemPrompt?: string | undefined;
  /** In place of the prompt of the run that `from` is in. */
  readonly prompt?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Sees each request as it would be sent; only where tools are recorded and no model is asked. */
  readonly onRequest?: ((request: ModelRequest, agentId: string) => void) | undefined;
}

export interface SessionReplay extends ReplayReport {
  /** What could not be decided again and is taken as recorded, each as one sentence. */
  readonly notes: readonly string[];
  /** The new session, where one was run. */
  readonly replayedAs?: string;
}

export interface ReplayParts {
  readonly pool: Pick<SessionPool, "open">;
  readonly gather: () => Promise<RuntimeContext>;
}

/** Replays a recorded session by what a person calls it, and shows what is different now. */
export async function replaySession(
  written: string | undefined,
  options: ReplaySessionOptions,
  parts: ReplayParts,
): Promise<SessionReplay> {
  checkCombination(options);
  const { transcripts } = (await parts.gather()).discovered.paths;
  const recording = await loadRecording(transcripts, written);
  const isRun = options.tools === "real" || options.from !== undefined;
  return isRun ? rerun(recording, options, { ...parts, transcripts }) : replay(recording, options, parts);
}

async function replay(
  recording: Recording,
  { agent, systemPrompt, appendSystemPrompt, onRequest }: ReplaySessionOptions,
  { pool }: ReplayParts,
): Promise<SessionReplay> {
  const changes = {
    agent,
    systemPrompt,
    appendSystemPrompt,
  };
  await using agents = createAgentsNow({ recording, open: (given) => pool.open(given), changes });
  const report = await replayRecording(recording, {
    now: agents.now,
    decisions: agents.decisions,
    onRequest,
  });
  return { ...report, notes: [...agents.notes] };
}

async function rerun(
  recording: Recording,
  {
    agent,
    model,
    systemPrompt,
    appendSystemPrompt,
    tools = "recorded",
    from,
    prompt,
    signal,
  }: ReplaySessionOptions,
  { pool, transcripts }: ReplayParts & { readonly transcripts: string },
): Promise<SessionReplay> {
  const replayedAs = await rerunSession({
    recording,
    transcripts,
    tools,
    from,
    prompt,
    signal,
    changes: {
      agent,
      model,
      systemPrompt,
      appendSystemPrompt,
    },
    // What is compared afterwards is its journal.
    open: (given, add) =>
      pool.open(given, (facts) => ({
        ...facts,
        keepsTranscripts: true,
        runsChecks: tools === "real",
        additions: [...(facts.additions ?? []), add],
      })),
  });
  const after = await loadRecording(transcripts, replayedAs);
  return { ...compareRecordings(recording, after), notes: [], replayedAs };
}

function checkCombination({ from, model, prompt, tools }: ReplaySessionOptions): void {
  if (tools !== undefined && tools !== "recorded" && tools !== "real")
    throw new RetinueError(
      "invalid-option",
      `The option tools must be "recorded" or "real", but is ${JSON.stringify(tools)}.`,
    );
  if (from !== undefined) return;
  const given = [model === undefined ? undefined : "model", prompt === undefined ? undefined : "prompt"];
  const [name] = given.filter((option) => option !== undefined);
  if (name === undefined) return;
  throw new RetinueError("invalid-option", `Another ${name} needs a message from which on it counts.`, {
    advice: "Add from: the number of an answer, or the beginning of the id of a message.",
  });
}
