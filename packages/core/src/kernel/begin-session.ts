import { placeText } from "@retinue/base/foundation/diagnostic.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import type { DiscoveredAgents } from "@retinue/config/discovery/discover-agents.ts";
import { losesHook } from "@retinue/config/hooks/read-hooks.ts";
import { findChoices } from "../journal/session-choices.ts";
import { sessionFiles } from "../journal/session-files.ts";
import { type OpenSessionParts, openSession } from "./open-session.ts";
import { chooseSession } from "./open-transcript.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import { connectSessionServers } from "./servers/connect-session-servers.ts";
import { createPromptTool } from "./servers/session-servers.ts";
import type { Session } from "./session.ts";
import { refuseBrokenRestrictions } from "./session-rules.ts";
/** Opens a session while its MCP servers are connected; where it cannot be opened, they end again. */
export async function beginSession<Output>(
  runtime: RuntimeContext,
  given: SessionSetup<Output>,
  { loadRegistry, signal }: Pick<OpenSessionParts, "loadRegistry" | "signal">,
): Promise<Session<Output>> {
  refuseBrokenRestrictions(runtime.discovered.settings);
  const options = await withEarlierChoices(runtime, given);
  const stop = new AbortController();
  const definition = findMainAgent(runtime.discovered, options.agent);
  const planOnly = options.planOnly === true;
  if (!planOnly) {
    if (runtime.live?.showsTrust !== true) {
      reportChanges(runtime);
      reportHeldHooks(runtime);
    }
    reportLostHooks(runtime);
  }
  const servers = connectSessionServers(runtime, {
    definition,
    planOnly,
    sessionId: options.sessionId ?? options.resume ?? "",
    signal: AbortSignal.any([signal, stop.signal]),
  });
  const ended = servers.catch(() => undefined);
  const { permissionPromptTool: asked } = options;
  const around = asked === undefined ? runtime : { ...runtime, canUseTool: createPromptTool(asked, servers) };
  try {
    return await openSession(around, options, { definition, loadRegistry, servers, signal });
  } catch (error) {
    stop.abort(error);
    await (await ended)?.[Symbol.asyncDispose]();
    throw error;
  }
}

/** The agent that is the main thread, where the call or settings name one. */
function findMainAgent(
  { registry, settings }: DiscoveredAgents,
  named: string | undefined,
): AgentDefinition | undefined {
  const name = named ?? settings.settings.plain.agent;
  if (name === undefined || name === "") return undefined;
  const found = registry.find(name);
  if (found.type === "found") return found.agent.definition;
  if (found.type === "denied") {
    throw new RetinueError(
      "agent-denied",
      `The agent ${JSON.stringify(name)} is denied by the rule ${found.rule}.`,
    );
  }
  const near = found.nearest === undefined ? "" : ` Did you mean ${found.nearest}?`;
  throw new RetinueError("unknown-agent", `There is no agent ${JSON.stringify(name)}.${near}`, {
    advice: `There are ${found.available.join(", ")}.`,
  });
}

/** What was accepted is not what is there now, and nobody can be asked here. */
function reportChanges({ changed, notice }: Pick<RuntimeContext, "changed" | "notice">): void {
  if (changed === undefined) return;
  notice?.(
    `This folder counts as not trusted, because ${changed}. \`retinue trust\` shows what changed and asks; \`retinue agents lock\` accepts it for everybody.`,
  );
}

/** A hook may be there to refuse something, so that it does not run is never silent. */
function reportHeldHooks({ discovered, notice }: Pick<RuntimeContext, "discovered" | "notice">): void {
  const held = discovered.settings.settings.heldBack.filter(
    ({ key, reason }) => reason === "folder-not-trusted" && key.startsWith("hooks."),
  );
  if (held.length === 0) return;
  const files = [...new Set(held.map(({ source }) => source.file ?? source.scope))].join(", ");
  const hooks = held.length === 1 ? "1 hook does" : `${held.length} hooks do`;
  notice?.(
    `${hooks} not run, because this folder is not trusted (${files}). \`retinue trust\`, or /trust in the terminal, shows what waits; --trust lets it run once.`,
  );
}

/** So is one that cannot be read, or that nothing can match. */
function reportLostHooks({ discovered, notice }: Pick<RuntimeContext, "discovered" | "notice">): void {
  for (const diagnostic of discovered.settings.diagnostics.filter(losesHook)) {
    const place = diagnostic.file === undefined ? "" : `${placeText(diagnostic)}: `;
    notice?.([`${place}${diagnostic.message}`, diagnostic.advice ?? ""].join(" ").trim());
  }
}

/** The options with the agent and model of the session that is resumed, where they name none themselves. */
async function withEarlierChoices<Output>(
  { discovered, ids }: RuntimeContext,
  options: SessionSetup<Output>,
): Promise<SessionSetup<Output>> {
  if (options.resume === undefined && options.continue !== true) return options;
  const { transcripts } = discovered.paths;
  const { from } = await chooseSession(options, transcripts, ids);
  if (from === undefined) return options;
  const { agent, model } = await findChoices(sessionFiles(transcripts, from).transcript);
  if (options.agent === undefined && agent !== undefined && agent !== "") {
    refuseLostAgent(discovered.registry.find(agent).type, agent);
  }
  // By its id the session is found again immediately, and is the same one even if another was written to meanwhile.
  return {
    agent,
    model,
    ...options,
    resume: from,
  };
}

/** Without its agent the session would continue with other rights than it had. */
function refuseLostAgent(found: "found" | "denied" | "unknown", agent: string): void {
  if (found === "found") return;
  const what = found === "denied" ? "is denied by a rule now" : "no longer exists";
  throw new RetinueError(
    "unknown-agent",
    `The session ran as the agent ${JSON.stringify(agent)}, which ${what}.`,
    {
      advice: 'Name another with --agent, or none with --agent "".',
    },
  );
}
