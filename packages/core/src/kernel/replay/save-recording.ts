// @io

import { mkdtemp, readFile, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { defined } from "@retinue/base/foundation/defined.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { RecordedAgent, RecordedRun, RecordedStep, Recording } from "../../replay/recording.ts";
import { countTurns, type ReplayReport, replayRecording } from "../../replay/replay-recording.ts";
import { replayRun } from "../../replay/replay-run.ts";
import { readSavedRecording, readSavedRoot, writeSavedRecording } from "../../replay/saved-recording.ts";
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
