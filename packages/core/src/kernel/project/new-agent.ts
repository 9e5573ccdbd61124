// @io
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Diagnostic, hasErrors } from "@retinue/base/foundation/diagnostic.ts";
import { firstSentence } from "@retinue/base/foundation/first-sentence.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { readRunner, runnerAdvice } from "@retinue/config/agents/agent-runner.ts";
import type { AgentScope } from "@retinue/config/agents/agent-source.ts";
import { lintDefinition, lintModel, lintTools } from "@retinue/config/agents/lint-definition.ts";
import { parseAgentDefinition } from "@retinue/config/agents/parse-agent-definition.ts";
import { rateDescription } from "@retinue/config/agents/rate-description.ts";
import { isAdvisedAgentName, refuseAgentName } from "@retinue/config/agents/refuse-agent-name.ts";
import { shippedAliases } from "@retinue/config/models/select-subagent-model.ts";
import { builtinTools } from "@retinue/config/tools/builtin-tools.ts";
import { splitEntries } from "@retinue/config/tools/tool-entry.ts";
import type { ProjectFacts } from "./project-facts.ts";
import { writeNewFile } from "./write-new-file.ts";

export interface NewAgent {
  readonly name: string;
  readonly description: string;
  readonly tools?: readonly string[];
  readonly model?: string;
  readonly prompt?: string;
  /** A known program of another vendor, or its command line. */
  readonly runner?: string;
}

/** Where a new agent goes: this folder, or all folders of the person. */
export type NewScope = "project" | "user";

export interface CreateAgentOptions {
  /** `project` when left out. */
  readonly scope?: NewScope;
  /** Whether a file that is there is replaced. */
  readonly replaces?: boolean;
  /** How a path is shown; as it is when left out. */
  readonly pathText?: (file: string) => string;
}

export interface CreatedAgent {
  readonly file: string;
  /** What could be better in it. */
  readonly diagnostics: readonly Diagnostic[];
  /** Scopes that have another agent of this name; the highest one wins. */
  readonly others: readonly AgentScope[];
}

/** Writes a definition that passes the check, and never over another unless asked to. */
export async function createAgent(
  facts: ProjectFacts,
  agent: NewAgent,
  { scope = "project", replaces = false, pathText = (file) => file }: CreateAgentOptions = {},
): Promise<CreatedAgent> {
  const file = join(newAgentFolder(facts, scope), `${agent.name}.md`);
  // The text of a new definition file.
  const { name, tools, model, runner } = agent;
  const description = agent.description.replace(/\s+/g, " ").trim();
  const text = [
    "---",
    `name: ${name}`,
    `description: ${quoted(description)}`,
    ...(tools === undefined ? [] : [`tools: ${tools.length === 0 ? "[]" : plain(tools.join(", "))}`]),
    ...(model === undefined ? [] : [`model: ${plain(model)}`]),
    ...(runner === undefined ? [] : ["runner:", `  acp: ${plain(runner)}`]),
    "---",
    "",
    (agent.prompt ?? starterPrompt({ description, tools })).trim(),
    "",
  ].join("\n");
  const diagnostics = check(text, file, scope);
  const error = diagnostics.find(({ severity }) => severity === "error");
  if (error !== undefined)
    throw new RetinueError(
      "misuse",
      `The agent would not load: ${error.message}`,
      error.advice === undefined ? {} : { advice: error.advice },
    );
  const notes = facts.discovered.paths.temporaryNotes;
  await write(file, text, { shown: pathText(file), replaces, notes });
  const others = facts.discovered.registry
    .all()
    .filter(({ definition }) => definition.name === agent.name && definition.source.file !== file);
  return { file, diagnostics, others: others.map(({ definition }) => definition.source.scope) };
}

/** The nearest agents folder there is, or the one at the project's root. */
export function newAgentFolder({ discovered }: ProjectFacts, scope: NewScope): string {
  const { agents, projectRoot } = discovered.paths;
  if (scope === "user") return agents.user;
  const existing = agents.project.find((folder) => existsSync(folder));
  return existing ?? join(projectRoot, ".claude", "agents");
}

