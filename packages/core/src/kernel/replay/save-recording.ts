// @io
import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { digestRequest } from "../../journal/create-request-recorder.ts";
import type { RecordedAgent, RecordedRun, RecordedStep, Recording } from "../../replay/recording.ts";
import { countTurns, type ReplayReport, replayRecording } from "../../replay/replay-recording.ts";
import { replayRun, requestBefore } from "../../replay/replay-run.ts";
import type { Runtime } from "../create-runtime.ts";
import type { RuntimeOptions } from "../options/runtime-options.ts";
import { type AgentsNow, createAgentsNow } from "./agents-now.ts";

export type MakeRuntime = (options: RuntimeOptions) => Pick<Runtime, "open"> & AsyncDisposable;

/** A runtime that sees the files of the project and nothing of the person or machine; it only plans. */
async function openIsolated(project: string, make: MakeRuntime) {
  const home = await realpath(await mkdtemp(join(tmpdir(), "retinue-replay-")));
  const runtime = make({
    cwd: project,
    home,
    env: { PATH: process.env.PATH, RETINUE_LOCAL_MODELS: "0" },
    settingSources: ["project"],
    managedDirectory: join(home, "managed"),
    strictMcpConfig: true,
    // Nothing is run, so that the project's rules can be taken at their word.
    trusted: true,
    transcripts: false,
  });
  return {
    home,
    runtime,
    async [Symbol.asyncDispose]() {
      await runtime[Symbol.asyncDispose]();
      await rm(home, { recursive: true, force: true });
    },
  };
}

export interface SavedReplay {
  /** The name of the files, without their endings. */
  readonly name: string;
  readonly text: string;
  readonly title: string;
}

/** Makes a saved recording: what the session would be given with the files of the project alone is what a test compares. */
export async function saveRecording(
  recording: Recording,
  options: {
    readonly directory: string;
    readonly title: string;
    readonly home: string;
    readonly make: MakeRuntime;
  },
): Promise<SavedReplay> {
  const { directory, title, home, make } = options;
  await using isolated = await openIsolated(recording.directory, make);
  await using now = createAgentsNow({ recording, open: (given) => isolated.runtime.open(given) });
  const parts = new Map<string, unknown>(recording.parts);
  const agents: RecordedAgent[] = [];
  for (const agent of recording.agents) {
    const runs: RecordedRun[] = [];
    for (const run of agent.runs) runs.push(await asDecidedHere({ recording, agent, run, now, parts }));
    agents.push({ ...agent, runs });
  }
  const used = new Set(agents.flatMap(({ runs }) => runs.flatMap(({ steps }) => steps.flatMap(partsOf))));
  const kept = new Map([...parts].filter(([name]) => used.has(name)));
  const text = writeSavedRecording(
    { ...recording, agents, parts: kept },
    {
      title,
      root: relative(directory, recording.directory) || ".",
      project: recording.directory,
      home,
      replaced: [isolated.home],
    },
  );
  return { name: fileName(title, recording.sessionId), text, title };
}

function partsOf(step: RecordedStep): readonly string[] {
  return step.type === "answer" && step.request !== undefined
    ? [step.request.system, step.request.tools]
    : [];
}

/** A run with the prompt, the tools and the rules that the project alone gives it. */
async function asDecidedHere({
  recording,
  agent,
  run,
  now,
  parts,
}: {
  readonly recording: Recording;
  readonly agent: RecordedAgent;
  readonly run: RecordedRun;
  readonly now: AgentsNow;
  readonly parts: Map<string, unknown>;
}): Promise<RecordedRun> {
  const here = await now.now(agent, run);
  const { requests } = await replayRun({
    recording,
    agent,
    run,
    turnsBefore: countTurns(agent, agent.runs.indexOf(run)),
    now: here,
  });
  const policy = await now.policy(agent, run);
  let at = -1;
  const steps = run.steps.map((step): RecordedStep => {
    if (step.type !== "answer") return step;
    at += 1;
    const made = requests[at]?.request;
    if (made === undefined || step.request === undefined) return step;
    const { system, tools, messages: _messages, ...rest } = made;
    const options = defined(rest);
    const names = { system: keep(parts, system), tools: keep(parts, tools) };
    const { options: _options, ...request } = { ...step.request, ...names };
    return { ...step, request: Object.keys(options).length === 0 ? request : { ...request, options } };
  });
  return {
    ...run,
    steps,
    ...(run.plan === undefined || policy === undefined ? {} : { plan: { ...run.plan, policy } }),
  };
}

