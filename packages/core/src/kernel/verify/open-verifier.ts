import { createHash } from "node:crypto";
import type { LoopPorts } from "../../loop/loop-ports.ts";
import { type AgentPlan, type PlannedDefinition, startOf } from "../../planning/agent-plan.ts";
import { inWorktree, type WorktreePlace } from "../../planning/in-worktree.ts";
import type { AgentOwn, AgentServices } from "../agent/agent-services.ts";
import { approvalRouting } from "../agent/approval-routing.ts";
import { createAuthorize } from "../agent/create-authorize.ts";
import type { SessionHooks } from "../hooks/session-hooks.ts";
import { type CheckRunner, createCheckRunner } from "./create-check-runner.ts";
import { createVerifier, type Verifier, type VerifierParts } from "./create-verifier.ts";
import type { TreeView } from "./look-at-tree.ts";

/** Binds the checks of a plan to this process: its shell, the people who can be asked, and the working tree. */
export function openVerifier(
  made: AgentPlan,
  {
    services,
    own,
    hooks,
  }: { readonly services: AgentServices; readonly own: AgentOwn; readonly hooks: HooksOf },
): Verifier {
  const { runtime, tools } = services;
  // Where tools only give what was recorded of them, nothing is run.
  const { verify: _verify, ...unchecked } = made;
  const plan: AgentPlan = runtime.runsChecks === false ? unchecked : made;
  const bash = tools.tools.find(({ name }) => name === "Bash");
  const place = { directory: plan.directory, environment: runtime.environment, trusted: runtime.trusted };
  const digest = digestOf(own.definition);
  let kind: TreeView["kind"] | undefined;
  const common = {
    plan,
    definition: digest,
    bash,
    now: runtime.now,
    output: own.output,
    look: async (changed: readonly string[], signal: AbortSignal, base?: TreeView) => {
      const { lookAtTree } = await import("./look-at-tree.ts");
      const view = await lookAtTree({ ...place, changed, signal, kind, base });
      kind ??= view.kind;
      return view;
    },
    changedBetween: async (before: TreeView, after: TreeView, signal: AbortSignal) =>
      (await import("./look-at-tree.ts")).changedBetween({ ...place, signal }, before, after),
  };
  return createVerifier({
    ...common,
    ...(plan.verify === undefined ? unused : asking(plan, services, { ...own, hooks })),
  });
}

/** Checks of the person in another working tree of the session, beside any agent, by the rules of the main one. */
export function openChecks(
  main: AgentPlan,
  tree: WorktreePlace,
  { services, stopwatch }: { readonly services: AgentServices; readonly stopwatch: AgentOwn["stopwatch"] },
): CheckRunner {
  const { cwd: _cwd, ...elsewhere } = main;
  const plan = inWorktree({ ...elsewhere, agent: { id: "merge", name: "merge" } }, tree);
  const bash = services.tools.tools.find(({ name }) => name === "Bash");
  return createCheckRunner({
    plan,
    bash,
    now: services.runtime.now,
    ...asking(plan, services, { stopwatch }),
  });
}

/** The hooks of the agent, which are opened after its verifier. */
type HooksOf = () => Pick<SessionHooks, "wrapAuthorize"> | undefined;

type Asking = Pick<VerifierParts, "authorize" | "context">;

/** Without checks nothing is decided about and nothing is run. */
const unused: Asking = {
  authorize: async () => ({ type: "denied", reason: "no check is named" }),
  context: () => {
    throw new Error("No check is named.");
  },
};

/** A check is the command of its author: of the person, or of the agent whose call it was. */
function asking(
  plan: AgentPlan,
  services: AgentServices,
  { hooks, ...own }: Pick<AgentOwn, "stopwatch" | "child"> & { readonly hooks?: HooksOf },
): Asking {
  const { runtime, acceptedFiles } = services;
  const directory = () => startOf(plan);
  const askAs = (toolScopes: AgentPlan["policy"]["toolScopes"]) => {
    const asked: AgentPlan = { ...plan, policy: { ...plan.policy, toolScopes } };
    const people = approvalRouting(asked, services, { ...own, directory });
    const context: Asking["context"] = (callId, signal) =>
      people.toolContext({ callId, signal, progress: () => undefined });
    const authorize = createAuthorize({
      ...people,
      plan: asked,
      directory,
      acceptedFiles: acceptedFiles.forAgent(plan.agent.id, plan.task?.parentId),
      ...(runtime.live?.policy === undefined ? {} : { livePolicy: runtime.live.policy }),
    });
    return { context, authorize };
  };
  const person = askAs([]);
  const caller = askAs(callerScopes(plan));
  // Hooks are notified of what a model runs, also where it has the runtime run it.
  const ofCaller: LoopPorts["authorize"] = (request, options) =>
    (hooks?.()?.wrapAuthorize(caller.authorize) ?? caller.authorize)(request, options);
  return {
    context: person.context,
    authorize: ({ ofModel }, request, options) =>
      (ofModel === true ? ofCaller : person.authorize)(request, options),
  };
}

/** A model names only what it could run itself, or what the agent that it starts could. */
function callerScopes({ policy: { toolScopes = [] } }: AgentPlan): AgentPlan["policy"]["toolScopes"] {
  const above = toolScopes.slice(0, -1);
  return above.at(-1)?.tools.some(({ name }) => name === "Bash") === true ? above : toolScopes;
}

/** The same definition has the same digest on every machine. */
export function digestOf(definition: PlannedDefinition | undefined): string | undefined {
  if (definition === undefined) return undefined;
  const { source: _source, ...fields } = definition;
  return createHash("sha256").update(JSON.stringify(fields)).digest("hex").slice(0, 16);
}
