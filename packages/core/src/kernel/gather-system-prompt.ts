import { isAbsolute, relative } from "node:path";
import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { isRetinueError, RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { AgentDefinition, PromptContext } from "@retinue/config/agents/agent-definition.ts";
import { type Instructions, instructionsText } from "@retinue/config/instructions/instructions.ts";
import { type LoadedMemory, loadMemory } from "@retinue/config/instructions/load-memory.ts";
import { findOutputStyle, loadOutputStyles } from "@retinue/config/instructions/load-output-styles.ts";
import { loadSessionInstructions } from "@retinue/config/instructions/load-session-instructions.ts";
import type { MayLoad } from "@retinue/gate/may-load.ts";
import type { PolicyRule } from "@retinue/gate/permission-policy.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { buildSystemPrompt, mainPrompt, mainPromptWithoutCoding } from "../context/build-system-prompt.ts";
import { gatherEnvironment, gatherGitState } from "../context/gather-git-state.ts";

import type { SpawnRequest } from "../planning/agent-request.ts";
import { readSandboxSettings } from "../tools/sandbox/sandbox-settings.ts";
import type { PreloadedSkills, SessionSkills } from "./agent/session-skills.ts";
import type { SessionSetup } from "./options/runtime-options.ts";
import type { FolderContext, RuntimeContext } from "./runtime-context.ts";
import { mayLoadIn, type SessionRules } from "./session-rules.ts";

export interface SystemPromptFacts {
  readonly parts: readonly string[];
  readonly branch?: string;
  readonly memory: LoadedMemory;
  /** What is wrong with instruction files, each as one sentence with its place. */
  readonly notes: readonly string[];
  /** The same for a child, from what was found for its parent. */
  readonly child: (definition: AgentDefinition) => Promise<ChildContext>;
}

/** What a request for a child says about its prompt, and its task. */
type PromptRequest = Pick<SpawnRequest, "prompt" | "systemPrompt" | "appendSystemPrompt">;

/** What a child is given at its start: read once, whatever else is decided for it. */
export interface ChildContext {
  readonly memory?: Pick<LoadedMemory, "place" | "diagnostics">;
  readonly skills?: Pick<PreloadedSkills, "names" | "notes">;
  /** `directory` is another than the session's for a child that works in a tree of its own. */
  readonly system: (request: PromptRequest, directory?: string) => Promise<readonly string[]>;
}

export interface SystemPromptParts {
  readonly runtime: RuntimeContext;
  readonly options: SessionSetup;
  readonly definition: AgentDefinition | undefined;
  readonly modelId: string;
  readonly skills: Pick<SessionSkills, "preload">;
  /** The skills that the main agent's definition names. */
  readonly preloaded: PreloadedSkills;
  readonly rules: SessionRules;
  /** Which files they let be read into a prompt; absent means all. */
  readonly mayLoad: MayLoad | undefined;
}

/** Gathers what the main agent is shown at the start: its prompt, the people's instructions, and where it is. */
export async function gatherSystemPrompt({
  runtime,
  options,
  definition,
  modelId,
  skills,
  preloaded,
  rules,
  mayLoad,
}: SystemPromptParts): Promise<SystemPromptFacts> {
  const { paths } = runtime.discovered;
  const { environment, trusted } = runtime;
  const { cwd: directory, repositoryRoot } = paths;
  const facts = gatherEnvironment({
    directory,
    repositoryRoot,
    additionalDirectories: runtime.additionalDirectories,
    platform: runtime.platform,
    environment,
    now: new Date(runtime.epochMs()),
    model: modelId,
  });
  const ownPrompt = options.systemPrompt ?? (await promptOf(definition, paths.cwd));
  const { includeGitInstructions, language, outputStyle } = runtime.discovered.settings.settings.plain;
  // Who brings a prompt of their own has said how it answers.
  const styleName = ownPrompt === undefined ? outputStyle : undefined;
  const [instructions, git, memory, styles] = await Promise.all([
    loadSessionInstructions(runtime.discovered, {
      disabled: runtime.variables.claudeMdDisabled === true,
      mayLoad,
      sources: runtime.settingSources,
    }),
    gatherGitState({
      directory,
      repositoryRoot,
      home: paths.home,
      environment,
      trusted,
      wall: isolates(runtime) ? runtime.wall : undefined,
    }),
    gatherMemory(runtime, rules, definition),
    styleName === undefined
      ? undefined
      : loadOutputStyles(paths, { mayLoad, sources: runtime.settingSources }),
  ]);
  const { style, problem } = styles === undefined ? {} : findOutputStyle(styleName ?? "", styles);
  const shownGit = includeGitInstructions === false ? undefined : git;
  const parts = buildSystemPrompt({
    language,
    base: ownPrompt ?? (style?.keepsCoding === false ? mainPromptWithoutCoding : mainPrompt),
    style,
    appended: options.appendSystemPrompt,
    instructions: instructionsText(
      definition?.omitClaudeMd === true ? managedOnly(instructions) : instructions,
    ),
    memory: memory.text,
    skills: preloaded.text,
    environment: facts,
    git: shownGit,
    reminder: definition?.criticalSystemReminder_EXPERIMENTAL,
  });
  const { model: _model, ...place } = facts;
  const shared = { runtime, options, rules, skills, instructions, place, git: shownGit };
  const notes = [...instructions.diagnostics, ...(styles?.diagnostics ?? [])]
    .filter(({ severity }) => severity !== "note")
    .map((diagnostic) => diagnosticNote(diagnostic, paths.cwd));
  if (problem !== undefined) notes.push(problem);
  const child = (own: AgentDefinition) => childContext(own, shared);
  return { parts, child, memory, notes, branch: git?.branch };
}

interface SharedFacts extends Pick<SystemPromptParts, "runtime" | "options" | "rules" | "skills"> {
  readonly instructions: Instructions;
  readonly place: Omit<ReturnType<typeof gatherEnvironment>, "model">;
  readonly git: Awaited<ReturnType<typeof gatherGitState>>;
}

function joinPrompts(...texts: readonly (string | undefined)[]): string | undefined {
  const written = texts.filter((text) => text !== undefined && text !== "");
  return written.length === 0 ? undefined : written.join("\n\n");
}

async function childContext(
  own: AgentDefinition,
  { runtime, options, rules, skills, instructions, place, git }: SharedFacts,
): Promise<ChildContext> {
  const memory = await gatherMemory(runtime, rules, own);
  const preloaded = skills.preload(own);
  return {
    memory,
    skills: preloaded,
    system: async (request, directory = runtime.discovered.paths.cwd) =>
      buildSystemPrompt({
        base: request.systemPrompt ?? (await promptOf(own, directory, request.prompt)) ?? "",
        appended: joinPrompts(request.appendSystemPrompt, options.appendSubagentSystemPrompt),
        instructions: instructionsText(own.omitClaudeMd === true ? managedOnly(instructions) : instructions),
        memory: memory.text,
        skills: preloaded.text,
        environment: { ...place, directory },
        git,
        reminder: own.criticalSystemReminder_EXPERIMENTAL,
      }),
  };
}

function diagnosticNote({ file, line, message }: Diagnostic, directory: string): string {
  if (file === undefined) return message;
  const near = relative(directory, file);
  const name = near.startsWith("..") || isAbsolute(near) ? file : near;
  return `${name}${line === undefined ? "" : `:${line}`}: ${message}`;
}

/** A program may compute the prompt of its agent; the task is not known yet when a conversation is opened. */
async function promptOf(
  definition: AgentDefinition | undefined,
  directory: string,
  task = "",
): Promise<string | undefined> {
  if (definition === undefined) return undefined;
  const { name, prompt, behaviour } = definition;
  const text = await computed(name, behaviour, { agent: name, task, directory });
  return (text ?? prompt).trim() === "" ? undefined : (text ?? prompt);
}

/** What the program's function gives; a function that fails is a mistake of the program, which gets it with the agent's name. */
async function computed(
  name: string,
  behaviour: AgentDefinition["behaviour"],
  context: PromptContext,
): Promise<string | undefined> {
  if (behaviour?.computePrompt === undefined) return undefined;
  const who = `The prompt function of the agent ${quote(name)}`;
  let text: unknown;
  try {
    text = await behaviour.computePrompt(context);
  } catch (error) {
    if (isRetinueError(error)) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new RetinueError("invalid-prompt", `${who} failed: ${reason.replace(/\.$/, "")}.`, {
      cause: error,
    });
  }
  if (text === undefined || typeof text === "string") return text;
  throw new RetinueError("invalid-prompt", `${who} must return a string, but returned ${quote(text)}.`);
}

/** An agent that wants none of the people's instructions still gets those of the organisation. */
function managedOnly({ files, ...rest }: Instructions): Instructions {
  return { ...rest, files: files.filter(({ kind }) => kind === "managed"), conditional: [] };
}

/** The memory of an agent of this session, as settings, rules and trust allow it. */
async function gatherMemory(
  runtime: Pick<FolderContext, "discovered" | "variables" | "trusted" | "platform">,
  rules: SessionRules,
  definition: AgentDefinition | undefined,
): Promise<LoadedMemory> {
  if (definition === undefined) return { diagnostics: [] };
  const { paths, settings } = runtime.discovered;
  const isOff = runtime.variables.autoMemoryDisabled === true;
  const mayLoad = mayLoadIn(runtime, rules, ownRules(definition, paths.cwd));
  return loadMemory({
    definition,
    mayLoad,
    paths,
    trusted: runtime.trusted,
    disabled: isOff || settings.settings.plain.autoMemoryEnabled === false,
  });
}

function ownRules({ disallowedTools = [] }: AgentDefinition, anchor: string): readonly PolicyRule[] {
  return disallowedTools.flatMap((text) => {
    const reading = parseRule(text, { list: "deny" });
    return reading.type === "rule" ? [{ rule: reading.rule, anchor }] : [];
  });
}

function isolates({ discovered }: Pick<FolderContext, "discovered">): boolean {
  return readSandboxSettings(discovered.settings.settings.plain.sandbox).isolatesReadOnlyCommands;
}
