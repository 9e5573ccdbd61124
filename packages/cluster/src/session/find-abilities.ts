// @io
import { tmpdir } from "node:os";
import { createRuntime } from "@retinue/core/kernel/create-runtime.ts";
import { chooseAdapter } from "@retinue/core/models/model-factory.ts";
import {
  type Environment,
  factorySettings,
  findProvider,
  knownProviders,
} from "@retinue/core/models/provider-entry.ts";
import type { ProgramFunction } from "@retinue/core/planning/agent-plan.ts";
import { anyModelNeed, functionNeeds, providerNeed, serverNeed } from "./plan-needs.ts";
import { planFormat, workflowFormat } from "./session-plan.ts";
import type { WorkerRuntimeOptions } from "./session-work.ts";

/** What a worker has for plans that need it: tools, hooks, servers and models, those of its settings files too. */
export async function findAbilities(options: WorkerRuntimeOptions): Promise<readonly string[]> {
  await using runtime = createRuntime({ ...options, cwd: tmpdir(), transcripts: false });
  await using session = await runtime.open({ planOnly: true });
  const { settings } = session.discovered.settings;
  const environment = { ...(options.env ?? process.env), ...Object.fromEntries(settings.env) };
  const servers = session
    .mcpServers()
    .flatMap(({ name, status }) => (status.type === "held" ? [] : [serverNeed(name)]));
  const providers = providersWithKeys(environment, settings.plain.apiKeyHelper !== undefined);
  const hasModel = options.model !== undefined || providers.length > 0;
  return [
    ...programFunctions(options).flatMap(functionNeeds),
    planFormat,
    workflowFormat,
    ...servers,
    ...providers.map(providerNeed),
    providerNeed("offline"),
    ...(hasModel ? [anyModelNeed] : []),
  ];
}

/** The functions that the program of this worker brings. */
function programFunctions(options: WorkerRuntimeOptions): readonly ProgramFunction[] {
  const { model, hooks = [], mcpServers = {}, canUseTool, host } = options;
  return [
    ...toolNames(options.tools).map((name) => ({ kind: "tool", name }) as const),
    ...hooks.map(({ event, name }) => ({ kind: "hook", name: name ?? event }) as const),
    ...Object.keys(mcpServers).map((name) => ({ kind: "server", name }) as const),
    ...(canUseTool === undefined ? [] : [{ kind: "canUseTool", name: "canUseTool" } as const]),
    ...(host?.ask === undefined ? [] : [{ kind: "ask", name: "host.ask" } as const]),
    ...(typeof model === "object" && "facts" in model
      ? [{ kind: "model", name: model.facts.id } as const]
      : []),
  ];
}

/** The tools that the program itself brings; names only say which built-in ones exist. */
function toolNames(tools: WorkerRuntimeOptions["tools"] = []): readonly string[] {
  if (!Array.isArray(tools)) return Object.keys(tools);
  return tools.flatMap((tool: string | { readonly name: string }) =>
    typeof tool === "string" ? [] : [tool.name],
  );
}

function providersWithKeys(environment: Environment, hasHelper: boolean): readonly string[] {
  const anthropic = chooseAdapter({ id: "", provider: "anthropic" }, environment, hasHelper);
  const others = knownProviders().filter((name) => {
    const entry = findProvider(name, environment);
    if (entry === undefined) return false;
    // A server on this machine needs no key; its address says that it is used.
    const needsKey = entry.settings.some(({ required }) => required === true);
    const isNamed = entry.settings.some(({ variables }) => variables.some((key) => isSet(environment[key])));
    return needsKey ? factorySettings(entry, environment).missing.length === 0 : isNamed;
  });
  return [...(anthropic.adapter === "none" ? [] : ["anthropic"]), ...others];
}

function isSet(value: string | undefined): boolean {
  return value !== undefined && value.trim() !== "";
}
