import { resolve } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { createProject, type Project, projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import {
  createTextReader,
  gatherProject,
  type ProjectFacts,
  type ProjectOptions,
} from "@retinue/core/kernel/project/project-facts.ts";
import type { CliHost } from "./cli-host.ts";
import type { CommandContext } from "./command-context.ts";
import { displayPath } from "./display-path.ts";
import { checkFlags } from "./flags.ts";
import { folderOptions } from "./folder-options.ts";
import { type AgentsOption, refuseBrokenOption } from "./load-agents-option.ts";
import { misuse } from "./misuse.ts";

/** Everything a command can know about agents here, with the options of this run in force. */
export interface GatheredSession extends ProjectFacts {
  /** Of definitions, settings, plugins and `--agents`. */
  readonly diagnostics: readonly Diagnostic[];
  readonly option?: AgentsOption;
  nameOf(file: string): string;
}

export interface GatherOptions {
  /** What `--agents` and `--settings` hold and cannot be used is one problem among others instead of the end. */
  readonly toleratesBrokenFiles?: boolean;
}

/** What a command asks about this folder, and what it needs to show the answers. */
export interface CliProject extends Project {
  readonly option?: AgentsOption;
  nameOf(file: string): string;
  textOf(file: string): string | undefined;
}

/** The project of the working folder, with the options of this run in force. */
export function openProject(context: CommandContext, options: GatherOptions = {}): CliProject {
  const { given, option } = projectOptions(context, options);
  const { cwd, home, platform } = context.host;
  return {
    ...createProject({
      facts: () => gatherFacts(given, options),
      paths: async (folder = cwd) => projectPaths({ ...given, cwd: folder }),
      place: async () => given,
    }),
    option,
    nameOf: (file) => displayPath(file, { cwd, home, platform }),
    textOf: createTextReader(given.texts),
  };
}

/** The working folder without the options of this run, for what reads no definition: tasks, sessions, teams. */
export function openFolder(host: CliHost): Project {
  const { cwd, home, environment: env, platform } = host;
  const given = { cwd, home, env, platform };
  return createProject({
    facts: () => gatherProject(given),
    paths: async (folder = cwd) => projectPaths({ ...given, cwd: folder }),
    place: async () => given,
  });
}

/** The child agents of this folder's sessions. */
export function openTasks(host: CliHost): Project["tasks"] {
  return openFolder(host).tasks;
}

export async function gatherSession(
  context: CommandContext,
  options: GatherOptions = {},
): Promise<GatheredSession> {
  const { given, option } = projectOptions(context, options);
  const { cwd, home, platform } = context.host;
  const facts = await gatherFacts(given, options);
  return {
    ...facts,
    diagnostics: [...(option?.diagnostics ?? []), ...facts.discovered.diagnostics],
    option,
    nameOf: (file) => displayPath(file, { cwd, home, platform }),
  };
}

/** The options of the command line as a project takes them. */
function projectOptions(
  context: CommandContext,
  { toleratesBrokenFiles = false }: GatherOptions,
): { readonly given: ProjectOptions; readonly option?: AgentsOption } {
  checkFlags(context.session, context.host.cwd);
  const { given, option } = folderOptions(context);
  if (option === undefined) return { given };
  if (option.isBroken && !toleratesBrokenFiles) throw refuseBrokenOption(option);
  return { given: { ...given, texts: new Map([[option.file, option.text]]) }, option };
}

async function gatherFacts(
  given: ProjectOptions,
  { toleratesBrokenFiles = false }: GatherOptions,
): Promise<ProjectFacts> {
  const facts = await gatherProject(given);
  if (!toleratesBrokenFiles) refuseBrokenSettings(facts, given);
  return facts;
}

function refuseBrokenSettings({ discovered: { settings } }: ProjectFacts, given: ProjectOptions): void {
  if (!settings.incompleteScopes.includes("flags")) return;
  const text = given.settings ?? "";
  const file = text.trimStart().startsWith("{") ? undefined : resolve(text);
  const diagnostic =
    settings.diagnostics.find((candidate) => candidate.severity === "error" && candidate.file === file) ??
    settings.diagnostics.find((candidate) => candidate.severity === "error");
  throw misuse(`--settings cannot be used: ${diagnostic?.message ?? "it is broken."}`, diagnostic?.advice);
}
