import { existsSync } from "node:fs";
import { join } from "node:path";
import { firstSentence } from "../../../../definitions/first-sentence.ts";
import { lintDefinition, lintModel, lintTools } from "../../../../definitions/lint-definition.ts";
import { parseAgentDefinition } from "../../../../definitions/parse-agent-definition.ts";
import { rateDescription } from "../../../../definitions/rate-description.ts";
import { isAdvisedAgentName, refuseAgentName } from "../../../../definitions/refuse-agent-name.ts";
import { type Diagnostic, hasErrors } from "../../../../foundation/diagnostic.ts";
import { RetinueError } from "../../../../foundation/retinue-error.ts";
import { shippedAliases } from "../../../../model/alias-table.ts";
import { builtinTools } from "../../../../tools/grants/builtin-tools.ts";
import { splitEntries } from "../../../../tools/grants/split-entries.ts";
import type { CliHost } from "../../cli-host.ts";
import { type GatheredSession, gatherSession } from "../../gather-session.ts";
import { type CommandContext, misuse } from "../../session-options.ts";
import { createPaint, type Paint } from "../../views/paint.ts";
import { wrap } from "../../views/strip-control-characters.ts";
import { writeNewFile } from "../../write-new-file.ts";

/** `retinue agents new NAME`: writes a definition that passes the check, and never over another unless asked to. */
export async function agentsNew(
  context: CommandContext,
  argument: string | undefined,
  given: NewOptions,
): Promise<number> {
  const { host } = context;
  const options = withName(argument, given);
  refuseBadAnswers(options);
  const session = await gatherSession(context);
  const answers = host.canAsk
    ? await askForAgent(host, options, session).finally(host.endQuestions)
    : options;
  const { name, description } = requireAnswers(answers);
  const scope: NewScope = answers.scope === "user" ? "user" : "project";
  const agent: NewAgent = {
    name,
    description,
    ...(isGiven(answers.tools) ? { tools: splitEntries(answers.tools) } : {}),
    ...(isGiven(answers.model) ? { model: answers.model.trim() } : {}),
    ...(isGiven(answers.prompt) ? { prompt: answers.prompt } : {}),
  };
  const file = join(folderFor(scope, session), `${name}.md`);
  const text = starterFile(agent);
  const diagnostics = check(text, file, scope);
  const error = diagnostics.find(({ severity }) => severity === "error");
  if (error !== undefined) throw misuse(`The agent would not load: ${error.message}`, error.advice);
  await write(file, text, { session, isForced: options.force === true });
  report(context, { name, file, diagnostics, session, isDescribed: description !== openDescription });
  return 0;
}

function withName(argument: string | undefined, options: NewOptions): NewOptions {
  if (argument === undefined) return options;
  if (options.name !== undefined && options.name !== argument)
    throw misuse(
      `Two names were given: ${JSON.stringify(argument)} and --name ${JSON.stringify(options.name)}.`,
    );
  return { ...options, name: argument };
}

function isGiven(text: string | undefined): text is string {
  return text !== undefined && text.trim() !== "";
}

function refuseBadAnswers({ name, tools, model }: NewOptions): void {
  const complaint =
    (name === undefined ? undefined : complaintAboutName(name)) ??
    (tools === undefined ? undefined : complaintAboutTools(tools)) ??
    (model === undefined ? undefined : complaintAboutModel(model));
  if (complaint !== undefined) throw misuse(complaint.message, complaint.advice);
}

/** Loads; the check says what is missing. */
const openDescription = "Not described yet.";

function requireAnswers({ name, description }: NewOptions): { name: string; description: string } {
  if (isGiven(name)) return { name, description: isGiven(description) ? description : openDescription };
  throw misuse(
    "Without a terminal to ask in, `agents new` needs a name.",
    'For example: retinue agents new sql-reviewer --description "Reviews SQL migrations for locks. Use when …"',
  );
}

