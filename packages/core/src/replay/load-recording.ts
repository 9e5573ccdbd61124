// @io
import { readdir } from "node:fs/promises";
import { basename } from "node:path";
import { errorCode } from "@retinue/base/foundation/file-error.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { type ParsedLines, readLines } from "@retinue/base/storage/read-lines.ts";
import type { Message } from "../conversation/message.ts";
import { findNamedInspected } from "../inspection/find-named-inspected.ts";
import { loadRequestPart } from "../journal/create-request-recorder.ts";
import { isAgentId, type SessionFiles, sessionFiles } from "../journal/session-files.ts";
import { describeDamage, findDamage } from "../journal/transcript-damage.ts";
import { readRecordedRuns } from "./read-recorded-runs.ts";
import { mainAgent, type RecordedAgent, type Recording } from "./recording.ts";

/** Reads a session, or one child of it, by what a person calls it; a RetinueError where there is nothing to replay. */
export async function loadRecording(transcripts: string, written: string | undefined): Promise<Recording> {
  const { sessionId, agentId } = await findNamedInspected(transcripts, written);
  const files = sessionFiles(transcripts, sessionId);
  const damage = new Map<string, string>();
  const load = async (id: string, file: string): Promise<readonly JsonRecord[]> => {
    const lines = await loadLines(file);
    const text = describeDamage(basename(file), findDamage(lines), "What is lost cannot be replayed.");
    if (text !== undefined) damage.set(id, text);
    return lines.values;
  };
  const main = await load(mainAgent, files.transcript);
  const forks = createForks(main);
  const own = readRecordedRuns(main, { sidechain: false });
  const agents: RecordedAgent[] =
    own.runs.length === 0 ? [] : [{ id: mainAgent, name: mainAgent, runs: own.runs }];
  for (const id of await findChildren(files)) {
    const lines = await load(id, files.agent(id).transcript);
    const { runs } = readRecordedRuns(lines, { sidechain: true, inherited: forks });
    if (runs.length > 0) agents.push({ id, name: nameOf(runs[0]?.plan, id), runs });
  }
  const wanted = agentId === undefined ? agents : agents.filter(({ id }) => id === agentId);
  const damaged = [...damage].flatMap(([id, text]) => (agentId === undefined || id === agentId ? text : []));
  if (wanted.length === 0)
    throw new RetinueError(
      "nothing-recorded",
      [`Nothing was recorded of ${agentId ?? sessionId} that could be replayed.`, ...damaged].join(" "),
      {
        advice: "`retinue inspect` shows what there is of a session.",
      },
    );
  return {
    sessionId,
    directory: directoryOf(main, wanted),
    agents: wanted,
    parts: loadParts(files.directory, wanted),
    ...(damaged.length === 0 ? {} : { damage: damaged }),
  };
}

async function loadLines(file: string): Promise<ParsedLines> {
  try {
    return await readLines(file);
  } catch (error) {
    if (errorCode(error instanceof Error ? error.cause : undefined) === "ENOENT")
      return { values: [], broken: 0, torn: false };
    throw error;
  }
}

/** In the order in which they began, so that a report reads like the record. */
async function findChildren({ subagents, agent }: SessionFiles): Promise<readonly string[]> {
  const names = await readdir(subagents).catch(() => []);
  const ids = names.flatMap((name) => /^agent-(.+)\.jsonl$/.exec(name)?.[1] ?? []).filter(isAgentId);
  const begun = await Promise.all(
    ids.map(async (id) => {
      const { values } = await readLines(agent(id).transcript).catch(() => ({ values: [] as JsonRecord[] }));
      return {
        id,
        at: String(values.find(({ timestamp }) => typeof timestamp === "string")?.timestamp ?? ""),
      };
    }),
  );
  return begun.toSorted((a, b) => a.at.localeCompare(b.at) || a.id.localeCompare(b.id)).map(({ id }) => id);
}

/** What a child began with that started with its parent's conversation: that, up to the answer that started it. */
function createForks(main: readonly JsonRecord[]): (plan: JsonRecord) => readonly Message[] {
  return ({ task, history }) => {
    if (!isRecord(task) || task.forksContext !== true) return [];
    const count = isRecord(history) && typeof history.messages === "number" ? history.messages : undefined;
    const at = main.findLastIndex((record) => startsCall(record, task.callId));
    const { messages } = readRecordedRuns(main.slice(0, at === -1 ? main.length : wholeAnswer(main, at)), {
      sidechain: false,
    });
    return count === undefined ? messages : messages.slice(0, count);
  };
}

function startsCall({ type, message }: JsonRecord, callId: unknown): boolean {
  if (type !== "assistant" || !isRecord(message) || !Array.isArray(message.content)) return false;
  return message.content.some((block: unknown) => isRecord(block) && block.id === callId);
}

function wholeAnswer(records: readonly JsonRecord[], at: number): number {
  const end = records.findIndex(
    ({ type, message }, index) =>
      index >= at && type === "assistant" && isRecord(message) && typeof message.stop_reason === "string",
  );
  return end === -1 ? records.length : end + 1;
}

function nameOf(plan: JsonRecord | undefined, id: string): string {
  const task = isRecord(plan?.task) ? plan.task : {};
  const { agentType, description } = task;
  const type = typeof agentType === "string" ? agentType : id;
  return typeof description === "string" && description !== "" ? `${type} (${description})` : type;
}

function directoryOf(main: readonly JsonRecord[], agents: readonly RecordedAgent[]): string {
  const planned = agents[0]?.runs[0]?.plan;
  const said =
    main.find(({ cwd }) => typeof cwd === "string")?.cwd ?? planned?.sessionDirectory ?? planned?.directory;
  return typeof said === "string" ? said : "";
}

function loadParts(directory: string, agents: readonly RecordedAgent[]): ReadonlyMap<string, unknown> {
  const requests = agents.flatMap(({ runs }) =>
    runs.flatMap(({ steps }) =>
      steps.flatMap((step) => (step.type === "answer" ? (step.request ?? []) : [])),
    ),
  );
  const names = new Set(requests.flatMap(({ system, tools }) => [system, tools]));
  return new Map([...names].map((name) => [name, loadRequestPart(directory, name)]));
}
