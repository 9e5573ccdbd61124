import { isRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { followSession } from "@retinue/cluster/follow-session.ts";
import type { ServeSessionsOptions } from "@retinue/cluster/serve-sessions.ts";
import type { SessionOpened } from "@retinue/cluster/session/session-work.ts";
import type { StoreApproval } from "@retinue/cluster/session/store-approvals.ts";
import { waitForEnd } from "@retinue/cluster/start-agent.ts";
import { planMain, type SessionRequest, startPlan, startSession } from "@retinue/cluster/start-session.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import { findWorkspace, workspaceTypes } from "@retinue/cluster/workspace/find-workspace.ts";
import type { RunEnding } from "@retinue/core/conversation/run-event.ts";
import { type AcceptedRight, acceptableRights } from "@retinue/core/kernel/project/plan-origins.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { createPrinter } from "../../print/create-printer.ts";
import type { Printer } from "../../print/printer.ts";
import { readPrompt } from "../../print/run-print.ts";
import { codeOfEnding } from "../../shared/code-of-ending.ts";
import type { StoreAddress, StoreContext } from "../../shared/command-context.ts";
import { type StoreRunFlags, strayFlag } from "../../shared/flags.ts";
import { loadAgentsOption, refuseBrokenOption } from "../../shared/load-agents-option.ts";
import { misuse } from "../../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { type PrintRequest, readPrintOptions } from "../../shared/print-options.ts";
import { readAcceptedRights } from "../../shared/read-accepted-rights.ts";
import { cutTo, stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { isForOneProcess, withStore } from "../../shared/with-store.ts";
import { loadPlan } from "../run-plan.ts";

export type PrintInStoreOptions = StoreRunFlags & { readonly acceptRights?: string };

/** `retinue -p --store`: hands the prompt to the workers and shows what they do; leaving does not stop the agent. */
export async function printInStore(
  context: StoreContext,
  words: readonly string[],
  options: PrintInStoreOptions,
): Promise<number> {
  const { host, session } = context;
  if (options.print !== true && words.length < 2)
    throw misuse("There is no such command for a store.", "`retinue --help` lists them.");
  refuseStray({ ...session, ...options }, "store");
  const shown = options.json === true ? { ...options, outputFormat: "json" } : options;
  const request = readPrintOptions(shown, { words, cwd: host.cwd, session });
  const prompt = await readPrompt(words, host.stdin);
  const sessionId = request.session.sessionId ?? crypto.randomUUID();
  return inPlace(
    context,
    // Where this process is the worker, its caller has specified which rights the session has.
    { ...options, agent: sessionId, directory: host.cwd, accepts: acceptedFor(sessionId) },
    async (store, place, signal) => {
      await using runtime = createPrintRuntime(context, { sessionPersistence: false });
      const given = { ...request.session, sessionId, planOnly: true };
      await using planned = await openPrintSession(runtime, given, signal);
      const begin = async (): Promise<number> => {
        await startSession(store, {
          ...place,
          prompt,
          planned: planMain(planned),
          partialMessages: request.partial,
          ...(options.approvals === "refuse" ? { approvals: "refuse" } : {}),
          ...(options.remoteChildren === true ? { remoteChildren: true } : {}),
          options: {
            ...request.session,
            sessionId,
            ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
          },
          ...(session.agents === undefined ? {} : { agents: readAgents(session.agents, host.cwd) }),
        });
        if (options.detach !== true) await refuseMissing(context, store, sessionId);
        return 0;
      };
      if (options.detach !== true) {
        host.stderr.write(`retinue: agent ${sessionId}\n`);
        return await show(context, store, { request, session: planned, begin, signal });
      }
      await begin();
      host.stdout.write(`${sessionId}\n`);
      return 0;
    },
  );
}

interface Shown {
  readonly request: PrintRequest;
  readonly session: Session;
  readonly begin: () => Promise<number>;
  readonly signal: AbortSignal;
}

/** Prints the events of a session as if it ran here. */
async function show(
  { host, store: address }: StoreContext,
  store: Store,
  { request, session, begin, signal }: Shown,
): Promise<number> {
  const { id } = session;
  const notes = new Set(session.plan.notes);
  let printer: Printer | undefined;
  const onOpened = (opened: SessionOpened): void => {
    printer ??= createPrinter(host, request, asOpened(session, opened), notes);
  };
  const print = (): Printer => {
    printer ??= createPrinter(host, request, session, notes);
    return printer;
  };
  const report = (text: string): void => host.stderr.write(`retinue: ${stripControlCharacters(text)}\n`);
  const onParked = ({ id: approval, question: { tool, input } }: StoreApproval): void => {
    report(`waits for a person: ${tool} ${cutTo(JSON.stringify(input), 200)}`);
    const answer = `\`retinue approve ${approval} --store …\` or \`retinue deny ${approval} --store …\``;
    if (isForOneProcess(address))
      report(`leave with Ctrl+C, answer with ${answer}, and continue with \`retinue serve --store …\``);
    else report(`answer with ${answer}`);
  };
  let ending: RunEnding | undefined;
  try {
    let hasStarted = false;
    for await (const event of followSession(store, id, { begin, signal, onParked, onOpened })) {
      if (!hasStarted) print().begin();
      hasStarted = true;
      if (event.type === "run-ended") ending = event.ending;
      else print().show(event);
    }
  } catch (error) {
    if (signal.aborted) report(describeLeft(address, id));
    else print().fail(error);
    throw error;
  }
  if (ending === undefined)
    throw new RetinueError("run-without-end", "The run ended without reporting a result.");
  print().end(ending);
  if (ending.status === "stopped" && ending.error === undefined) report("the agent was stopped");
  return codeOfEnding(ending);
}

/** The session as its worker has it. */
function asOpened(
  session: Session,
  { model, decidedModel, tools, mcpServers, notes = session.plan.notes }: SessionOpened,
): Session {
  const plan = { ...session.plan, model: decidedModel, tools, notes };
  return { ...session, model, plan, mcpServers: () => mcpServers };
}

/** `retinue run-plan FILE --store`: hands the plan of a child to the workers and waits for the result. */
export async function runPlanInStore(
  context: StoreContext,
  file: string,
  options: PrintInStoreOptions,
): Promise<number> {
  const { host, session } = context;
  refuseStray({ ...session, ...options }, "store-plan", ["acceptRights"]);
  const request = readPrintOptions(options, { words: [], cwd: host.cwd, session });
  const plan = await loadPlan(host, file, options);
  const { sessionDirectory: directory } = plan;
  const accepts = readAcceptedRights(options.acceptRights);
  const start = { ...options, agent: plan.agent.id, directory, accepts };
  return inPlace(context, start, async (store, place, signal) => {
    const id = await startPlan(store, { ...place, plan });
    if (options.detach !== true) await refuseMissing(context, store, id);
    const output = options.json === true ? "json" : request.output;
    if (options.detach !== true) return watch(context, store, { id, output, signal });
    host.stdout.write(`${id}\n`);
    return 0;
  });
}

type Start = PrintInStoreOptions & {
  readonly agent: string;
  readonly directory: string;
  readonly accepts: NonNullable<ServeSessionsOptions["accepts"]>;
};

/** Everything for one agent and its children, nothing for others that are in the store. */
export function acceptedFor(own: string): (agent: string) => readonly AcceptedRight[] {
  return (agent) => (agent === own || agent.startsWith(`${own}/`) ? acceptableRights : []);
}

type Place = Pick<SessionRequest, "workspace" | "queue">;

/** Opens the store and finds out where the files of the agent are. */
export async function inPlace(
  context: StoreContext,
  options: Start,
  use: (store: Store, place: Place, signal: AbortSignal) => Promise<number>,
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
      await using _worker = await startOwnWorker(context, store, options);
      return await use(store, { workspace, queue }, stop.signal);
    });
  } finally {
    forget();
  }
}

