import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** Where the files of one session are, below the folder of its project's transcripts. */
export interface SessionFiles {
  readonly transcript: string;
  /** Holds what belongs to the session beside its transcript. */
  readonly directory: string;
  readonly subagents: string;
  /** Results too long for the conversation. */
  readonly toolResults: string;
  /** The commands of its agents while they run, and those in the background afterwards. */
  readonly commands: string;
  /** Questions that wait for an answer, with answers and grants. */
  readonly approvals: string;
  /** The states of the runs of workflows, a file for each. */
  readonly runs: string;
  agent(agentId: string): AgentFiles;
}

/** Where the files of one child are. */
export interface AgentFiles {
  readonly transcript: string;
  readonly meta: string;
  /** Where a person can follow its work. */
  readonly output: string;
}

/** Refuses with a RetinueError what is no session id, so that no path leaves the folder. */
export function sessionFiles(transcripts: string, sessionId: string): SessionFiles {
  const id = checkSessionId(sessionId);
  const directory = join(transcripts, id);
  const subagents = join(directory, "subagents");
  return {
    transcript: join(transcripts, `${id}.jsonl`),
    directory,
    subagents,
    toolResults: join(directory, "tool-results"),
    commands: join(directory, "commands"),
    approvals: join(directory, "approvals"),
    runs: join(directory, "workflows"),
    agent: (agentId) => {
      const agent = checkAgentId(agentId);
      const run = runOfAgent(agent);
      const name = join(subagents, ...(run === undefined ? [] : ["workflows", run]), `agent-${agent}`);
      const output = join(directory, "tasks", `${agent}.output`);
      return { transcript: `${name}.jsonl`, meta: `${name}.meta.json`, output };
    },
  };
}

/** Where the files of one run of a workflow are. */
export interface WorkflowFiles {
  /** The state of the run. */
  readonly run: string;
  /** Holds the transcripts of its agents, and the journal. */
  readonly transcripts: string;
  readonly journal: string;
  /** Holds the scripts of the session as they ran. */
  readonly scripts: string;
}

export function workflowFiles(transcripts: string, sessionId: string, runId: string): WorkflowFiles {
  if (!isRunId(runId)) throw badRunId(runId);
  const { runs, subagents } = sessionFiles(transcripts, sessionId);
  const own = join(subagents, "workflows", runId);
  return {
    run: join(runs, `${runId}.json`),
    transcripts: own,
    journal: join(own, "journal.jsonl"),
    scripts: join(runs, "scripts"),
  };
}

/** The id of a new run of a workflow. */
export function newRunId(): string {
  const digits = randomUUID();
  return `wf_${digits.slice(0, 8)}-${digits.slice(9, 12)}`;
}

export function isRunId(text: string): boolean {
  return /^wf_[a-z0-9-]{6,40}$/.test(text);
}

export function badRunId(text: string): RetinueError {
  return new RetinueError("bad-run-id", `${quote(text)} is not the id of a workflow run.`, {
    advice: "It begins with wf_, such as wf_1a2b3c4d-5e6; `retinue workflow list --runs` lists them.",
  });
}

/** The id of an agent of a workflow begins with that of its run, so that its files are found by it. */
export function workflowAgentId(runId: string, own: string): string {
  return `${runId}-${own}`;
}

/** The run that an agent belongs to. */
export function runOfAgent(agentId: string): string | undefined {
  return /^(wf_[a-z0-9-]{6,40})-a[0-9a-f]{16}$/.exec(agentId)?.[1];
}

/** Where a session writes outputs that are too long for the conversation; `scratch` is set where it keeps no transcript. */
export function outputFolder(
  {
    scratch,
    discovered,
  }: {
    readonly scratch?: string;
    readonly discovered: { readonly paths: { readonly transcripts: string } };
  },
  sessionId: string,
): string {
  return scratch ?? sessionFiles(discovered.paths.transcripts, sessionId).toolResults;
}

export interface TaskPlaces {
  readonly platform: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The temporary folder of the operating system. */
  readonly temporaryDirectory: string;
  /** The number of the user; absent on Windows. */
  readonly userId?: number;
  /** The name of the project's folder of transcripts. */
  readonly projectName: string;
}

export interface TaskFiles {
  readonly scratchpad: string;
  readonly tasks: string;
  output(taskId: string): string;
}

/** What background work of a session leaves while it runs; gone with the temporary folder. */
export function taskFiles(places: TaskPlaces, sessionId: string): TaskFiles {
  const session = join(temporaryRoot(places), projectFolder(places.projectName), checkSessionId(sessionId));
  const tasks = join(session, "tasks");
  return {
    scratchpad: join(session, "scratchpad"),
    tasks,
    output: (taskId) => join(tasks, `${checkAgentId(taskId)}.output`),
  };
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function isSessionId(text: string): boolean {
  return uuidPattern.test(text);
}

export function checkSessionId(text: string): string {
  if (isSessionId(text)) return text;
  throw new RetinueError("bad-session-id", `${quote(text)} is not a session id.`, {
    advice: "A session id is a UUID, such as 3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00.",
  });
}

export function isAgentId(text: string): boolean {
  return /^[A-Za-z0-9_-]{1,64}$/.test(text);
}

export function checkAgentId(text: string): string {
  if (isAgentId(text)) return text;
  throw new RetinueError("bad-agent-id", `${quote(text)} is not the id of an agent or task.`, {
    advice: "An id has up to 64 letters, digits, underscores and hyphens.",
  });
}

function projectFolder(name: string): string {
  if (/^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/.test(name)) return name;
  throw new RetinueError("bad-project-name", `${quote(name)} cannot name the folder of a project.`);
}

function temporaryRoot({ platform, environment, temporaryDirectory, userId }: TaskPlaces): string {
  const given = environment["CLAUDE_CODE_TMPDIR"];
  const usual = platform === "darwin" ? "/tmp" : temporaryDirectory;
  const owner = userId === undefined ? "claude" : `claude-${userId}`;
  return join(given === undefined || given === "" ? usual : given, owner);
}
