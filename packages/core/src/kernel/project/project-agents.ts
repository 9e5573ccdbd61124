import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { escapeLine } from "@retinue/base/foundation/escape-control-tags.ts";
import { firstSentence } from "@retinue/base/foundation/first-sentence.ts";
import type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
import { noSuchAgent, type RegisteredAgent } from "@retinue/config/agents/agent-registry.ts";
import type { AgentScope } from "@retinue/config/agents/agent-source.ts";
import { toolsPhrase } from "@retinue/config/agents/describe-agents.ts";
import type { AgentField } from "./agent-fields.ts";
import type { CreateAgentOptions, CreatedAgent, NewAgent, NewScope } from "./new-agent.ts";
import type { ProjectFacts } from "./project-facts.ts";

export type { AgentDefinition } from "@retinue/config/agents/agent-definition.ts";
export type { RegisteredAgent } from "@retinue/config/agents/agent-registry.ts";

/** A definition in a few words. */
export interface AgentSummary {
  readonly definition: AgentDefinition;
  readonly model: string;
  readonly tools: string;
  /** The first sentence of the description. */
  readonly about: string;
}

export interface ListedAgent extends AgentSummary {
  readonly id: string;
  /** Definitions of the same name that it takes precedence over. */
  readonly shadowed: readonly AgentSummary[];
  /** The deny rule that hides it. */
  readonly deniedBy?: string;
}

export interface AgentList {
  readonly agents: readonly ListedAgent[];
  /** How many there are besides the built-in ones, and how many deny rules hide. */
  readonly own: number;
  readonly hidden: number;
  readonly diagnostics: readonly Diagnostic[];
}

export interface AgentDetails {
  readonly agent: RegisteredAgent;
  /** What holds for it: what is written, and the defaults that matter. */
  readonly fields: readonly AgentField[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface AgentCheck {
  readonly files: readonly string[];
  readonly diagnostics: readonly Diagnostic[];
}

export interface AgentQueryOptions {
  /** How paths are shown; as they are when left out. */
  readonly pathText?: (file: string) => string;
}

/** What can be asked about the agents of a folder. Files are read anew each time. */
export interface ProjectAgents {
  /** Those that can be started, highest scope first; with `all` also those that a deny rule hides. */
  list(options?: { readonly all?: boolean }): Promise<AgentList>;
  /** One agent with everything that holds for it. */
  get(name: string, options?: AgentQueryOptions): Promise<AgentDetails>;
  /** Every mistake in definitions, settings, plugins, servers and instructions; with paths, in those files alone. */
  check(paths?: readonly string[]): Promise<AgentCheck>;
  /** Writes a new agent file that passes the check. */
  create(agent: NewAgent, options?: CreateAgentOptions): Promise<CreatedAgent>;
  /** The folder in which a new agent would be written. */
  newFolder(scope: NewScope): Promise<string>;
}

/** Its methods load what only they need. */
export function projectAgents(gather: () => Promise<ProjectFacts>): ProjectAgents {
  return {
    list: async ({ all = false } = {}) => listAgents(await gather(), all),
    async get(name, { pathText = (file: string) => file } = {}) {
      const [{ describeFields }, { problemsOf }, facts] = await Promise.all([
        import("./agent-fields.ts"),
        import("./check-everything.ts"),
        gather(),
      ]);
      const agent = findAgent(name, facts);
      return {
        agent,
        fields: describeFields(agent.definition, { ...facts, pathText }),
        diagnostics: problemsOf(agent.definition, facts),
      };
    },
    check: async (paths = []) => {
      const [{ checkEverything, checkPaths }, facts] = await Promise.all([
        import("./check-everything.ts"),
        gather(),
      ]);
      return paths.length === 0 ? checkEverything(facts) : checkPaths(facts, paths);
    },
    async create(agent, options) {
      const [{ createAgent }, facts] = await Promise.all([import("./new-agent.ts"), gather()]);
      return createAgent(facts, agent, options);
    },
    async newFolder(scope) {
      const [{ newAgentFolder }, facts] = await Promise.all([import("./new-agent.ts"), gather()]);
      return newAgentFolder(facts, scope);
    },
  };
}

export const scopeWords: Readonly<Record<AgentScope, string>> = {
  managed: "managed",
  session: "session",
  project: "project",
  user: "user",
  plugin: "plugin",
  builtin: "built-in",
};

function listAgents({ discovered: { registry, diagnostics } }: ProjectFacts, all: boolean): AgentList {
  const every = registry.all();
  const visible = registry.list();
  return {
    agents: (all ? every : visible).map(({ id, definition, shadowed, deniedBy }) => ({
      id,
      ...summarize(definition),
      shadowed: shadowed.map(summarize),
      ...(deniedBy === undefined ? {} : { deniedBy }),
    })),
    own: every.filter(({ definition }) => definition.source.scope !== "builtin").length,
    hidden: every.filter(({ deniedBy }) => deniedBy !== undefined).length,
    diagnostics,
  };
}

function summarize(definition: AgentDefinition): AgentSummary {
  return {
    definition,
    model: escapeLine(definition.model ?? "inherit"),
    tools: toolsPhrase(definition),
    about: firstSentence(escapeLine(definition.description)),
  };
}

function findAgent(name: string, { discovered }: ProjectFacts): RegisteredAgent {
  const found = discovered.registry.find(name);
  if (found.type === "unknown") throw noSuchAgent(name, found);
  return found.agent;
}