/** Where no other process can be a worker of the store, the one that waits for the agent runs it. */
async function startOwnWorker(
  context: StoreContext,
  store: Store,
  { detach, queue = [], accepts }: Start,
): Promise<AsyncDisposable | undefined> {
  if (detach === true || !isForOneProcess(context.store)) return undefined;
  const { startWorker } = await import("./serve.ts");
  const worker = await startWorker(context, store, { slots: ownSlots, queues: queue, accepts });
  return { [Symbol.asyncDispose]: () => worker.drain(ownGraceMs) };
}

/** For the agent and the children that it gives to the store. */
const ownSlots = 4;
/** How long a person who leaves with Ctrl+C waits for the end of a turn. */
const ownGraceMs = 2_000;

/** What this process does not have, no other can bring while it waits. */
export async function refuseMissing(
  { store: address }: StoreContext,
  store: Store,
  id: string,
): Promise<void> {
  if (!isForOneProcess(address)) return;
  const status = await store.engine.status(id);
  if (status.state !== "queued" || status.missing.length === 0) return;
  const missing = status.missing.join(", ");
  throw new RetinueError("missing-need", `${id} needs what this process does not have: ${missing}.`, {
    advice: "It is kept in the store; `retinue serve --store …` runs it where it is there.",
  });
}

export function describeLeft(address: StoreAddress, id: string): string {
  return isForOneProcess(address)
    ? `${id} is kept in the store; \`retinue serve --store …\` continues it`
    : `${id} continues on its worker; \`retinue logs ${id} -f --store …\` follows it`;
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

async function watch(
  { host, store: address }: StoreContext,
  store: Store,
  { id, output, signal }: Watched,
): Promise<number> {
  host.stderr.write(`retinue: agent ${id}\n`);
  const ending = await waitForEnd(store, id, { timeoutMs: 2 ** 31 - 1, signal }).catch((error: unknown) => {
    if (signal.aborted) host.stderr.write(`retinue: ${describeLeft(address, id)}\n`);
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

/** What was asked for and would not hold on a worker is refused. */
export function refuseStray(
  options: object,
  place: Parameters<typeof strayFlag>[1],
  besides: readonly string[] = [],
): void {
  const stray = strayFlag(options, place, besides);
  if (stray === undefined) return;
  throw misuse(
    `${stray} has no effect on agents that workers run.`,
    "Give it to `retinue serve` if it is about the worker; `retinue resume ID PROMPT` continues an agent.",
  );
}