/** By a name of its own; the hash of the bytes means nothing on another machine. */
function keep(parts: Map<string, unknown>, value: unknown): string {
  const text = JSON.stringify(value);
  const known = [...parts].find(([name, part]) => name.startsWith("part-") && JSON.stringify(part) === text);
  const name = known?.[0] ?? `part-${parts.size + 1}`;
  parts.set(name, value);
  return name;
}

function fileName(title: string, sessionId: string): string {
  const words = title.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  const slug = words.slice(0, 6).join("-").slice(0, 50);
  return `${slug === "" ? "session" : slug}-${sessionId.slice(0, 8)}`;
}

/** Replays a saved recording against the files of its project. */
export async function checkSavedRecording(
  file: string,
  { project, make }: { readonly project?: string | undefined; readonly make: MakeRuntime },
): Promise<ReplayReport & { readonly title: string; readonly notes: readonly string[] }> {
  const text = await readFile(file, "utf8").catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error);
    throw new RetinueError("invalid-recording", `The recording ${basename(file)} could not be read: ${why}`);
  });
  const root = await realpath(resolve(dirname(file), project ?? readSavedRoot(text) ?? "."));
  await using isolated = await openIsolated(root, make);
  const { recording, title } = readSavedRecording(text, file, { project: root, home: isolated.home });
  await using now = createAgentsNow({ recording, open: (given) => isolated.runtime.open(given) });
  const report = await replayRecording(recording, { now: now.now, decisions: now.decisions });
  return { ...report, title, notes: [...now.notes] };
}

/** Folders that are elsewhere on another machine. */
interface RecordingPlaces {
  readonly project: string;
  readonly home: string;
}

const version = 1;
/** What is in the file for them; nothing else writes that. */
const names = { project: "<retinue:project>", home: "<retinue:home>" } as const;

/** A recording as the text of a file that other machines can replay: without the folders of this one. */
function writeSavedRecording(
  { sessionId, agents, parts }: Recording,
  options: RecordingPlaces & {
    readonly title: string;
    readonly root: string;
    readonly replaced?: readonly string[];
  },
): string {
  const { title, root, project, home, replaced = [] } = options;
  const whole = { version, title, root, sessionId, agents, parts: Object.fromEntries(parts) };
  const text = JSON.stringify(whole, undefined, 1);
  const places = [
    [project, names.project],
    ...[home, ...replaced].map((folder) => [folder, names.home] as const),
  ] as const;
  return places.reduce((last, [folder, name]) => last.replaceAll(inJson(folder), inJson(name)), `${text}\n`);
}

interface SavedRecording {
  readonly recording: Recording;
  readonly title: string;
}

/** The folder of the project, from that of the file; undefined where the text is no saved recording. */
function readSavedRoot(text: string): string | undefined {
  const value = parseJson(text);
  return isRecord(value) && value.version === version && typeof value.root === "string"
    ? value.root
    : undefined;
}

/** Reads what `writeSavedRecording` wrote, with the folders of this machine; throws a RetinueError where it cannot. */
function readSavedRecording(text: string, file: string, { project, home }: RecordingPlaces): SavedRecording {
  const placed = text
    .replaceAll(inJson(names.project), inJson(project))
    .replaceAll(inJson(names.home), inJson(home));
  const value = parseJson(placed);
  if (!isRecord(value) || value.version !== version || !Array.isArray(value.agents) || !isRecord(value.parts))
    throw new RetinueError("invalid-recording", `${file} is not a recording that this version can replay.`, {
      advice: "Save it again with `retinue replay ID --save FOLDER`.",
    });
  const parts = new Map(Object.entries(value.parts));
  // Written by us, and everything in it is looked at with care when it is replayed.
  const agents = value.agents as readonly RecordedAgent[];
  return {
    title: String(value.title),
    recording: {
      sessionId: String(value.sessionId),
      directory: project,
      parts,
      agents: agents.map((agent) => ({ ...agent, runs: agent.runs.map((run) => withDigests(run, parts)) })),
    },
  };
}

/** With other folders in it each request has another digest. */
function withDigests(run: RecordedRun, parts: Recording["parts"]): RecordedRun {
  const steps = run.steps.map((step): RecordedStep => {
    if (step.type !== "answer" || step.request === undefined) return step;
    const request = requestBefore({ parts }, run, step);
    return request === undefined
      ? step
      : { ...step, request: { ...step.request, digest: digestRequest(request).digest } };
  });
  return { ...run, steps };
}

function inJson(text: string): string {
  return JSON.stringify(text).slice(1, -1);
}