function check(text: string, file: string, scope: NewScope): Diagnostic[] {
  const { definition, diagnostics } = parseAgentDefinition(text, { file, scope });
  if (definition === undefined || hasErrors(diagnostics)) return [...diagnostics];
  return [...diagnostics, ...lintDefinition(definition, { text })];
}

async function write(
  file: string,
  text: string,
  { session, isForced }: { readonly session: GatheredSession; readonly isForced: boolean },
): Promise<void> {
  const shown = session.nameOf(file);
  const notes = session.discovered.paths.temporaryNotes;
  const outcome = await writeNewFile(file, text, { replaces: isForced, notes }).catch((error: unknown) => {
    const reason = error instanceof Error && "code" in error ? String(error.code) : String(error);
    throw new RetinueError("cannot-write", `${shown} cannot be written (${reason}).`, {
      advice: "Check that you may write in that folder.",
      cause: error,
    });
  });
  if (outcome === "written") return;
  throw new RetinueError("file-exists", `${shown} is there already and was not touched.`, {
    advice: "Choose another name, or replace the file with --force.",
  });
}

function report(
  { host }: CommandContext,
  result: {
    readonly name: string;
    readonly file: string;
    readonly diagnostics: readonly Diagnostic[];
    readonly session: GatheredSession;
    readonly isDescribed: boolean;
  },
): void {
  const { name, file, diagnostics, session, isDescribed } = result;
  const paint = createPaint(host.stdout.isColourAllowed);
  const others = session.discovered.registry
    .all()
    .filter(({ definition }) => definition.name === name && definition.source.file !== file);
  const lines = [
    `${paint.good("Written:")} ${session.nameOf(file)}`,
    ...others.map(({ definition }) =>
      paint.warning(
        `There is another agent of this name (${definition.source.scope}); the higher scope wins: see \`retinue agents --all\`.`,
      ),
    ),
    ...diagnostics.flatMap(({ message, advice = "" }) => [
      paint.warning(message),
      ...advice
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => `  ${line}`),
    ]),
    ...(isDescribed
      ? []
      : [paint.warning("It has no description yet: write one, or no agent will know when to use it.")]),
    "Next: make its prompt your own, then run `retinue agents check`.",
  ];
  host.stdout.write(`${lines.join("\n")}\n`);
}

/** Asks a person for everything the options do not say yet. */
async function askForAgent(
  host: CliHost,
  options: NewOptions,
  session: GatheredSession,
): Promise<NewOptions> {
  const paint = createPaint(host.stdout.isColourAllowed);
  const asker = createAsker(host, paint);
  const scope =
    options.scope ??
    (await asker.ask(
      "Scope",
      "project (this folder) or user (all your folders) [project]",
      complaintAboutScope,
    ));
  const folder = folderFor(scope === "user" ? "user" : "project", session);
  const isTaken = (name: string): Complaint | undefined =>
    options.force !== true && existsSync(join(folder, `${name}.md`))
      ? { message: `There is already a ${session.nameOf(join(folder, `${name}.md`))}.` }
      : undefined;
  const name =
    options.name ??
    (await asker.ask("Name", "such as sql-reviewer", (text) => complaintAboutName(text) ?? isTaken(text)));
  const description = options.description ?? (await asker.askDescription());
  const tools =
    options.tools ??
    (await asker.ask("Tools", `empty for all; ${defaultTools.join(", ")}`, complaintAboutTools));
  const model =
    options.model ??
    (await asker.ask("Model", "empty to inherit; sonnet, opus, haiku, …", complaintAboutModel));
  return { ...options, name, description, tools, model, scope: scope === "user" ? "user" : "project" };
}

/** Tools for the work itself; the one that needs those for coordination knows their names. */
const defaultTools = builtinTools
  .filter(({ effect }) => ["read", "edit", "execute", "network"].includes(effect))
  .map(({ name }) => name);

function complaintAboutScope(text: string): Complaint | undefined {
  return ["", "project", "user"].includes(text) ? undefined : { message: "Write project or user." };
}

