import { userInfo } from "node:os";
import { type StoreApproval, storeApprovals } from "@retinue/cluster/session/store-approvals.ts";
import type { StoreContext } from "../../shared/command-context.ts";
import { misuse, refuseAgents } from "../../shared/misuse.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { withStore } from "../../shared/with-store.ts";
import type { ApproveOptions } from "../approvals.ts";
import { describeInput, type ShownApproval, writeApprovals } from "../approvals.ts";

interface ListOptions {
  readonly json?: boolean;
  /** Also those that are answered and that no worker has taken yet. */
  readonly all?: boolean;
}

/** `retinue approvals --store` */
export async function approvalsInStore(
  { host, store: address }: StoreContext,
  { json, all }: ListOptions,
): Promise<number> {
  return withStore(address, async (store) => {
    const found = await storeApprovals(store).list();
    const shown = all === true ? found : found.filter(({ state }) => state === "waiting");
    return writeApprovals(host, shown, {
      json: json === true,
      none: "Nothing waits for an answer in this store.",
      rowOf: shownOf,
    });
  });
}

function shownOf({ id, state, agent, question, at }: StoreApproval): ShownApproval {
  return { id, state, at, tool: question.tool, agents: agent, call: describeInput(question.input) };
}

/** `retinue approvals show ID --store` */
export async function showInStore(
  { host, store: address }: StoreContext,
  id: string,
  { json }: ListOptions,
): Promise<number> {
  return withStore(address, async (store) => {
    const approval = await storeApprovals(store).find(id);
    if (json === true) {
      host.stdout.write(`${JSON.stringify({ version: 1, approval }, undefined, 2)}\n`);
      return 0;
    }
    const { question, agent, state, at } = approval;
    const { tool, input, reason, path, suggestedRules = [] } = question;
    const lines = [
      `${approval.id}: ${state} since ${new Date(at).toISOString()}`,
      `agent     ${agent} (${path.join(" → ")})`,
      `tool      ${tool}`,
      ...JSON.stringify(input, undefined, 2).split("\n"),
      `reason    ${reason}`,
      ...(suggestedRules.length === 0 ? [] : [`rules     ${suggestedRules.join(" and ")}`]),
    ];
    host.stdout.write(`${lines.map(stripControlCharacters).join("\n")}\n`);
    return 0;
  });
}

export type ApproveInStoreOptions = Omit<ApproveOptions, "answer">;

/** `retinue approve ID --store` */
export async function approveInStore(
  context: StoreContext,
  id: string,
  options: ApproveInStoreOptions,
): Promise<number> {
  const scope = readScope(options);
  return give(context, id, ({ question }) => {
    const { suggestedRules = [] } = question;
    if (options.suggested === true && suggestedRules.length === 0)
      throw misuse("The question suggests no rules, so --suggested cannot be used.");
    const rules = [...(options.rule ?? []), ...(options.suggested === true ? suggestedRules : [])];
    if (scope === "call" && rules.length > 0)
      throw misuse("Rules cover further calls, so they need --for agent or --for session.");
    if (scope === "call") return { type: "allow", for: scope };
    return { type: "allow", for: scope, ...(rules.length === 0 ? {} : { rules }) };
  });
}

/** A limit that no worker would keep is refused. */
function readScope(options: ApproveInStoreOptions): "call" | "agent" | "session" {
  const { for: scope } = options;
  const limit = (["until", "uses", "usd"] as const).find((name) => options[name] !== undefined);
  if (limit !== undefined)
    throw misuse(`--${limit} is not kept for agents of a store.`, "Allow the call alone, with --for call.");
  if (scope === "call" || scope === "agent" || scope === "session") return scope;
  throw misuse(`--for is call, agent or session for agents of a store, but got ${JSON.stringify(scope)}.`);
}

/** `retinue deny ID [message] --store` */
export function denyInStore(context: StoreContext, id: string, message = ""): Promise<number> {
  return give(context, id, () => ({ type: "deny", ...(message === "" ? {} : { message }) }));
}

async function give(
  { host, store: address }: StoreContext,
  id: string,
  decide: (approval: StoreApproval) => Parameters<ReturnType<typeof storeApprovals>["answer"]>[1],
): Promise<number> {
  refuseAgents(host);
  return withStore(address, async (store) => {
    const approvals = storeApprovals(store);
    const answer = decide(await approvals.find(id));
    const { question, agent, id: answered } = await approvals.answer(id, answer, { by: userInfo().username });
    const word = answer.type === "allow" ? "allowed" : "denied";
    host.stdout.write(`${stripControlCharacters(`${answered} is ${word}: ${question.tool} of ${agent}.`)}\n`);
    return 0;
  });
}
