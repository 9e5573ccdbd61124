import { waitForEnd } from "../../../cluster/agent-client.ts";
import { type SessionRequest, startPlan, startSession } from "../../../cluster/start-session.ts";
import type { JsonValue, Store } from "../../../cluster/store.ts";
import { findWorkspace, workspaceTypes } from "../../../cluster/workspace/find-workspace.ts";
import { isRecord } from "../../../foundation/json-record.ts";
import { checkSessionOptions } from "../check-session-options.ts";
import { loadPlan } from "../commands/run-plan.ts";
import { loadAgentsOption, refuseBrokenOption } from "../load-agents-option.ts";
import { type PrintOptions, readPrintOptions } from "../print/print-options.ts";
import { readPrompt } from "../print/read-prompt.ts";
import { misuse } from "../session-options.ts";
import { withStore } from "./open-named-store.ts";
import type { StoreContext } from "./store-program.ts";

export interface PrintInStoreOptions extends PrintOptions {
  readonly workspace?: string;
  readonly queue?: readonly string[];
  readonly detach?: boolean;
  readonly json?: boolean;
}

/** `retinue -p --store`: hands the prompt to the workers and waits for the result; leaving does not stop the agent. */
export async function printInStore(
  context: StoreContext,
  words: readonly string[],
  options: PrintInStoreOptions,
): Promise<number> {
  const { host, session } = context;
  if (options.print !== true && words.length < 2)
    throw misuse("There is no such command for a store.", "`retinue --help` lists them.");
  refuseStray({ ...session, ...options }, sessionOptions);
  checkSessionOptions(session, host.cwd);
  const request = readPrintOptions(options, { words, cwd: host.cwd, session });
  const prompt = await readPrompt(words, host.stdin);
  const sessionId = request.session.sessionId ?? crypto.randomUUID();
  return startAndWatch(
    context,
    { ...options, agent: sessionId, directory: host.cwd, output: request.output },
    (store, place) =>
      startSession(store, {
        ...place,
        prompt,
        options: {
          ...request.session,
          sessionId,
          ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
        },
        ...(session.agents === undefined ? {} : { agents: readAgents(session.agents, host.cwd) }),
      }),
  );
}

/** `retinue run-plan FILE --store`: hands the plan of a child to the workers and waits for the result. */
export async function runPlanInStore(
  context: StoreContext,
  file: string,
  options: PrintInStoreOptions,
): Promise<number> {
  const { host, session } = context;
  refuseStray({ ...session, ...options }, planOptions);
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session });
  const plan = await loadPlan(host, file, options);
  const { sessionDirectory: directory } = plan;
  const start = { ...options, agent: plan.agent.id, directory, output: request.output };
  return startAndWatch(context, start, (store, place) => startPlan(store, { ...place, plan }));
}

interface Start extends PrintInStoreOptions {
  readonly agent: string;
  readonly directory: string;
  readonly output: string;
}

type Place = Pick<SessionRequest, "workspace" | "queue">;

async function startAndWatch(
  context: StoreContext,
  options: Start,
  start: (store: Store, place: Place) => Promise<string>,
): Promise<number> {
  const { host } = context;
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    return await withStore(context.store, async (store) => {
      const workspace = await findWorkspace({
        type: readWorkspaceType(options.workspace),
        directory: options.directory,
        agent: options.agent,
        environment: host.environment,
        signal: stop.signal,
        workers: await store.engine.workers(),
      });
      const [queue] = options.queue ?? [];
      const id = await start(store, { workspace, ...(queue === undefined ? {} : { queue }) });
      const output = options.json === true ? "json" : options.output;
      if (options.detach !== true) return watch(context, store, { id, output, signal: stop.signal });
      host.stdout.write(`${id}\n`);
      return 0;
    });
  } finally {
    forget();
  }
}

export function readWorkspaceType(text = "pinned"): (typeof workspaceTypes)[number] {
  const type = workspaceTypes.find((known) => known === text);
  if (type !== undefined) return type;
  throw misuse(`--workspace is one of ${workspaceTypes.join(", ")}, but got ${JSON.stringify(text)}.`);
}

function readAgents(value: string, cwd: string): JsonValue {
  const option = loadAgentsOption(value, cwd);
  if (option.isBroken) throw refuseBrokenOption(option);
  return JSON.parse(option.text) as JsonValue;
}

interface Watched {
  readonly id: string;
  readonly output: string;
  readonly signal: AbortSignal;
}

async function watch({ host }: StoreContext, store: Store, { id, output, signal }: Watched): Promise<number> {
  host.stderr.write(`retinue: agent ${id}\n`);
  const ending = await waitForEnd(store, id, { timeoutMs: 2 ** 31 - 1, signal }).catch((error: unknown) => {
    if (signal.aborted)
      host.stderr.write(`retinue: ${id} continues; \`retinue logs ${id} --store …\` shows it\n`);
    throw error;
  });
  const result: Readonly<Record<string, unknown>> = isRecord(ending?.result) ? ending.result : {};
  const text = typeof ending?.result === "string" ? ending.result : String(result["text"] ?? "");
  if (output === "text") host.stdout.write(`${text}\n`);
  else host.stdout.write(`${JSON.stringify({ type: "result", session_id: id, ...result, result: text })}\n`);
  if (result["status"] === "completed") return 0;
  const why =
    ending?.status === "stopped" ? "the agent was stopped" : (result["error"] ?? result["reason"] ?? text);
  host.stderr.write(`retinue: ${String(why)}\n`);
  return 1;
}

const displayOptions =
  "print outputFormat verbose store tenant workspace queue detach json sessionPersistence";

/** The options that are part of what travels to a worker, or that say how the result is shown here. */
const sessionOptions: ReadonlySet<string> = new Set(
  `${displayOptions} model effort agent tools allowedTools disallowedTools permissionMode dangerouslySkipPermissions
  maxTurns maxBudgetUsd maxTime systemPrompt systemPromptFile appendSystemPrompt appendSystemPromptFile sessionId
  disableSlashCommands agents`.split(/\s+/),
);

/** A plan is decided to the last field, so that nothing but where and how it is shown can be said about it. */
const planOptions: ReadonlySet<string> = new Set([
  ...displayOptions.split(" "),
  "dangerouslySkipPermissions",
]);

/** What was asked for and would not hold on a worker is refused. */
function refuseStray(options: object, understood: ReadonlySet<string>): void {
  // Without `--no-ask`, the parser sets `ask` to true.
  const given = Object.entries(options).filter(([name, value]) => name !== "ask" || value === false);
  const stray = given.find(([name, value]) => value !== undefined && !understood.has(name));
  if (stray === undefined) return;
  const flag = `--${stray[0].replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  throw misuse(
    `${flag} has no effect on agents that workers run.`,
    "Give it to `retinue serve` if it is about the worker; `retinue resume ID PROMPT` continues an agent.",
  );
}
