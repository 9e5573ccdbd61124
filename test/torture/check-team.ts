import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { createPaths } from "@retinue/config/settings/paths.ts";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import { deliveredMail } from "@retinue/core/teams/mailbox.ts";
import { leadName } from "@retinue/core/teams/team-config.ts";
import { loadMailHistory, openTeamStore, type TeamStore } from "@retinue/core/teams/team-store.ts";
import { readTranscript } from "./kept-files.ts";
import type { TeamSize } from "./team-script.ts";

export interface TeamPlace {
  readonly home: string;
  readonly project: string;
  readonly sessionId: string;
}

export interface TeamCount {
  readonly delivered: number;
  readonly completed: number;
}

export function openTeamOf({ home, project, sessionId }: TeamPlace): TeamStore {
  const paths = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  return openTeamStore(paths, `session-${sessionId.slice(0, 8)}`);
}

/** Throws with the promise that a team has broken; with a size also where its work is not done. */
export function checkTeam(place: TeamPlace, size?: TeamSize): TeamCount {
  const store = openTeamOf(place);
  const agents = agentsOf(place, store);
  const calls = agents.flatMap(({ records }) => callsIn(records));
  const delivered = agents.map((agent) => checkMail(agent, store));
  checkMessages(
    calls,
    store,
    agents.map(({ name }) => name),
  );
  const completed = checkTasks(calls, store, size);
  if (size !== undefined) checkLeftovers(place, store);
  return { delivered: delivered.reduce((sum, count) => sum + count, 0), completed };
}

interface Agent {
  readonly name: string;
  readonly records: readonly JsonRecord[];
}

function agentsOf({ home, project, sessionId }: TeamPlace, store: TeamStore): readonly Agent[] {
  const { transcripts } = createPaths({ cwd: project, home, environment: {}, platform: process.platform });
  const files = sessionFiles(transcripts, sessionId);
  return (store.config()?.members ?? []).flatMap(({ name, taskId = "" }) => {
    const file = name === leadName ? files.transcript : files.agent(taskId).transcript;
    return existsSync(file) ? [{ name, records: readTranscript(file).records }] : [];
  });
}

/** What entered a conversation is the beginning of its inbox: each piece once, none left out, in order. */
function checkMail({ name, records }: Agent, store: TeamStore): number {
  const inbox = loadMailHistory(store, name).map(({ key }) => key);
  const entered = records.flatMap((record) => [...deliveredMail([record])]);
  entered.forEach((key, index) => {
    if (key === inbox[index]) return;
    const what = entered.indexOf(key) < index ? "was delivered twice" : "was delivered out of order";
    throw new Error(`Message ${index + 1} of ${name} (${key}) ${what}.`);
  });
  return entered.length;
}

interface Call {
  readonly id: string;
  readonly input: JsonRecord;
  /** Undefined where it was cut off. */
  readonly isError: boolean | undefined;
}

function callsIn(records: readonly JsonRecord[]): readonly Call[] {
  const blocks = records.flatMap(({ message }) =>
    isRecord(message) && Array.isArray(message["content"]) ? message["content"].filter(isRecord) : [],
  );
  const results = new Map(
    blocks
      .filter(({ type }) => type === "tool_result")
      .map((block) => [String(block["tool_use_id"]), block["is_error"] === true]),
  );
  return blocks
    .filter(({ type }) => type === "tool_use")
    .map(({ id, input }) => ({
      id: String(id),
      input: isRecord(input) ? input : {},
      isError: results.get(String(id)),
    }));
}

/** A message that was sent is in an inbox once, and so is one whose sender died before it knew, at most. */
function checkMessages(calls: readonly Call[], store: TeamStore, names: readonly string[]): void {
  const texts = new Map(names.map((name) => [name, loadMailHistory(store, name).map(({ text }) => text)]));
  for (const { id, input, isError } of calls) {
    const { to, message } = input;
    if (typeof to !== "string" || typeof message !== "string") continue;
    for (const [name, mail] of texts) {
      if (to !== name && (to !== "*" || name === leadName)) continue;
      const count = mail.filter((text) => text === message).length;
      if (count > 1) throw new Error(`The message ${id} is ${count} times in the inbox of ${name}.`);
      // Who had not joined yet is not among all.
      if (count === 0 && isError === false && to !== "*")
        throw new Error(`The message ${id} to ${name} is lost.`);
    }
  }
}

/** Every task is completed by one member, which has that result at most once. */
function checkTasks(calls: readonly Call[], store: TeamStore, size: TeamSize | undefined): number {
  const tasks = [...store.board.read().values()];
  const numbers = tasks.map(({ subject }) => subject);
  const twice = numbers.find((subject, index) => numbers.indexOf(subject) !== index);
  if (twice !== undefined) throw new Error(`There are two of ${twice}.`);
  for (const { id } of tasks) {
    const done = calls.filter((call) => call.id.startsWith(`call-done-${id}-`) && call.isError === false);
    if (done.length > 1) throw new Error(`Task ${id} was completed ${done.length} times.`);
  }
  const completed = tasks.filter(({ status, owner }) => status === "completed" && owner !== undefined).length;
  if (size !== undefined && completed !== size.tasks)
    throw new Error(`${completed} of ${size.tasks} tasks are completed.`);
  return completed;
}

function checkLeftovers({ home }: TeamPlace, store: TeamStore): void {
  const folders = [store.directory, store.board.directory].filter((folder) => existsSync(folder));
  const left = folders.flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".lock"))
      .map((name) => join(folder, name)),
  );
  if (left.length > 0) throw new Error(`These were left behind in ${home}: ${left.join(", ")}`);
}
