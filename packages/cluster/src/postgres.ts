// @io

import { checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { checkOutput } from "@retinue/core/kernel/options/read-output-schema.ts";
import type { RuntimeStore, StoreRunRequest } from "@retinue/core/kernel/options/runtime-options.ts";
import { followSession } from "./follow-session.ts";
import { type OpenStoreOptions, openingChecks, openStore } from "./open-store.ts";
import { readPlanAgents, toTravellingOptions } from "./session/session-plan.ts";
import { readAgent, sendMessage, stopAgent } from "./start-agent.ts";
import { type PlannedMain, planMain, startSession } from "./start-session.ts";
import { isStore, type JsonValue, type Store } from "./store.ts";
import { findWorkspace, type WorkspaceType, workspaceTypes } from "./workspace/find-workspace.ts";

/** How the runs of a runtime are handed to workers. */
export interface StoreRunsOptions {
  /** How the files of a session get to the worker; `pinned` to this machine when absent. */
  readonly workspace?: WorkspaceType | undefined;
  /** Only workers that serve this queue take its sessions. */
  readonly queue?: string | undefined;
  /** False: events have whole messages only, and `textStream` has nothing. It saves the store a notice for each piece of text. */
  readonly partialMessages?: boolean | undefined;
}

export interface PostgresOptions extends OpenStoreOptions, StoreRunsOptions {
  /** `postgres://user@host/database`; RETINUE_STORE when absent. */
  readonly url?: string | undefined;
}

const runsChecks = {
  workspace: checks.oneOf(workspaceTypes),
  queue: checks.filled,
  partialMessages: checks.flag,
};

/** For `createRuntime({ store })`: the runs of the runtime are carried out by the workers of a store. */
export function postgres(options: PostgresOptions = {}): RuntimeStore {
  checkTable("postgres", { url: checks.text, ...openingChecks, ...runsChecks }, options);
  const { workspace, queue, partialMessages, ...opening } = options;
  const { url = process.env["RETINUE_STORE"] ?? "", ...others } = opening;
  if (url === "")
    throw new RetinueError("invalid-store-url", "No store was given.", {
      advice: "Write postgres({ url: 'postgres://user@host/database' }), or set RETINUE_STORE.",
    });
  let opened: Promise<Store> | undefined;
  const open = (): Promise<Store> => {
    opened ??= openStore(url, others);
    // A failure is not kept: the next run may find the server there.
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  return {
    ...runsOf(open, { workspace, queue, partialMessages }),
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}

/** The same for a store that the program has opened itself, perhaps to be a worker of it, and closes itself. */
export function workersOf(store: Store, options: StoreRunsOptions = {}): RuntimeStore {
  checkArgument("The first argument of workersOf()", isStore, store);
  checkTable("workersOf", runsChecks, options);
  return { ...runsOf(async () => store, options), close: async () => undefined };
}

function runsOf(
  open: () => Promise<Store>,
  options: { readonly [Key in keyof StoreRunsOptions]: StoreRunsOptions[Key] | undefined },
): Pick<RuntimeStore, "run" | "stop"> {
  const { workspace = "pinned", queue, partialMessages = true } = options;
  return {
    async *run(request, { signal }) {
      const store = await open();
      const begin = () => startOrSend(store, request, { workspace, queue, partialMessages, signal });
      const events = followSession(store, request.sessionId, { begin, signal, approve: request.approve });
      for await (const event of events)
        yield event.type === "run-ended" ? { ...event, ending: await checked(event.ending, request) } : event;
    },
    async stop(sessionId, reason) {
      await stopAgent(await open(), sessionId, reason);
    },
  };
}

interface StartOptions {
  readonly workspace: WorkspaceType;
  readonly queue: string | undefined;
  readonly partialMessages: boolean;
  readonly signal: AbortSignal;
}

/** Gives the number of the record after which the run's own records come. */
async function startOrSend(
  store: Store,
  request: StoreRunRequest,
  { workspace, queue, partialMessages, signal }: StartOptions,
): Promise<number> {
  const { sessionId, prompt, isResumed, options, agents, directory, environment } = request;
  if (isResumed) {
    const { lastSeq } = await readAgent(store, sessionId);
    await sendMessage(store, sessionId, { body: { type: "prompt", prompt } });
    return lastSeq;
  }
  const [workers, planned] = await Promise.all([store.engine.workers(), planHere(request)]);
  await startSession(store, {
    prompt,
    options: { ...options, sessionId },
    planned,
    partialMessages,
    workspace: await findWorkspace({
      type: workspace,
      directory,
      agent: sessionId,
      environment,
      signal,
      workers,
    }),
    ...(agents === undefined ? {} : { agents: agents as JsonValue }),
    queue,
  });
  return 0;
}

/** The session as this program would open it, decided without being opened. */
async function planHere({
  options,
  agents,
  directory,
  home,
  environment,
}: StoreRunRequest): Promise<PlannedMain> {
  await using runtime = createRuntime({
    cwd: directory,
    env: environment,
    home,
    agents: agents === undefined ? undefined : readPlanAgents(agents as JsonValue),
  });
  await using session = await runtime.open({ ...toTravellingOptions(options), planOnly: true });
  return planMain(session);
}

/** A worker has checked the output against a JSON Schema; the schema of the program may say more, or change the value. */
async function checked(ending: RunEnding, { options: { output } }: StoreRunRequest): Promise<RunEnding> {
  if (output === undefined || ending.output === undefined) return ending;
  const { output: value, ...others } = ending;
  const read = await checkOutput(output, value);
  if (read.type === "valid") return { ...ending, output: read.value };
  return { ...others, status: "failed", reason: "invalid_output", error: read.reason };
}
