import { waitForEnd } from "../../../cluster/agent-client.ts";
import { startSession } from "../../../cluster/start-session.ts";
import type { JsonValue, Store } from "../../../cluster/store.ts";
import { findWorkspace, workspaceTypes } from "../../../cluster/workspace/find-workspace.ts";
import { isRecord } from "../../../foundation/json-record.ts";
import { checkSessionOptions } from "../check-session-options.ts";
import { loadAgentsOption, refuseBrokenOption } from "../load-agents-option.ts";
import { type PrintOptions, readPrintOptions } from "../print/print-options.ts";
import { readPrompt } from "../print/read-prompt.ts";
import { misuse } from "../session-options.ts";
import { withStore } from "./open-named-store.ts";
import { refuseStray } from "./refuse-stray.ts";
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
  refuseStray({ ...session, ...options });
  checkSessionOptions(session, host.cwd);
  const request = readPrintOptions(options, { words, cwd: host.cwd, session });
  const prompt = await readPrompt(words, host.stdin);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  try {
    return await withStore(context.store, async (store) => {
      const sessionId = request.session.sessionId ?? crypto.randomUUID();
      const workspace = await findWorkspace({
        type: readWorkspaceType(options.workspace),
        directory: host.cwd,
        agent: sessionId,
        environment: host.environment,
        signal: stop.signal,
        workers: await store.engine.workers(),
      });
      const id = await startSession(store, {
        prompt,
        workspace,
        options: {
          ...request.session,
          sessionId,
          ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
        },
        ...(session.agents === undefined ? {} : { agents: readAgents(session.agents, host.cwd) }),
        ...(options.queue?.[0] === undefined ? {} : { queue: options.queue[0] }),
      });
      const output = options.json === true ? "json" : request.output;
      if (options.detach !== true) return watch(context, store, { id, output, signal: stop.signal });
      host.stdout.write(`${id}\n`);
      return 0;
    });
  } finally {
    forget();
  }
}

function readWorkspaceType(text = "pinned"): (typeof workspaceTypes)[number] {
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
      host.stderr.write(`retinue: ${id} goes on; \`retinue logs ${id} --store …\` shows it\n`);
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
