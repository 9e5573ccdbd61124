import type { SessionSummary } from "@retinue/core/kernel/project/project-sessions.ts";
import { describeAge } from "../commands/views/describe-age.ts";
import { type Column, renderTable } from "../commands/views/render-table.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import type { RunFlags } from "../shared/flags.ts";
import { misuse } from "../shared/misuse.ts";
import { openFolder } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { createSessionRecords } from "./session/session-records.ts";

export interface SessionsOptions {
  readonly json?: boolean;
}

/** `retinue sessions`: a list to choose from where a person sits at a terminal, else the list. */
export async function sessions(context: CommandContext, options: SessionsOptions): Promise<number> {
  const isList = options.json === true || !context.host.canAsk;
  const code = isList ? undefined : await (await import("./browse-sessions.ts")).browseSessions(context);
  return code ?? sessionsList(context, options);
}

export async function sessionsList({ host }: CommandContext, options: SessionsOptions): Promise<number> {
  const found = await createSessionRecords(host).list();
  if (found.length === 0 && options.json !== true) {
    host.stderr.write("There are no sessions in this folder yet.\n");
    return 0;
  }
  return print(found, host, options);
}

/** Looks into titles, prompts and answers, whatever their case. */
export async function sessionsSearch(
  { host }: CommandContext,
  text: string,
  options: SessionsOptions,
): Promise<number> {
  const found = await createSessionRecords(host).search(text);
  if (found.length === 0 && options.json !== true) {
    host.stderr.write(`No session of this folder contains ${JSON.stringify(text)}.\n`);
    return 1;
  }
  return print(found, host, options);
}

export async function sessionsResume(
  context: CommandContext,
  written: string,
  options: RunFlags,
): Promise<number> {
  const { id } = await findNamed(context.host, written);
  if (!context.host.canAsk)
    throw misuse(
      "`retinue sessions resume` opens the session in a terminal.",
      `Without one: retinue -p --resume ${id} "prompt"`,
    );
  const { runTerminal } = await import("./run-terminal.ts");
  return runTerminal(context, [], { ...options, resume: id });
}

export async function sessionsName(
  { host }: CommandContext,
  written: string,
  title: string,
): Promise<number> {
  const { id } = await findNamed(host, written);
  if (title.trim() === "") throw misuse("A title needs at least one letter.");
  await createSessionRecords(host).rename(id, title.trim());
  host.stderr.write(`${id} is now ${JSON.stringify(title.trim())}.\n`);
  return 0;
}

export async function sessionsDelete(
  { host }: CommandContext,
  written: readonly string[],
  { yes = false }: { readonly yes?: boolean },
): Promise<number> {
  const chosen = await Promise.all(written.map((one) => findNamed(host, one)));
  if (!yes && !(await isConfirmed(chosen, host))) {
    host.stderr.write("Nothing was deleted.\n");
    return 1;
  }
  const records = createSessionRecords(host);
  for (const { id, title } of chosen) {
    await records.remove(id);
    host.stderr.write(`Deleted: ${id} ${stripControlCharacters(title)}\n`);
  }
  return 0;
}

async function isConfirmed(chosen: readonly SessionSummary[], host: CliHost): Promise<boolean> {
  if (!host.canAsk)
    throw misuse("Deleting asks first, and there is no terminal to ask in.", "Delete without asking: --yes");
  const list = chosen.map(({ id, title }) => `${id.slice(0, 8)} ${stripControlCharacters(title)}`).join("\n");
  const answer = await host.ask(`${list}\nDelete for good? [y/N] `).finally(host.endQuestions);
  return /^y(es)?$/i.test(answer.trim());
}

async function findNamed(host: CliHost, written: string): Promise<SessionSummary> {
  return openFolder(host).sessions.get(written);
}

const columns: readonly Column[] = [
  { heading: "ID", atLeast: 8, style: "name" },
  { heading: "AGE", atLeast: 4 },
  { heading: "MESSAGES", atLeast: 8 },
  { heading: "STATE", atLeast: 5 },
  { heading: "TITLE", atLeast: 20, elseBelow: 30 },
];

function print(
  found: Awaited<ReturnType<ReturnType<typeof createSessionRecords>["list"]>>,
  { stdout }: CliHost,
  { json = false }: SessionsOptions,
): number {
  if (json) {
    stdout.write(`${JSON.stringify({ version: 1, sessions: found }, undefined, 2)}\n`);
    return 0;
  }
  const now = Date.now();
  const rows = found.map(({ id, title, modified, messages, isOpenElsewhere }) =>
    [
      id.slice(0, 8),
      describeAge(now - modified),
      String(messages),
      isOpenElsewhere === true ? "open" : "",
      title,
    ].map(stripControlCharacters),
  );
  stdout.write(
    renderTable({ columns, rows, width: stdout.columns, paint: createPaint(stdout.isColourAllowed) }),
  );
  return 0;
}
