// @io
import type { RunEvent } from "../conversation/run-event.ts";
import { isRecord } from "../foundation/json-record.ts";
import { RetinueError } from "../foundation/retinue-error.ts";
import type { RuntimeStore, StoreRunRequest } from "../runtime/runtime-store.ts";
import { readAgent, sendMessage, stopAgent, watchAgent } from "./agent-client.ts";
import { agentLog, toAgentRecord } from "./agent-records.ts";
import { type OpenStoreOptions, openStore } from "./open-store.ts";
import type { Question } from "./session/session-progress.ts";
import { runEndingOf } from "./session/session-work.ts";
import { startSession } from "./start-session.ts";
import type { JsonValue, Store } from "./store.ts";
import { findWorkspace, type WorkspaceType } from "./workspace/find-workspace.ts";

export interface PostgresOptions extends OpenStoreOptions {
  /** `postgres://user@host/database`; RETINUE_STORE when absent. */
  readonly url?: string;
  /** How the files of a session get to the worker; `pinned` to this machine when absent. */
  readonly workspace?: WorkspaceType;
  /** Only workers that serve this queue take its sessions. */
  readonly queue?: string;
}

/** For `createRuntime({ store })`: the runs of the runtime are carried out by the workers of a store. */
export function postgres(options: PostgresOptions = {}): RuntimeStore {
  const { url = process.env["RETINUE_STORE"] ?? "", workspace = "pinned", queue, ...opening } = options;
  if (url === "")
    throw new RetinueError("invalid-store-url", "No store is named.", {
      advice: "Write postgres({ url: 'postgres://user@host/database' }), or set RETINUE_STORE.",
    });
  let opened: Promise<Store> | undefined;
  const open = (): Promise<Store> => {
    opened ??= openStore(url, opening);
    // A failure is not kept: the next run may find the server there.
    opened.catch(() => {
      opened = undefined;
    });
    return opened;
  };
  return {
    async *run(request, { signal }) {
      const store = await open();
      const begin = () => startOrSend(store, request, { workspace, queue, signal });
      yield* follow(store, request, { begin, signal });
    },
    async stop(sessionId, reason) {
      await stopAgent(await open(), sessionId, reason);
    },
    async close() {
      await (await opened?.catch(() => undefined))?.close();
    },
  };
}

interface StartOptions {
  readonly workspace: WorkspaceType;
  readonly queue: string | undefined;
  readonly signal: AbortSignal;
}

/** Gives the number of the record after which the run's own records come. */
async function startOrSend(
  store: Store,
  { sessionId, prompt, isResumed, options, agents, directory, environment }: StoreRunRequest,
  { workspace, queue, signal }: StartOptions,
): Promise<number> {
  if (isResumed) {
    const { lastSeq } = await readAgent(store, sessionId);
    await sendMessage(store, sessionId, { body: { type: "prompt", prompt } });
    return lastSeq;
  }
  const workers = await store.engine.workers();
  await startSession(store, {
    prompt,
    options: { ...options, sessionId },
    workspace: await findWorkspace({
      type: workspace,
      directory,
      agent: sessionId,
      environment,
      signal,
      workers,
    }),
    ...(agents === undefined ? {} : { agents: agents as JsonValue }),
    ...(queue === undefined ? {} : { queue }),
  });
  return 0;
}

interface Following {
  readonly begin: () => Promise<number>;
  readonly signal: AbortSignal;
}

/** How often the log is read when no event arrives: the bus may lose some. */
const rereadMs = 1_000;

/** What is heard of a session while it runs, and its end from the log, which nothing can lose. */
async function* follow(
  store: Store,
  { sessionId, approve }: StoreRunRequest,
  { begin, signal }: Following,
): AsyncGenerator<RunEvent> {
  const heard: RunEvent[] = [];
  let wake: () => void = () => undefined;
  const subscriptions = [
    await watchAgent(store, sessionId, (event) => {
      // Workers publish the events of their runs.
      if (isRecord(event) && event["type"] !== "run-ended") heard.push(event as unknown as RunEvent);
      wake();
    }),
    await store.bus.subscribe(agentLog(sessionId), () => wake()),
  ];
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort, { once: true });
  const answer = createAnswering(store, sessionId, approve);
  try {
    const from = await begin();
    while (true) {
      const woken = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const [last] = await store.log.read(agentLog(sessionId), -1);
      yield* heard.splice(0);
      signal.throwIfAborted();
      const record = last === undefined || last.seq <= from ? undefined : toAgentRecord(last.record);
      if (record?.type === "ended") {
        yield { type: "run-ended", ending: runEndingOf(record.ending) };
        return;
      }
      if (record?.type === "parked") await answer(record.waitingFor);
      await Promise.race([woken, pause(rereadMs)]);
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    for (const subscription of subscriptions) subscription.close();
  }
}

/** Asks the program about each question once, where it can answer. */
function createAnswering(
  store: Store,
  agent: string,
  approve: StoreRunRequest["approve"],
): (waitingFor: JsonValue) => Promise<void> {
  const asked = new Set<string>();
  return async (waitingFor) => {
    const question = isRecord(waitingFor)
      ? (waitingFor["question"] as unknown as Question | undefined)
      : undefined;
    if (approve === undefined || question === undefined || asked.has(question.id)) return;
    asked.add(question.id);
    const { id, tool, input, reason, path } = question;
    const given = await approve({
      path: path.map((name) => ({ id: name, name })),
      callId: id,
      tool,
      // Input of a call comes from a model's JSON.
      input: input as Readonly<Record<string, unknown>>,
      reason,
      suggestedRules: [],
    });
    await sendMessage(store, agent, {
      body: { type: "answer", question: id, answer: given as unknown as JsonValue },
    });
  };
}

function pause(milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, milliseconds).unref();
  });
}
