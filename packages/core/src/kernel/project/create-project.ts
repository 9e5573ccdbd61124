import { createPaths, type Paths } from "@retinue/config/settings/paths.ts";

export type { Paths } from "@retinue/config/settings/paths.ts";

import type { ProjectLock } from "./lock/project-lock.ts";
import type { ProjectFormats } from "./portable/project-formats.ts";
import type { ProjectAgents } from "./project-agents.ts";
import type { ProjectDoctor } from "./project-doctor.ts";
import type { ProjectFacts, ProjectOptions } from "./project-facts.ts";
import type { ProjectKeys } from "./project-keys.ts";
import type { ProjectMcp } from "./project-mcp.ts";
import type { ProjectPermissions } from "./project-permissions.ts";
import type { ProjectPlugins } from "./project-plugins.ts";
import type { ProjectSessions } from "./project-sessions.ts";
import type { ProjectSkills } from "./project-skills.ts";
import type { ProjectTasks } from "./project-tasks.ts";
import type { ProjectTeams } from "./project-teams.ts";
import type { ProjectTrust } from "./project-trust.ts";
import type { ProjectWorkflows } from "./project-workflows.ts";

/** Everything about a folder that can be looked at and changed without running an agent. */
export interface Project {
  readonly agents: ProjectAgents;
  /** Agent files of other products. */
  readonly formats: ProjectFormats;
  /** What the configuration may do, as it was accepted. */
  readonly lock: ProjectLock;
  readonly skills: ProjectSkills;
  readonly permissions: ProjectPermissions;
  readonly mcp: ProjectMcp;
  /** The key for the default provider. */
  readonly keys: ProjectKeys;
  readonly tasks: ProjectTasks;
  readonly trust: ProjectTrust;
  readonly sessions: ProjectSessions;
  readonly teams: ProjectTeams;
  readonly plugins: ProjectPlugins;
  readonly doctor: ProjectDoctor;
  /** Saved workflows, and the runs of the folder's sessions. */
  readonly workflows: ProjectWorkflows;
}

/** Where a project's facts come from; each question asks anew. */
export interface ProjectSource {
  facts(): Promise<ProjectFacts>;
  /** Where everything of the folder is, or of another one, without reading any of it. */
  paths(cwd?: string): Promise<Paths>;
  place(): Promise<Pick<ProjectOptions, "cwd" | "home" | "env" | "platform">>;
}

export function createProject({ facts, paths, place }: ProjectSource): Project {
  return {
    agents: loadedOnUse(async () => (await import("./project-agents.ts")).projectAgents(facts), {
      list: "answer",
      get: "answer",
      check: "answer",
      create: "answer",
      newFolder: "answer",
    }),
    formats: loadedOnUse(async () => (await import("./portable/project-formats.ts")).projectFormats(facts), {
      convert: "answer",
      compare: "answer",
    }),
    lock: loadedOnUse(async () => (await import("./lock/project-lock.ts")).projectLock(place), {
      check: "answer",
      write: "answer",
    }),
    skills: loadedOnUse(async () => (await import("./project-skills.ts")).projectSkills(facts), {
      list: "answer",
      check: "answer",
    }),
    permissions: loadedOnUse(
      async () => (await import("./project-permissions.ts")).projectPermissions(facts),
      {
        list: "answer",
        test: "answer",
        add: "answer",
        remove: "answer",
      },
    ),
    mcp: loadedOnUse(async () => (await import("./project-mcp.ts")).projectMcp(facts), {
      list: "answer",
      get: "answer",
      add: "answer",
      remove: "answer",
      approve: "answer",
      reject: "answer",
      resetChoices: "answer",
      login: "answer",
      logout: "answer",
    }),
    keys: loadedOnUse(async () => (await import("./project-keys.ts")).projectKeys(facts), {
      look: "answer",
      check: "answer",
      save: "answer",
      useVariable: "answer",
      useModel: "answer",
      remove: "answer",
    }),
    trust: loadedOnUse(async () => (await import("./project-trust.ts")).projectTrust(facts), {
      show: "answer",
      waiting: "answer",
      changes: "answer",
      grant: "answer",
      revoke: "answer",
    }),
    plugins: loadedOnUse(async () => (await import("./project-plugins.ts")).projectPlugins(facts, paths), {
      list: "answer",
      enable: "answer",
      disable: "answer",
      validate: "answer",
    }),
    workflows: loadedOnUse(
      async () => (await import("./project-workflows.ts")).projectWorkflows(facts, paths),
      { list: "answer", runs: "answer", run: "answer", stop: "answer" },
    ),
    doctor: loadedOnUse(async () => (await import("./project-doctor.ts")).projectDoctor(facts), {
      check: "answer",
    }),
    sessions: loadedOnUse(async () => (await import("./project-sessions.ts")).projectSessions(paths, place), {
      list: "answer",
      get: "answer",
      inspect: "answer",
      recording: "answer",
      clean: "answer",
    }),
    teams: loadedOnUse(async () => (await import("./project-teams.ts")).projectTeams(paths), {
      list: "answer",
      get: "answer",
      board: "answer",
      messages: "answer",
      send: "answer",
      stop: "stream",
      clean: "answer",
      watch: "stream",
    }),
    tasks: loadedOnUse(async () => (await import("./project-tasks.ts")).projectTasks(paths), {
      list: "answer",
      get: "answer",
      stop: "answer",
      log: "stream",
      interrupted: "answer",
      waiting: "answer",
    }),
  };
}

type Streaming = (...given: never[]) => AsyncIterable<unknown>;

/** Which members of a group return a promise, and which are read as a stream. */
type Members<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends Streaming ? "stream" : "answer";
};

/** A group whose code is loaded with the first question to it. */
function loadedOnUse<Group extends object>(load: () => Promise<Group>, members: Members<Group>): Group {
  type Answer = (...given: unknown[]) => AsyncIterable<unknown>;
  const loaded = async (name: string): Promise<Answer> => {
    const group: object = await load();
    const member: Answer = Reflect.get(group, name);
    return member.bind(group);
  };
  const entries = Object.entries(members).map(([name, kind]) => {
    const answer = async (...given: unknown[]) => (await loaded(name))(...given);
    const stream = async function* (...given: unknown[]) {
      yield* (await loaded(name))(...given);
    };
    return [name, kind === "stream" ? stream : answer] as const;
  });
  // The type of `members` makes sure that each member of the group is there, in its kind.
  return Object.fromEntries(entries) as Group;
}

/** The folders and files of a project, by its options alone. */
export function projectPaths({ cwd, home, env, platform }: ProjectOptions): Paths {
  return createPaths({ cwd, home, environment: env, platform });
}
