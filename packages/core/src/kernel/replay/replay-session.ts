// @io

import { randomUUID } from "node:crypto";
import { rmSync } from "node:fs";
import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { createWholeFile } from "@retinue/base/storage/create-whole-file.ts";
import { readLines } from "@retinue/base/storage/read-lines.ts";
import { parsePermissionMode } from "@retinue/gate/permission-policy.ts";
import { type Message, textOf, type UserMessage } from "../../conversation/message.ts";
import { forkLines } from "../../journal/fork-session.ts";
import { sessionFiles } from "../../journal/session-files.ts";
import type { Model, ModelRequest } from "../../models/model.ts";
import type { AgentPlan } from "../../planning/agent-plan.ts";
import { compareRecordings } from "../../replay/compare-recordings.ts";
import { loadRecording } from "../../replay/load-recording.ts";
import {
  mainAgent,
  type RecordedAgent,
  type RecordedResult,
  type RecordedRun,
  type Recording,
} from "../../replay/recording.ts";
import { type ReplayReport, replayRecording } from "../../replay/replay-recording.ts";
import type { Capability } from "../agent/open-agent.ts";
import type { SessionOptions } from "../options/runtime-options.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import type { Session } from "../session.ts";
import type { SessionPool } from "../session-pool.ts";
import { createAgentsNow } from "./agents-now.ts";

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
  throw new RetinueError("invalid-option", `A different ${name} needs the message from which it applies.`, {
    advice: "Add from: the number of an answer, or the start of a message's id.",
  });
}

