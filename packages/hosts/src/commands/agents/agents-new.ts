import { existsSync } from "node:fs";
import { join } from "node:path";
import { splitEntries } from "@retinue/core/kernel/options/find-bad-rule.ts";
import {
  adviceOnDescription,
  type Complaint,
  type CreatedAgent,
  complaintAboutModel,
  complaintAboutName,
  complaintAboutRunner,
  complaintAboutTools,
  type NewAgent,
  type NewScope,
  workTools,
} from "@retinue/core/kernel/project/new-agent.ts";
import type { CliHost } from "../../shared/cli-host.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { type CliProject, openProject } from "../../shared/open-project.ts";
import { createPaint, type Paint } from "../../shared/paint.ts";
import { wrap } from "../../shared/strip-control-characters.ts";

/** `retinue agents new NAME`: writes a definition that passes the check, and never over another unless asked to. */
export async function agentsNew(
  context: CommandContext,
  argument: string | undefined,
  given: NewOptions,
): Promise<number> {
  const { host } = context;
  const options = withName(argument, given);
  refuseBadAnswers(options);
  const project = openProject(context);
  const answers = host.canAsk
    ? await askForAgent(host, options, project).finally(host.endQuestions)
    : options;
  const { name, description } = requireAnswers(answers);
  const scope: NewScope = answers.scope === "user" ? "user" : "project";
  const agent: NewAgent = {
    name,
    description,
    ...(isGiven(answers.tools) ? { tools: splitEntries(answers.tools) } : {}),
    ...(isGiven(answers.model) ? { model: answers.model.trim() } : {}),
    ...(isGiven(answers.prompt) ? { prompt: answers.prompt } : {}),
    ...(answers.runner === undefined ? {} : { runner: answers.runner.trim() }),
  };
  const created = await project.agents.create(agent, {
    scope,
    replaces: options.force === true,
    pathText: project.nameOf,
  });
  report(context, created, { project, isDescribed: description !== openDescription });
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

function refuseBadAnswers({ name, tools, model, runner }: NewOptions): void {
  const complaint =
    (name === undefined ? undefined : complaintAboutName(name)) ??
    (tools === undefined ? undefined : complaintAboutTools(tools)) ??
    (runner === undefined ? undefined : complaintAboutRunner(runner)) ??
    (model === undefined || runner !== undefined ? undefined : complaintAboutModel(model));
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

function report(
  { host }: CommandContext,
  { file, diagnostics, others }: CreatedAgent,
  { project, isDescribed }: { readonly project: CliProject; readonly isDescribed: boolean },
): void {
  const paint = createPaint(host.stdout.isColourAllowed);
  const lines = [
    `${paint.good("Written:")} ${project.nameOf(file)}`,
    ...others.map((scope) =>
      paint.warning(
        `There is another agent of this name (${scope}); the higher scope wins: see \`retinue agents --all\`.`,
      ),
    ),
    ...(isDescribed ? diagnostics : []).flatMap(({ message, advice = "" }) => [
      paint.warning(message),
      ...advice
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => `  ${line}`),
    ]),
    `Next: edit its ${isDescribed ? "prompt" : "description (other agents use it to decide when to delegate) and its prompt"}. Then run \`retinue agents check\`.`,
  ];
  host.stdout.write(`${lines.join("\n")}\n`);
}

/** Asks a person for everything the options do not say yet. */
async function askForAgent(host: CliHost, options: NewOptions, project: CliProject): Promise<NewOptions> {
  const paint = createPaint(host.stdout.isColourAllowed);
  const asker = createAsker(host, paint);
  const scope =
    options.scope ??
    (await asker.ask(
      "Scope",
      "project (this folder) or user (all your folders) [project]",
      complaintAboutScope,
    ));
  const folder = await project.agents.newFolder(scope === "user" ? "user" : "project");
  const isTaken = (name: string): Complaint | undefined =>
    options.force !== true && existsSync(join(folder, `${name}.md`))
      ? { message: `There is already a ${project.nameOf(join(folder, `${name}.md`))}.` }
      : undefined;
  const name =
    options.name ??
    (await asker.ask("Name", "such as sql-reviewer", (text) => complaintAboutName(text) ?? isTaken(text)));
  const description = options.description ?? (await asker.askDescription());
  const tools =
    options.tools ??
    (await asker.ask("Tools", `empty for all; ${workTools.join(", ")}`, complaintAboutTools));
  // The program of another vendor chooses a model of its own.
  const model =
    options.model ??
    (options.runner === undefined ? undefined : "") ??
    (await asker.ask("Model", "empty to inherit; sonnet, opus, haiku, …", complaintAboutModel));
  return { ...options, name, description, tools, model, scope: scope === "user" ? "user" : "project" };
}

function complaintAboutScope(text: string): Complaint | undefined {
  return ["", "project", "user"].includes(text) ? undefined : { message: "Write project or user." };
}

function createAsker(host: CliHost, paint: Paint) {
  const width = Math.min(host.stdout.columns ?? 80, 100);
  const print = (text: string): void =>
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
        print([complaint.message, complaint.advice ?? ""].join(" ").trim());
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
        for (const sentence of advice) print(`- ${sentence}`);
      }
    },
  };
}

interface NewOptions {
  readonly name?: string;
  readonly description?: string;
  readonly tools?: string;
  readonly model?: string;
  readonly scope?: string;
  readonly prompt?: string;
  readonly runner?: string;
  readonly force?: boolean;
}
