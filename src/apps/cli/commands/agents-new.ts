import { join } from "node:path";
import { lintDefinition } from "../../../definitions/lint-definition.ts";
import { parseAgentDefinition } from "../../../definitions/parse-definition.ts";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import { hasErrors, type Diagnostic } from "../../../foundation/diagnostic.ts";
import { splitEntries } from "../../../tools/list-field.ts";
import { type GatheredSession, gatherSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { createPaint } from "../views/colour.ts";
import { writeNewFile } from "../write-new-file.ts";
import { askForAgent } from "./ask-for-agent.ts";
import { complaintAboutModel, complaintAboutName, complaintAboutTools } from "./new-agent-answers.ts";
import { folderFor, type NewOptions, type NewScope } from "./new-agent-place.ts";
import { type NewAgent, starterFile } from "./starter-file.ts";

/** `retinue agents new NAME`: writes a definition that passes the check, and never over another without being told to. */
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

function refuseBadAnswers({ name, tools, model, scope }: NewOptions): void {
  const complaint =
    (name === undefined ? undefined : complaintAboutName(name)) ??
    (tools === undefined ? undefined : complaintAboutTools(tools)) ??
    (model === undefined ? undefined : complaintAboutModel(model));
  if (complaint !== undefined) throw misuse(complaint.message, complaint.advice);
  if (scope !== undefined && scope !== "project" && scope !== "user") {
    throw misuse(`--scope must be project or user, not "${scope}".`);
  }
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
  const outcome = await writeNewFile(file, text, { replaces: isForced }).catch((error: unknown) => {
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
