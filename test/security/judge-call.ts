import { findMemory } from "../../src/context/find-memory.ts";
import { agentScopes } from "../../src/definitions/agent-definition.ts";
import { builtinAgents } from "../../src/definitions/builtin/builtin-agents.ts";
import { defineAgent } from "../../src/definitions/define-agent.ts";
import { createRegistry } from "../../src/definitions/registry.ts";
import { childPolicy } from "../../src/permissions/child-policy.ts";
import { type DecideOptions, decide, type PermissionPolicy } from "../../src/permissions/decide.ts";
import { gatherCallFacts } from "../../src/permissions/gather-call-facts.ts";
import type { McpIdentity } from "../../src/permissions/mcp-identity.ts";
import { parsePermissionMode } from "../../src/permissions/permission-mode.ts";
import { createPaths } from "../../src/settings/paths.ts";
import { builtinTools } from "../../src/tools/builtin-tools.ts";
import type { AvailableTool } from "../../src/tools/match-tools.ts";
import { grantTools, type SpawnRule } from "../../src/tools/tool-grants.ts";
import { fieldsOf, mainPolicy, mergeCaseSettings, texts } from "./case-policy.ts";
import type { Answer, Fields, Roots, SecurityCase } from "./security-case.ts";

/** Decides about a call of the main agent or of a child, as the runtime would. */
export async function judgeCall(
  testCase: SecurityCase,
  roots: Roots,
  change: { readonly input?: unknown; readonly addresses?: readonly string[] } = {},
): Promise<Answer> {
  const context = testCase.context ?? {};
  const settings = mergeCaseSettings(testCase, roots);
  if (settings.brokenRestrictions.length > 0) return "deny";
  const main = giveTools(mainPolicy(testCase, settings, roots), testCase, roots);
  const policy =
    testCase.surface === "subagent_tool_call" ? await childOf(main.policy, testCase, roots) : main.policy;
  const hook = fieldsOf(context["preToolUseHook"]);
  const tool = testCase.tool ?? "";
  const input = hook["updatedInput"] ?? change.input ?? testCase.input;
  const agentType = agentTypeOf(input, context);
  if (tool === "Agent" && refusesAgent(input, agentType, { spawn: main.spawn, context })) return "deny";
  const mcp = mcpOf(context["mcp"]);
  const request = await gatherCallFacts(
    {
      tool,
      effect: toolsOf(testCase).find(({ name }) => name === tool)?.effect ?? "execute",
      input,
      ...(mcp === undefined ? {} : { mcp }),
      ...(agentType === undefined ? {} : { agentType }),
      ...(change.addresses === undefined ? {} : { addresses: change.addresses }),
    },
    { policy, directory: testCase.cwd ?? roots.P },
  );
  return decide(request, policy, { attended: testCase.interactive !== false, ...hookWord(hook) }).type;
}

function toolsOf({ tool, context }: SecurityCase): readonly AvailableTool[] {
  const builtin = builtinTools.map(({ name, effect }) => ({ name, effect, origin: "builtin" as const }));
  const { server } = mcpOf(context?.["mcp"]) ?? {};
  return server === undefined || tool === null
    ? builtin
    : [...builtin, { name: tool, effect: "execute", origin: "mcp", server }];
}

function giveTools(
  policy: PermissionPolicy,
  testCase: SecurityCase,
  roots: Roots,
): { readonly policy: PermissionPolicy; readonly spawn: SpawnRule } {
  const agent = testCase.context?.["mainAgent"];
  const definition = agent === undefined ? {} : { tools: texts(fieldsOf(agent)["tools"]) };
  const grant = grantTools({ definition, available: toolsOf(testCase), role: "main" });
  const tools = grant.type === "granted" ? grant.tools : [];
  return {
    policy: { ...policy, toolScopes: [{ anchor: roots.P, tools }] },
    spawn: grant.type === "granted" ? grant.spawn : "none",
  };
}

async function childOf(
  parent: PermissionPolicy,
  testCase: SecurityCase,
  roots: Roots,
): Promise<PermissionPolicy> {
  const context = testCase.context ?? {};
  const agent = fieldsOf(context["agent"]);
  const memory = await findCaseMemory(agent, testCase, roots);
  const grant = grantTools({
    definition: {
      ...(agent["tools"] === undefined ? {} : { tools: texts(agent["tools"]) }),
      ...(agent["disallowedTools"] === undefined ? {} : { disallowedTools: texts(agent["disallowedTools"]) }),
      ...(memory === undefined ? {} : { memory: memory.scope }),
    },
    available: toolsOf(testCase),
    role: "subagent",
  });
  const mode = parsePermissionMode(String(agent["permissionMode"] ?? ""));
  const spawn = fieldsOf(context["spawnInput"]);
  const asked = parsePermissionMode(String(spawn["mode"] ?? ""));
  return childPolicy(parent, {
    definition: { mode, scope: String(agent["scope"] ?? "project") },
    ...(asked === undefined ? {} : { call: { mode: asked, by: "model" } }),
    background: spawn["run_in_background"] === true || context["background"] === true,
    tools: {
      anchor: roots.P,
      tools: grant.type === "granted" ? grant.tools : [],
      ...(memory === undefined ? {} : { memoryDirectory: memory.directory }),
    },
  });
}

async function findCaseMemory(agent: Fields, { trusted = true }: SecurityCase, { P, H }: Roots) {
  const memory = (["user", "project", "local"] as const).find((scope) => scope === agent["memory"]);
  const scope = agentScopes.find((each) => each === agent["scope"]) ?? "project";
  const { place } = await findMemory({
    definition: {
      name: String(agent["name"]),
      source: { scope },
      ...(memory === undefined ? {} : { memory }),
    },
    paths: createPaths({ home: H, cwd: P, environment: {}, platform: "linux" }),
    trusted,
  });
  return place;
}

function agentTypeOf(input: unknown, context: Fields): string | undefined {
  const id = fieldsOf(input)["resume"];
  const transcripts = fieldsOf(context["transcripts"]);
  if (typeof id !== "string" || !Object.hasOwn(transcripts, id)) return undefined;
  const type = fieldsOf(transcripts[id])["type"];
  return typeof type === "string" ? type : undefined;
}

function refusesAgent(
  input: unknown,
  resumed: string | undefined,
  { spawn, context }: { readonly spawn: SpawnRule; readonly context: Fields },
): boolean {
  const type = resumed ?? fieldsOf(input)["subagent_type"] ?? "general-purpose";
  if (typeof type !== "string" || spawn === "none") return true;
  if (typeof spawn === "object" && !spawn.only.includes(type)) return true;
  const named = texts(context["agents"]).map((name) =>
    defineAgent({ name, description: "It works.", prompt: "Work." }),
  );
  return createRegistry({ definitions: [...builtinAgents(), ...named] }).find(type).type !== "found";
}

function mcpOf(value: unknown): McpIdentity | undefined {
  const { server, tool, definitionHash, approvedHash } = fieldsOf(value);
  if (typeof server !== "string" || typeof tool !== "string") return undefined;
  return {
    server,
    tool,
    ...(approvedHash !== undefined && approvedHash !== definitionHash ? { isChanged: true } : {}),
  };
}

function hookWord(hook: Fields): Pick<DecideOptions, "hooks"> {
  const word =
    hook["exitCode"] === 2 || hook["decision"] === "block" || hook["continue"] === false
      ? "deny"
      : hook["permissionDecision"];
  return word === "allow" || word === "ask" || word === "deny" ? { hooks: word } : {};
}
