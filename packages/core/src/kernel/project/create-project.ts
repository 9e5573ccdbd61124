import { createPaths, type Paths } from "@retinue/config/settings/paths.ts";

export type { Paths } from "@retinue/config/settings/paths.ts";

import type { ProjectAgents } from "./project-agents.ts";
import type { ProjectDoctor } from "./project-doctor.ts";
import type { ProjectFacts, ProjectOptions } from "./project-facts.ts";
import type { ProjectMcp } from "./project-mcp.ts";
import type { ProjectPermissions } from "./project-permissions.ts";
import type { ProjectPlugins } from "./project-plugins.ts";
import type { ProjectSessions } from "./project-sessions.ts";
import type { ProjectSkills } from "./project-skills.ts";
import type { ProjectTasks } from "./project-tasks.ts";
import type { ProjectTeams } from "./project-teams.ts";
import type { ProjectTrust } from "./project-trust.ts";

/** Everything about a folder that can be looked at and changed without running an agent. */
export interface Project {
  readonly agents: ProjectAgents;
  readonly skills: ProjectSkills;
  readonly permissions: ProjectPermissions;
  readonly mcp: ProjectMcp;
  readonly tasks: ProjectTasks;
  readonly trust: ProjectTrust;
  readonly sessions: ProjectSessions;
  readonly teams: ProjectTeams;
  readonly plugins: ProjectPlugins;
  readonly doctor: ProjectDoctor;
}

/** Where a project's facts come from; each question asks anew. */
export interface ProjectSource {
  facts(): Promise<ProjectFacts>;
  /** Where everything of the folder is, or of another one, without reading any of it. */
  paths(cwd?: string): Promise<Paths>;
  place(): Promise<Pick<ProjectOptions, "cwd" | "home" | "env" | "platform">>;
}

/** Each group is loaded with the first question to it. */
export function createProject(source: ProjectSource): Project {
  return { ...configuredGroups(source), ...recordedGroups(source) };
}

/** What people wrote for agents: definitions, rules, servers, plugins. */
function configuredGroups({ facts, paths }: ProjectSource): Omit<Project, "sessions" | "tasks" | "teams"> {
  const agents = async () => (await import("./project-agents.ts")).projectAgents(facts);
  const skills = async () => (await import("./project-skills.ts")).projectSkills(facts);
  const permissions = async () => (await import("./project-permissions.ts")).projectPermissions(facts);
  const mcp = async () => (await import("./project-mcp.ts")).projectMcp(facts);
  const trust = async () => (await import("./project-trust.ts")).projectTrust(facts);
  const plugins = async () => (await import("./project-plugins.ts")).projectPlugins(facts, paths);
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
      get: async (name, options) => (await mcp()).get(name, options),
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
    plugins: {
      list: async () => (await plugins()).list(),
      enable: async (name, options) => (await plugins()).enable(name, options),
      disable: async (name, options) => (await plugins()).disable(name, options),
      validate: async (path) => (await plugins()).validate(path),
    },
    doctor: {
      check: async (options) => (await import("./project-doctor.ts")).projectDoctor(facts).check(options),
    },
  };
}

/** What agents have left behind: sessions, children, teams. */
function recordedGroups({ paths, place }: ProjectSource): Pick<Project, "sessions" | "tasks" | "teams"> {
  const tasks = async () => (await import("./project-tasks.ts")).projectTasks(paths);
  const sessions = async () => (await import("./project-sessions.ts")).projectSessions(paths, place);
  const teams = async () => (await import("./project-teams.ts")).projectTeams(paths);
  return {
    sessions: {
      list: async (options) => (await sessions()).list(options),
      get: async (written) => (await sessions()).get(written),
      inspect: async (written) => (await sessions()).inspect(written),
      recording: async (written) => (await sessions()).recording(written),
      clean: async (options) => (await sessions()).clean(options),
    },
    teams: {
      list: async () => (await teams()).list(),
      get: async (name) => (await teams()).get(name),
      board: async (name) => (await teams()).board(name),
      messages: async (name, member) => (await teams()).messages(name, member),
      send: async (name, member, text) => (await teams()).send(name, member, text),
      async *stop(name, options) {
        yield* (await teams()).stop(name, options);
      },
      clean: async (name, options) => (await teams()).clean(name, options),
      async *watch(name, member, options) {
        yield* (await teams()).watch(name, member, options);
      },
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
