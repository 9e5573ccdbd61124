import { isRecord, parseJson } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { digestRequest } from "../journal/create-request-recorder.ts";
import type { RecordedAgent, RecordedRun, RecordedStep, Recording } from "./recording.ts";
import { requestBefore } from "./replay-run.ts";

/** Folders that are elsewhere on another machine. */
export interface RecordingPlaces {
  readonly project: string;
  readonly home: string;
}

const version = 1;
/** What is in the file for them; no one else writes that. */
const names = { project: "<retinue:project>", home: "<retinue:home>" } as const;

/** A recording as the text of a file that other machines can replay: without the folders of this one. */
export function writeSavedRecording(
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

export interface SavedRecording {
  readonly recording: Recording;
  readonly title: string;
}

/** The folder of the project, from that of the file; undefined where the text is no saved recording. */
export function readSavedRoot(text: string): string | undefined {
  const value = parseJson(text);
  return isRecord(value) && value.version === version && typeof value.root === "string"
    ? value.root
    : undefined;
}

/** Reads what `writeSavedRecording` wrote, with the folders of this machine; throws a RetinueError where it cannot. */
export function readSavedRecording(
  text: string,
  file: string,
  { project, home }: RecordingPlaces,
): SavedRecording {
  const placed = text
    .replaceAll(inJson(names.project), inJson(project))
    .replaceAll(inJson(names.home), inJson(home));
  const value = parseJson(placed);
  if (!isRecord(value) || value.version !== version || !Array.isArray(value.agents) || !isRecord(value.parts))
    throw new RetinueError("invalid-recording", `${file} is not a recording that this version can replay.`, {
      advice: "Write it again with `retinue replay ID --save FOLDER`.",
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
