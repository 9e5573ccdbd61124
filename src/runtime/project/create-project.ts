import { createPaths, type Paths } from "../../settings/paths.ts";
import type { ProjectAgents } from "./project-agents.ts";
import type { ProjectFacts, ProjectOptions } from "./project-facts.ts";
import type { ProjectMcp } from "./project-mcp.ts";
import type { ProjectPermissions } from "./project-permissions.ts";
import type { ProjectSkills } from "./project-skills.ts";
import type { ProjectTasks } from "./project-tasks.ts";
import type { ProjectTrust } from "./project-trust.ts";

/** Everything about a folder that can be looked at and changed without running an agent. */
export interface Project {
  readonly agents: ProjectAgents;
  readonly skills: ProjectSkills;
  readonly permissions: ProjectPermissions;
  readonly mcp: ProjectMcp;
  readonly tasks: ProjectTasks;
  readonly trust: ProjectTrust;
}

/** Where a project's facts come from; each question asks anew. */
export interface ProjectSource {
  facts(): Promise<ProjectFacts>;
  /** Where everything is, without reading any of it. */
  paths(): Promise<Paths>;
}

/** Each group is loaded with the first question to it. */
export function createProject({ facts, paths }: ProjectSource): Project {
  const agents = async () => (await import("./project-agents.ts")).projectAgents(facts);
  const skills = async () => (await import("./project-skills.ts")).projectSkills(facts);
  const permissions = async () => (await import("./project-permissions.ts")).projectPermissions(facts);
  const mcp = async () => (await import("./project-mcp.ts")).projectMcp(facts);
  const trust = async () => (await import("./project-trust.ts")).projectTrust(facts);
  const tasks = async () => (await import("./project-tasks.ts")).projectTasks(paths);
  return {
    agents: {
      list: async (options) => (await agents()).list(options),
      get: async (name, options) => (await agents()).get(name, options),
      check: async (given) => (await agents()).check(given),
      create: async (agent, options) => (await agents()).create(agent, options),
      newFolder: async (scope) => (await agents()).newFolder(scope),
    },
    skills: {
      list: async () => (await skills()).list(),
      check: async () => (await skills()).check(),
    },
    permissions: {
      list: async () => (await permissions()).list(),
      test: async (call, options) => (await permissions()).test(call, options),
    },
    mcp: {
      list: async (options) => (await mcp()).list(options),
      get: async (name) => (await mcp()).get(name),
      add: async (server) => (await mcp()).add(server),
      remove: async (name, options) => (await mcp()).remove(name, options),
      approve: async (name) => (await mcp()).approve(name),
      reject: async (name) => (await mcp()).reject(name),
      resetChoices: async () => (await mcp()).resetChoices(),
    },
    trust: {
      show: async (options) => (await trust()).show(options),
      grant: async () => (await trust()).grant(),
      revoke: async () => (await trust()).revoke(),
    },
    tasks: {
      list: async (options) => (await tasks()).list(options),
      get: async (written) => (await tasks()).get(written),
      stop: async (written, options) => (await tasks()).stop(written, options),
      async *log(written, options) {
        yield* (await tasks()).log(written, options);
      },
      interrupted: async () => (await tasks()).interrupted(),
    },
  };
}

/** The folders and files of a project, by its options alone. */
export function projectPaths({ cwd, home, env, platform }: ProjectOptions): Paths {
  return createPaths({ cwd, home, environment: env, platform });
}
