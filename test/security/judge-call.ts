import { findSameSpelling } from "@retinue/config/mcp/refuse-server-name.ts";
import { createRuleGrants } from "@retinue/core/kernel/agent/create-authorize.ts";
import { createCallHooks } from "@retinue/core/kernel/hooks/call-hooks.ts";
import type { Authorization, CallRequest } from "@retinue/core/loop/loop-ports.ts";
import type { AgentPlan } from "@retinue/core/planning/agent-plan.ts";
import { createSandbox } from "@retinue/core/tools/sandbox/sandbox.ts";
import { createSandboxRuntime } from "@retinue/core/tools/sandbox/sandbox-runtime.ts";
import { readSandboxSettings } from "@retinue/core/tools/sandbox/sandbox-settings.ts";
import type { Tool } from "@retinue/core/tools/tool.ts";
import { type DecideOptions, decide, type PermissionPolicy } from "@retinue/gate/decide.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { openCaseHooks } from "./case-hooks.ts";
import { availableTools, mcpOf, planCase, registryOf } from "./case-plan.ts";
import { fieldsOf, mergeCaseSettings, sandboxSettings, texts } from "./case-settings.ts";
import { type Answer, type Fields, isFields, type Roots, type SecurityCase } from "./security-case.ts";

export interface JudgedCall {
  /** In the place of the case's own input. */
  readonly input?: unknown;
  /** The addresses that the host of the call is found at. */
  readonly addresses?: readonly string[];
  /** Rules that hold beside those of the session. */
  readonly rights?: Pick<PermissionPolicy, "allow" | "deny">;
}

/** Decides about a call of the main agent or of a child, as the runtime would: hooks, rules, hooks that answer. */
export async function judgeCall(
  testCase: SecurityCase,
  roots: Roots,
  judged: JudgedCall = {},
): Promise<Answer> {
  const { context = {}, tool = "" } = testCase;
  const settings = await mergeCaseSettings(testCase, roots);
  if (settings.brokenRestrictions.length > 0 || hasAmbiguousServers(context)) return "deny";
  const planned = await planCase(testCase, settings, roots);
  if (planned.type === "refused") return "deny";
  const plan = context["background"] === true ? inBackground(planned.plan) : planned.plan;
  const input = judged.input ?? testCase.input;
  if (tool === "Agent" && refusesAgent(input, plan, context)) return "deny";
  await using runner = await openCaseHooks(testCase, roots);
  const hooks = createCallHooks({
    runner,
    situation: async (signal) => ({ signal, cwd: plan.directory, permissionMode: plan.policy.mode }),
    report: () => undefined,
    wantStop: () => undefined,
    grants: createRuleGrants(plan.directory, "a hook"),
  });
  let asked = false;
  const authorize = hooks.wrapAuthorize(async (request, { hooks: word }): Promise<Authorization> => {
    const decided = await decideCall(request, { testCase, plan, judged, hooks: word });
    if (decided !== "ask") return decided === "allow" ? allowed(request.input) : denied;
    const answer = await hooks.beforeAsk(request, { signal });
    if (answer?.behavior === "deny") return denied;
    if (answer?.behavior === "allow") {
      if (answer.updatedInput === undefined) return allowed(request.input);
      const again = { ...request, input: answer.updatedInput };
      return (await decideCall(again, { testCase, plan, judged, hooks: word })) === "deny"
        ? denied
        : allowed(again.input);
    }
    asked = true;
    return denied;
  });
  const authorization = await authorize(requestOf(testCase, input), { signal });
  if (authorization.type === "allowed")
    return (await isRunnable(context, authorization.input)) ? "allow" : "deny";
  return asked ? "ask" : "deny";
}

function inBackground(plan: AgentPlan): AgentPlan {
  return { ...plan, policy: { ...plan.policy, background: true } };
}

const signal = new AbortController().signal;
const denied: Authorization = { type: "denied", reason: "" };
const allowed = (input: unknown): Authorization => ({ type: "allowed", input });

function requestOf(testCase: SecurityCase, input: unknown): CallRequest {
  const name = testCase.tool ?? "";
  const { effect = "execute", origin = "builtin" } =
    availableTools(testCase).find((available) => available.name === name) ?? {};
  const tool: Tool = { name, description: "", effect, origin, call: async () => ({ content: "" }) };
  return { call: { type: "tool_use", id: "call", name, input }, tool, input };
}

async function decideCall(
  { tool, input }: CallRequest,
  {
    testCase,
    plan,
    judged,
    hooks,
  }: {
    readonly testCase: SecurityCase;
    readonly plan: AgentPlan;
    readonly judged: JudgedCall;
    readonly hooks: DecideOptions["hooks"];
  },
): Promise<Answer> {
  const { context = {}, interactive = true } = testCase;
  const { allow = [], deny = [] } = judged.rights ?? {};
  const policy = {
    ...plan.policy,
    allow: [...plan.policy.allow, ...allow],
    deny: [...plan.policy.deny, ...deny],
  };
  const mcp = mcpOf(context["mcp"]);
  const agentType = agentTypeOf(input, context);
  const { addresses } = judged;
  const request = await gatherCallFacts(
    {
      tool: tool.name,
      effect: tool.effect,
      input,
      mcp,
      agentType,
      addresses,
    },
    { policy, directory: plan.directory },
  );
  return decide(request, policy, { attended: interactive, hooks }).type;
}

/** Servers whose tools would have the same names are not connected, so there is no tool to call. */
function hasAmbiguousServers(context: Fields): boolean {
  const configured = texts(context["configured"]);
  return configured.some((name, at) => findSameSpelling(name, configured.slice(0, at)) !== undefined);
}

/** A command that settings want in a sandbox runs only where there is one, or where they say that it need not be. */
async function isRunnable({ sandbox }: Fields, input: unknown): Promise<boolean> {
  const { available, supported, installed, works, unavailable } = fieldsOf(sandbox);
  const isMissing = [available, supported, installed, works].includes(false) || unavailable === true;
  if (!isFields(sandbox) || !isMissing) return true;
  const { command } = fieldsOf(input);
  if (typeof command !== "string") return true;
  await using runtime = createSandboxRuntime({ load: () => Promise.reject(new Error("not here")) });
  const settings = readSandboxSettings(sandboxSettings(sandbox));
  const wrap = await createSandbox({ runtime, settings, home: "/", deny: [] })?.wrap(
    { file: "/bin/bash", arguments: [] },
    { signal, command, workingDirectories: ["/"] },
  );
  return wrap?.type !== "refused";
}

function agentTypeOf(input: unknown, context: Fields): string | undefined {
  const id = fieldsOf(input)["resume"];
  const transcripts = fieldsOf(context["transcripts"]);
  if (typeof id !== "string" || !Object.hasOwn(transcripts, id)) return undefined;
  const type = fieldsOf(transcripts[id])["type"];
  return typeof type === "string" ? type : undefined;
}

function refusesAgent(input: unknown, { spawn }: AgentPlan, context: Fields): boolean {
  const type = agentTypeOf(input, context) ?? fieldsOf(input)["subagent_type"] ?? "general-purpose";
  if (typeof type !== "string" || spawn === "none") return true;
  if (typeof spawn === "object" && !spawn.only.includes(type)) return true;
  return registryOf(context).find(type).type !== "found";
}
