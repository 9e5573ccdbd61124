import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { plural } from "@retinue/base/foundation/diagnostic.ts";
import { isRecord, type JsonRecord } from "@retinue/base/foundation/json-record.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { agentLog } from "@retinue/cluster/agent-records.ts";
import { readStoreRun } from "@retinue/cluster/session/run-store-workflow.ts";
import { readTravellingPlan, type TravellingWorkflow } from "@retinue/cluster/session/session-plan.ts";
import { inspectAgent, readAgent, waitForEnd, watchAgent } from "@retinue/cluster/start-agent.ts";
import { planMain, startWorkflow } from "@retinue/cluster/start-session.ts";
import type { JsonValue, Store } from "@retinue/cluster/store.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { createPrintRuntime, openPrintSession } from "../../shared/open-print-session.ts";
import { readPrintOptions } from "../../shared/print-options.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { withStore } from "../../shared/with-store.ts";
import { argsOf, stepLine } from "../workflow.ts";
import {
  acceptedFor,
  describeLeft,
  inPlace,
  type PrintInStoreOptions,
  refuseMissing,
  refuseStray,
} from "./print-in-store.ts";

export type WorkflowInStoreOptions = PrintInStoreOptions & {
  readonly args?: string;
  readonly script?: string;
};

/** `retinue workflow run NAME --store`: hands its script to the workers; leaving does not stop it. */
export async function runWorkflowInStore(
  context: StoreContext,
  name: string,
  options: WorkflowInStoreOptions,
): Promise<number> {
  const file = resolve(context.host.cwd, name);
  const isFile = /\.[cm]?js$/.test(name) && existsSync(file);
  const args = argsOf(options.args) as JsonValue | undefined;
  return give(context, { what: isFile ? { scriptPath: file } : { name }, args }, options);
}

/** `retinue workflow resume ID --store`: a new run that takes the finished steps of an earlier one. */
export async function resumeWorkflowInStore(
  context: StoreContext,
  id: string,
  options: WorkflowInStoreOptions,
): Promise<number> {
  const { script, args } = await withStore(context.store, (store) => workflowOf(store, id));
  const { cwd } = context.host;
  const what = options.script === undefined ? { script } : { scriptPath: resolve(cwd, options.script) };
  const given = options.args === undefined ? args : (argsOf(options.args) as JsonValue);
  return give(context, { what, args: given, continues: id }, options);
}

interface Given {
  readonly what: { readonly name: string } | { readonly scriptPath: string } | { readonly script: string };
  readonly args: JsonValue | undefined;
  readonly continues?: string;
}

async function give(
  context: StoreContext,
  { what, args, continues }: Given,
  options: WorkflowInStoreOptions,
): Promise<number> {
  const { host, session } = context;
  const { args: _args, script: _script, ...flags } = options;
  refuseStray({ ...session, ...flags }, "store");
  const request = readPrintOptions(flags, { words: [], cwd: host.cwd, session });
  const id = request.session.sessionId ?? crypto.randomUUID();
  const start = { ...flags, agent: id, directory: host.cwd, accepts: acceptedFor(id) };
  return inPlace(context, start, async (store, place, signal) => {
    await using runtime = createPrintRuntime(context, { sessionPersistence: false });
    const planOnly = { ...request.session, sessionId: id, planOnly: true };
    await using planned = await openPrintSession(runtime, planOnly, signal);
    const found = await planned.workflows?.find(what);
    if (found === undefined) throw misuse("Workflows are disabled here.");
    await startWorkflow(store, {
      ...place,
      script: found.text,
      args,
      continues,
      planned: planMain(planned),
      options: {
        ...request.session,
        sessionId: id,
        ...(session.disallowedTools === undefined ? {} : { disallowedTools: session.disallowedTools }),
      },
    });
    if (options.detach === true) {
      host.stdout.write(`${id}\n`);
      return 0;
    }
    await refuseMissing(context, store, id);
    host.stderr.write(`${found.meta.name} ${id}\n`);
    return await watch(context, store, { id, isJson: options.json === true, signal });
  });
}

interface Watched {
  readonly id: string;
  readonly isJson: boolean;
  readonly signal: AbortSignal;
}

async function watch(
  { host, store: address }: StoreContext,
  store: Store,
  { id, isJson, signal }: Watched,
): Promise<number> {
  const print = (text: string): void => host.stderr.write(`${stripControlCharacters(text)}\n`);
  let shown = "";
  const watching = await watchAgent(store, id, (event) => {
    if (!isRecord(event) || event["type"] !== "workflow-progressed") return;
    const line = `  ${event["done"]} of ${plural(Number(event["agents"]), "agent")} done`;
    if (line !== shown) print(line);
    shown = line;
  });
  try {
    const ending = await waitForEnd(store, id, { timeoutMs: 2 ** 31 - 1, signal });
    const result: JsonRecord = isRecord(ending?.result) ? ending.result : {};
    const { status, error, text, output } = result;
    if (isJson) {
      const run = readStoreRun(await store.log.read(agentLog(id)));
      const json = { version: 1, id, status, error, result: output, run };
      host.stdout.write(`${JSON.stringify(json, undefined, 2)}\n`);
    } else if (output !== undefined)
      host.stdout.write(`${typeof output === "string" ? output : JSON.stringify(output, undefined, 2)}\n`);
    if (status === "completed") return 0;
    print(
      `retinue: ${String(error ?? text ?? (ending?.status === "stopped" ? "it was stopped" : ending?.result))}`,
    );
    print(`\`retinue workflow resume ${id} --store …\` takes what is finished`);
    return 1;
  } catch (error) {
    if (signal.aborted) print(`retinue: ${describeLeft(address, id)}`);
    throw error;
  } finally {
    watching.close();
  }
}

/** `retinue workflow show ID --store`: its steps as agents of the store, and at its end each with how it ended. */
export async function showWorkflowInStore(
  context: StoreContext,
  id: string,
  options: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  return withStore(context.store, async (store) => {
    const { runId } = await workflowOf(store, id);
    const { status } = await inspectAgent(store, id);
    const run = readStoreRun(await store.log.read(agentLog(id)));
    const { children } = await readAgent(store, id);
    const steps = await Promise.all(
      children.map(async (agent) => ({ agent, status: (await inspectAgent(store, agent)).status })),
    );
    if (options.json === true) {
      stdout.write(
        `${JSON.stringify({ version: 1, id, runId, status, steps, run: run ?? null }, undefined, 2)}\n`,
      );
      return 0;
    }
    const progress = isRecord(run) && Array.isArray(run["progress"]) ? run["progress"].filter(isRecord) : [];
    const rows =
      progress.length === 0
        ? steps.map((step) => `    ${step.status.padEnd(11)} ${step.agent}`)
        : progress.map((entry) =>
            entry["type"] === "workflow_phase"
              ? `  ${entry["title"]}`
              : `    ${stepLine(entry, "completed")}`,
          );
    const lines = [`${id}  ${status}  ${plural(steps.length, "agent")}`, ...rows];
    stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
    return 0;
  });
}

async function workflowOf(store: Store, id: string): Promise<TravellingWorkflow> {
  const { plan } = await readAgent(store, id);
  const travelling = plan === undefined ? undefined : readTravellingPlan(plan);
  if (travelling?.type === "session" && travelling.workflow !== undefined) return travelling.workflow;
  throw new RetinueError("unknown-run", `There is no workflow ${JSON.stringify(id)} in this store.`, {
    advice: "`retinue tasks --store URL` lists what is in the store.",
  });
}