interface RerunOptions {
  readonly recording: Recording;
  readonly transcripts: string;
  /** Opens a session with something added to each of its agents. */
  readonly open: (options: SessionOptions, add: (plan: AgentPlan) => Capability) => Promise<Session>;
  readonly tools: "recorded" | "real";
  /** From this message on the model is asked: the beginning of a line's id, or the number of an answer; absent: never. */
  readonly from?: string | undefined;
  readonly changes: Pick<SessionOptions, "agent" | "model" | "systemPrompt" | "appendSystemPrompt">;
  /** Put in place of the recorded prompt of the run. */
  readonly prompt?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Runs a session again, as a session of its own: with recorded answers up to a message, and from there on with a model.
 * Gives the id of the new session.
 */
async function rerunSession(options: RerunOptions): Promise<string> {
  const { recording, changes, from } = options;
  const main = recording.agents.find(({ id }) => id === mainAgent);
  if (main === undefined)
    throw new RetinueError("nothing-recorded", "There is no main conversation to run again.", {
      advice: "Name a session; a child alone is replayed with recorded tools.",
    });
  const start = from === undefined ? { run: 0, answers: Number.POSITIVE_INFINITY } : findStart(main, from);
  const runs = main.runs.slice(start.run);
  const [first] = runs;
  if (first === undefined) throw new RetinueError("nothing-recorded", "The recording has no prompt.");
  const sessionId = randomUUID();
  const isForked = await forkBefore(first, { ...options, sessionId });
  const player = createPlayer(options, start);
  const opening = options.open(
    {
      ...optionsOf(first),
      ...(isForked ? { resume: sessionId } : { sessionId }),
      slashCommands: false,
      ...(from === undefined ? { model: player.substitute } : {}),
      ...defined(changes),
    },
    player.add,
  );
  const session = await opening.catch((error: unknown) => {
    // A copy that never became a run would be listed as a session.
    if (isForked) {
      const { transcript, directory } = sessionFiles(options.transcripts, sessionId);
      rmSync(transcript, { force: true });
      rmSync(directory, { recursive: true, force: true });
    }
    throw error;
  });
  try {
    // What was asked after the message that is changed was asked because of the old answers.
    const repeated = from === undefined ? runs : runs.slice(0, 1);
    for (const run of repeated) {
      const content = options.prompt ?? promptOf(run);
      await session.run(content, options.signal === undefined ? {} : { signal: options.signal }).result;
    }
  } finally {
    await session.close();
  }
  return sessionId;
}

interface Start {
  readonly run: number;
  /** How many answers of that run are taken from the record. */
  readonly answers: number;
}

/** A prompt begins its run again; an answer is asked for again. */
function findStart({ runs }: RecordedAgent, from: string): Start {
  const number = /^[1-9]\d*$/.test(from) ? Number(from) : undefined;
  let count = 0;
  for (const [index, { uuid, steps }] of runs.entries()) {
    if (number === undefined && uuid.startsWith(from)) return { run: index, answers: 0 };
    let answers = 0;
    for (const step of steps) {
      if (step.type !== "answer") continue;
      count += 1;
      if (count === number || (number === undefined && step.uuid.startsWith(from)))
        return { run: index, answers };
      answers += 1;
    }
  }
  throw new RetinueError("unknown-message", `The main conversation has no message ${JSON.stringify(from)}.`, {
    advice: `Pass the number of an answer, 1 to ${count}, or the start of the id of a prompt or answer.`,
  });
}

/** Copies the conversation before a run into the new session; false where there is none. */
async function forkBefore(
  { uuid }: RecordedRun,
  { recording, transcripts, sessionId }: RerunOptions & { readonly sessionId: string },
): Promise<boolean> {
  const files = sessionFiles(transcripts, recording.sessionId);
  const { values } = await readLines(files.transcript);
  const at = values.findIndex((record) => record.uuid === uuid);
  const before = values.slice(0, Math.max(at, 0));
  if (!before.some(({ type }) => type === "user" || type === "assistant")) return false;
  const lines = forkLines(before, {
    from: recording.sessionId,
    to: sessionId,
    ids: { uuid: randomUUID },
    title: "replay",
  });
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
  createWholeFile(sessionFiles(transcripts, sessionId).transcript, text, { durable: false });
  return true;
}

function optionsOf({ options, agent, model }: RecordedRun): SessionOptions {
  const { permissionMode, ...given } = options;
  const mode = permissionMode === undefined ? undefined : parsePermissionMode(permissionMode);
  return {
    ...given,
    ...(agent === undefined ? {} : { agent }),
    ...(model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { permissionMode: mode }),
  };
}

/** Without the reminder, which is added again. */
function promptOf({ prompt, plan }: RecordedRun): UserMessage["content"] {
  const { content } = prompt;
  if (typeof content === "string" || typeof plan?.reminder !== "string") return content;
  const last = content.at(-1);
  const isReminder = last?.type === "text" && last.text.startsWith("<system-reminder>");
  return isReminder ? content.slice(0, -1) : content;
}

/** What takes the place of models, tools and decisions as far as the record goes. */
function createPlayer({ recording, tools }: RerunOptions, start: Start) {
  const agents = new Map(recording.agents.map((agent) => [keyOf(agent), agent]));
  return {
    substitute: substitute(recording),
    add(plan: AgentPlan): Capability {
      const isMain = plan.task === undefined;
      const agent = agents.get(isMain ? mainAgent : keyOfPlan(plan));
      const runs = agent?.runs.slice(isMain ? start.run : 0) ?? [];
      const leftOfChild = startsLive(start) ? 0 : Number.POSITIVE_INFINITY;
      const left = isMain ? start.answers : leftOfChild;
      const results = resultsOf(agent?.runs ?? []);
      const played = { steps: runs.flatMap(({ steps }) => steps), left };
      return {
        model: (inner) => recordedThen(inner, played, startsLive(start)),
        ...(tools === "real" ? realPrefix(results, played, startsLive(start)) : recordedTools(results)),
      };
    },
  };
}

/** The model is asked from somewhere on. */
function startsLive({ answers }: Start): boolean {
  return Number.isFinite(answers);
}

interface ReplayedSteps {
  readonly steps: RecordedRun["steps"];
  /** Answers that are still taken from the record. */
  left: number;
}

function recordedThen(inner: Model, played: ReplayedSteps, isLive: boolean): Model {
  const answers = played.steps.flatMap((step) => (step.type === "answer" ? [step.answer] : []));
  let at = 0;
  return {
    facts: inner.facts,
    stream(request, options) {
      const answer = played.left > 0 ? answers[at] : undefined;
      if (answer === undefined && isLive) return inner.stream(request, options);
      at += 1;
      played.left -= 1;
      return (async function* () {
        if (answer === undefined)
          throw new RetinueError("end-of-recording", "The recording has no further answer for this agent.");
        yield answer;
      })();
    },
  };
}

type Results = ReadonlyMap<string, RecordedResult>;

/** By the id of the call, and by what was called. */
function resultsOf(runs: readonly RecordedRun[]): { readonly byId: Results; readonly byCall: Results } {
  const byId = new Map<string, RecordedResult>();
  const byCall = new Map<string, RecordedResult>();
  for (const { steps } of runs)
    for (const [index, step] of steps.entries()) {
      const next = steps[index + 1];
      if (step.type !== "answer" || next?.type !== "results") continue;
      for (const result of next.results) {
        byId.set(result.block.tool_use_id, result);
        const call = step.answer.message.content.find(
          (block) => block.type === "tool_use" && block.id === result.block.tool_use_id,
        );
        if (call?.type === "tool_use") byCall.set(callKey(call.name, call.input), result);
      }
    }
  return { byId, byCall };
}

function callKey(name: unknown, input: unknown): string {
  return JSON.stringify([name, input]);
}

/** Recorded results for recorded calls; a call that was never made has none, of which the agent is informed. */
function recordedTools(results: ReturnType<typeof resultsOf>): Capability {
  const find = (name: string, { id, input }: { readonly id: string; readonly input: unknown }) =>
    results.byId.get(id) ?? results.byCall.get(callKey(name, input));
  return {
    tool: (tool) => ({
      ...tool,
      call: async (input, { callId }) => {
        const known = find(tool.name, { id: callId, input });
        return known === undefined
          ? { content: "No result of this call was recorded, and this replay runs no tools.", isError: true }
          : outcomeOf(known);
      },
    }),
    beforeCall:
      () =>
      async ({ call, tool, input }) => {
        const known = find(tool.name, { id: call.id, input: call.input });
        return known?.denied === undefined
          ? { type: "allowed", input }
          : { type: "denied", reason: textOfBlock(known) };
      },
  };
}

/** Up to the message from which the model is asked nothing is run a second time. */
function realPrefix(
  results: ReturnType<typeof resultsOf>,
  played: ReplayedSteps,
  isLive: boolean,
): Capability {
  if (!isLive) return {};
  const before = new Set(
    played.steps
      .filter((step) => step.type === "answer")
      .slice(0, Math.max(played.left, 0))
      .flatMap(({ answer }) =>
        answer.message.content.flatMap((block) => (block.type === "tool_use" ? [String(block.id)] : [])),
      ),
  );
  const known = (id: string): RecordedResult | undefined =>
    before.has(id) ? results.byId.get(id) : undefined;
  return {
    tool: (tool) => ({
      ...tool,
      call: async (input, context) => {
        const recorded = known(context.callId);
        return recorded === undefined ? tool.call(input, context) : outcomeOf(recorded);
      },
    }),
    beforeCall: (next) => async (request, options) => {
      const recorded = known(request.call.id);
      if (recorded === undefined) return next(request, options);
      return recorded.denied === undefined
        ? { type: "allowed", input: request.input }
        : { type: "denied", reason: textOfBlock(recorded) };
    },
  };
}

function outcomeOf({ block: { content, is_error }, data }: RecordedResult) {
  return {
    content,
    ...(is_error === true ? { isError: true } : {}),
    data,
  };
}

function textOfBlock({ block }: RecordedResult): string {
  const message: Message = { role: "user", content: [block] };
  return typeof block.content === "string" ? block.content : textOf(message);
}

function keyOf({ id, runs }: RecordedAgent): string {
  return id === mainAgent ? id : keyOfPlan(runs[0]?.plan);
}

function keyOfPlan(plan: JsonRecord | AgentPlan | undefined): string {
  const task = plan !== undefined && "task" in plan && isRecord(plan.task) ? plan.task : {};
  return typeof task.callId === "string"
    ? `call ${task.callId}`
    : `task ${JSON.stringify([task.agentType, task.prompt])}`;
}

/** Means the recorded model, whose answers take its place. */
function substitute({ agents }: Recording): Model {
  const answers = agents.flatMap(({ runs }) => runs.flatMap(({ steps }) => steps));
  const first = answers.find((step) => step.type === "answer");
  return {
    facts: {
      id: first?.answer.model ?? "recorded",
      provider: "recorded",
      contextWindow: 1_000_000,
      maxOutputTokens: 100_000,
      supportsServerTools: false,
    },
    // biome-ignore lint/correctness/useYield: recorded answers are given before it is asked
    async *stream() {
      throw new RetinueError("no-model", "A replay does not call a model.");
    },
  };
}