function check(text: string, file: string, scope: NewScope): Diagnostic[] {
  const { definition, diagnostics } = parseAgentDefinition(text, { file, scope });
  if (definition === undefined || hasErrors(diagnostics)) return [...diagnostics];
  return [...diagnostics, ...lintDefinition(definition, { text })];
}

async function write(
  file: string,
  text: string,
  { shown, replaces, notes }: { readonly shown: string; readonly replaces: boolean; readonly notes: string },
): Promise<void> {
  const outcome = await writeNewFile(file, text, { replaces, notes }).catch((error: unknown) => {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new RetinueError("cannot-write", `${shown} cannot be written (${reason}).`, {
      advice: "Check that you may write in that folder.",
      cause: error,
    });
  });
  if (outcome === "written") return;
  throw new RetinueError("file-exists", `${shown} already exists and was not touched.`, {
    advice: "Choose another name, or replace the file with --force.",
  });
}

/** Why an answer cannot be used. */
export interface Complaint {
  readonly message: string;
  readonly advice?: string;
}

const nameAdvice = "Use lower-case letters, digits and hyphens, such as sql-reviewer.";

export function complaintAboutName(name: string): Complaint | undefined {
  const refusal = refuseAgentName(name);
  const shown = JSON.stringify(name.slice(0, 80));
  if (refusal !== undefined) {
    return { message: `The name ${shown} cannot be used: ${refusal.reason}.`, advice: nameAdvice };
  }
  if (isAdvisedAgentName(name)) return undefined;
  return { message: `The name ${shown} is hard to type and to match.`, advice: nameAdvice };
}

export function complaintAboutTools(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(lintTools({ ...blank, tools: splitEntries(text) }));
}

export function complaintAboutModel(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(
    lintModel({ ...blank, model: text }, { trusted: false, aliases: shippedAliases, nests: false }),
  );
}

/** What would make a description better; nothing when it is good. */
export function adviceOnDescription(text: string): readonly string[] {
  return rateDescription(text).advice;
}

export function complaintAboutRunner(text: string): Complaint | undefined {
  const reading = readRunner({ acp: text });
  if (reading.type === "runner") return undefined;
  return { message: `The runner cannot be used: ${reading.reason}.`, advice: runnerAdvice };
}

const blank = {
  name: "new",
  description: "",
  prompt: "",
  source: { scope: "project" },
  written: {},
} as const;

function complaint(
  issues: readonly { readonly severity: string; readonly message: string; readonly advice?: string }[],
): Complaint | undefined {
  return issues.find(({ severity }) => severity !== "note");
}

/** Tools for the work itself; agents that need those for coordination know their names. */
export const workTools: readonly string[] = builtinTools
  .filter(({ effect }) => ["read", "edit", "execute", "network"].includes(effect))
  .map(({ name }) => name);

/** A prompt to start from: the task, how to work, when to stop, what to return. */
function starterPrompt({ description, tools }: Pick<NewAgent, "description" | "tools">): string {
  const changes = tools === undefined || tools.some((entry) => /^(?:Edit|Write|NotebookEdit)\b/.test(entry));
  return `You are given one task by another agent and hand back one report. No one sees your work in between.

# What you are for
${firstSentence(description)}

# How to work
1. Settle first what a finished result looks like. If the task is missing something essential, say what, instead of guessing.
2. Look before you act: find the files and facts the result depends on.
3. ${changes ? "Change in small steps, and check each one: run the tests, read the result again." : "You only read and report; you change nothing."}
4. Stay inside the task. Mention what else you noticed; do not act on it.

# When to stop
Stop when the result is there and checked, or when two further attempts brought nothing new. Then say what you tried.

# What to return
- The result first, in one to three sentences.
- The evidence: places as path:line, commands with what they printed.
${changes ? "- Every file you changed, and how you checked it.\n" : ""}- What you could not check, and what is still open.`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Without quotes where YAML reads the same without them. */
function plain(text: string): string {
  const isSafe =
    /^[A-Za-z][\w ,.()/*:@+-]*$/.test(text) && !/: |:$|^(?:true|false|yes|no|on|off|null)$/i.test(text);
  return isSafe ? text : JSON.stringify(text);
}
