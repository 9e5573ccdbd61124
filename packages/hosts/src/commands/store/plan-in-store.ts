import { missingEverywhere, missingNeeds, normalizeNeeds } from "@retinue/cluster/missing-needs.ts";
import { queueNeed } from "@retinue/cluster/serve-agents.ts";
import { planNeeds } from "@retinue/cluster/session/plan-needs.ts";
import { checkChildPlan } from "@retinue/cluster/session/session-plan.ts";
import { describeDeadLetter, glanceAtAgent, reportedStatus } from "@retinue/cluster/start-agent.ts";
import type { Store, WorkerStatus } from "@retinue/cluster/store.ts";
import {
  findWorkspace,
  type WorkspaceType,
  workspaceTypes,
} from "@retinue/cluster/workspace/find-workspace.ts";
import { describeWorkspace, workspaceNeeds } from "@retinue/cluster/workspace/workspace-plan.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import type { StoreRunFlags } from "../../shared/flags.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { withStore } from "../../shared/with-store.ts";
import { doctor } from "../doctor.ts";
import { type PlanOptions, plan } from "../plan.ts";
import { readWorkspaceType } from "./print-in-store.ts";

export type PlanInStoreOptions = PlanOptions & StoreRunFlags;

/** `retinue plan NAME --store`: the plan, where its files would be, what it needs of a worker, and who has that. */
export async function planInStore(
  context: StoreContext,
  name: string,
  options: PlanInStoreOptions,
): Promise<number> {
  const { host } = context;
  const { context: inside, text } = captured(context);
  const code = await plan(inside, name, { ...options, json: true });
  const answer = JSON.parse(text());
  const { queue = [] } = options;
  return withStore(context.store, async (store) => {
    const workers = await store.engine.workers();
    const type = readWorkspaceType(options.workspace);
    const workspace = await workspaceOf(context, { type, agent: answer.plan.agent.id, workers });
    const own = [
      ...planNeeds(checkChildPlan(answer.plan)),
      ...workspaceNeeds(workspace),
      ...queue.map(queueNeed),
    ];
    const needs = normalizeNeeds(own);
    const able = workers.filter(({ has }) => missingNeeds(needs, has).length === 0).map(({ id }) => id);
    const missing = missingEverywhere(needs, workers);
    if (options.json === true) {
      host.stdout.write(
        `${JSON.stringify({ ...answer, workspace, needs, workers: able, missing }, undefined, 2)}\n`,
      );
      return code;
    }
    await plan(context, name, options);
    const lines = [
      `workspace: ${describeWorkspace(workspace)}`,
      `needs of a worker: ${needs.length === 0 ? "nothing" : needs.join(", ")}`,
      able.length > 0
        ? `could run on: ${able.join(", ")}`
        : `would wait: no worker has ${missing.join(", ")}`,
    ];
    host.stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
    return code;
  });
}

/** `retinue doctor --store`: the usual checks, whether the store can be used, who serves it, and which workspaces this folder can be. */
export async function doctorInStore(
  context: StoreContext,
  { json }: { readonly json?: boolean },
): Promise<number> {
  const { host } = context;
  const usual = json === true ? captured(context) : undefined;
  const code = await doctor(usual?.context ?? context, json === true ? { json } : {});
  return withStore(context.store, async (store) => {
    const workers = await store.engine.workers();
    const workspaces = await Promise.all(
      workspaceTypes.map((type) => tryWorkspace(context, { type, workers })),
    );
    if (usual !== undefined) {
      const answer = { ...JSON.parse(usual.text()), store: { address: store.label, workers, workspaces } };
      host.stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
      return code;
    }
    const lines = [
      "",
      `store: ${store.label} can be reached, and its tables are those of this version`,
      ...describeWorkers(workers),
      ...(await describeTrouble(store)),
      ...workspaces.map(
        ({ type, works, text }) => `workspace ${type}: ${works ? "" : "not possible. "}${text}`,
      ),
    ];
    host.stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
    return code;
  });
}

/** Agents that no worker runs although they have work, or can run. */
async function describeTrouble(store: Store): Promise<readonly string[]> {
  const lines: string[] = [];
  for (const { name, last } of await store.log.list("run/", { last: true })) {
    const id = name.slice("run/".length);
    const { status, deadLetter } = await glanceAtAgent(store, id, last);
    if (deadLetter !== undefined) lines.push(`agent ${id}: dead letter. ${describeDeadLetter(deadLetter)}`);
    else if (status === "working" && reportedStatus(status, await store.engine.status(id)) === "stranded")
      lines.push(`agent ${id}: has work and is not scheduled; a worker finds that within a minute`);
  }
  return lines;
}

/** The same context, whose output is kept. */
function captured(context: StoreContext) {
  let text = "";
  const { host } = context;
  const write = (piece: string): void => {
    text += piece;
  };
  return { context: { ...context, host: { ...host, stdout: { ...host.stdout, write } } }, text: () => text };
}

function describeWorkers(workers: readonly WorkerStatus[]): readonly string[] {
  if (workers.length === 0)
    return ["workers: none, so that every agent waits; start one with `retinue serve --store …`"];
  return workers.map(
    ({ id, running, slots, version, has, ailment }) =>
      `worker ${id}: ${running} of ${slots} places taken, version ${version}, ${ailment === undefined ? "" : `takes no agents (${ailment}), `}has ${has.join(", ")}`,
  );
}

interface Wanted {
  readonly type: WorkspaceType;
  readonly agent?: string;
  readonly workers: readonly WorkerStatus[];
}

function workspaceOf({ host }: StoreContext, { type, agent = "ID", workers }: Wanted) {
  const { signal } = new AbortController();
  return findWorkspace({ type, directory: host.cwd, agent, environment: host.environment, signal, workers });
}

async function tryWorkspace(context: StoreContext, wanted: Wanted) {
  const { type } = wanted;
  try {
    return { type, works: true, text: describeWorkspace(await workspaceOf(context, wanted)) };
  } catch (error) {
    return { type, works: false, text: error instanceof Error ? error.message : String(error) };
  }
}