function createAsker(host: CliHost, paint: Paint) {
  const width = Math.min(host.stdout.columns ?? 80, 100);
  const say = (text: string): void =>
    host.stdout.write(
      `${wrap(text, width - 2)
        .map((line) => `  ${line}`)
        .join("\n")}\n`,
    );
  const read = async (label: string): Promise<string> => (await host.ask(`${paint.bold(label)}: `)).trim();
  return {
    /** Again and again, until the answer can be used. */
    async ask(
      label: string,
      hint: string,
      complain: (text: string) => Complaint | undefined,
    ): Promise<string> {
      for (const line of wrap(hint, width - 2)) host.stdout.write(`  ${paint.dim(line)}\n`);
      for (;;) {
        const answer = await read(label);
        const complaint = complain(answer);
        if (complaint === undefined) return answer;
        say([complaint.message, complaint.advice ?? ""].join(" ").trim());
      }
    },
    /** Shows what would make the description better; an empty answer keeps the last one. */
    async askDescription(): Promise<string> {
      const hint = "What it does, when to use it, what it is not for. A model decides by this text alone.";
      for (const line of wrap(hint, width - 2)) host.stdout.write(`  ${paint.dim(line)}\n`);
      let kept = "";
      for (;;) {
        const answer = await read(kept === "" ? "Description" : "Description (Enter keeps it)");
        if (answer === "" && kept !== "") return kept;
        if (answer === "") continue;
        kept = answer;
        const advice = adviceOnDescription(answer);
        if (advice.length === 0) return answer;
        for (const sentence of advice) say(`- ${sentence}`);
      }
    },
  };
}

interface Complaint {
  readonly message: string;
  readonly advice?: string;
}

const nameAdvice = "Use lower-case letters, digits and hyphens, such as sql-reviewer.";

function complaintAboutName(name: string): Complaint | undefined {
  const refusal = refuseAgentName(name);
  const shown = JSON.stringify(name.slice(0, 80));
  if (refusal !== undefined) {
    return { message: `The name ${shown} cannot be used: ${refusal.reason}.`, advice: nameAdvice };
  }
  if (isAdvisedAgentName(name)) return undefined;
  return { message: `The name ${shown} is hard to type and to match.`, advice: nameAdvice };
}

function complaintAboutTools(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(lintTools({ ...blank, tools: splitEntries(text) }));
}

function complaintAboutModel(text: string): Complaint | undefined {
  if (text.trim() === "") return undefined;
  return complaint(lintModel({ ...blank, model: text }, { trusted: false, aliases: shippedAliases }));
}

/** What would make a description better; nothing when it is good. */
function adviceOnDescription(text: string): readonly string[] {
  return rateDescription(text).advice;
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

interface NewOptions {
  readonly name?: string;
  readonly description?: string;
  readonly tools?: string;
  readonly model?: string;
  readonly scope?: string;
  readonly prompt?: string;
  readonly force?: boolean;
}

type NewScope = "project" | "user";

/** The nearest agents folder there is, or the one at the project's root. */
function folderFor(scope: NewScope, { discovered }: GatheredSession): string {
  const { agents, projectRoot } = discovered.paths;
  if (scope === "user") return agents.user;
  const existing = agents.project.find((folder) => existsSync(folder));
  return existing ?? join(projectRoot, ".claude", "agents");
}

export interface NewAgent {
  readonly name: string;
  readonly description: string;
  readonly tools?: readonly string[];
  readonly model?: string;
  readonly prompt?: string;
}

/** The text of a new definition file. */
export function starterFile(agent: NewAgent): string {
  const { name, tools, model } = agent;
  const description = agent.description.replace(/\s+/g, " ").trim();
  return [
    "---",
    `name: ${name}`,
    `description: ${quoted(description)}`,
    ...(tools === undefined ? [] : [`tools: ${tools.length === 0 ? "[]" : plain(tools.join(", "))}`]),
    ...(model === undefined ? [] : [`model: ${plain(model)}`]),
    "---",
    "",
    (agent.prompt ?? starterPrompt({ description, ...(tools === undefined ? {} : { tools }) })).trim(),
    "",
  ].join("\n");
}

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
