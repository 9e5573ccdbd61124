import type { ProjectTeams, TeamSummary } from "@retinue/core/kernel/project/project-teams.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { exitCodeOf } from "../shared/end-signal.ts";
import { misuse } from "../shared/misuse.ts";
import { openFolder } from "../shared/open-project.ts";
import { createPaint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { describeAge } from "./views/describe-age.ts";
import { renderFields } from "./views/render-fields.ts";
import { type Column, renderTable } from "./views/render-table.ts";

export interface TeamsOptions {
  readonly json?: boolean;
  readonly force?: boolean;
  readonly dryRun?: boolean;
}

const columns: readonly Column[] = [
  { heading: "TEAM", atLeast: 12, style: "name" },
  { heading: "LEAD", atLeast: 8 },
  { heading: "MEMBERS", atLeast: 10 },
  { heading: "TASKS", atLeast: 6 },
  { heading: "AGE", atLeast: 4 },
  { heading: "FOLDER", atLeast: 12, elseBelow: 24, style: "dim" },
];

/** `retinue teams`: all teams of this user, led by any process. */
export async function teamsList({ host }: CommandContext, { json }: TeamsOptions): Promise<number> {
  const { teams, problems } = await openTeams(host).list();
  if (json === true) return writeJson(host, { teams });
  for (const problem of problems) host.stderr.write(`retinue: ${stripControlCharacters(problem)}\n`);
  if (teams.length === 0) {
    host.stderr.write("There are no teams.\n");
    return 0;
  }
  host.stdout.write(
    renderTable({
      columns,
      rows: teams.map(rowOf),
      width: host.stdout.columns,
      paint: createPaint(host.stdout.isColourAllowed),
    }),
  );
  return 0;
}

function openTeams(host: CliHost): ProjectTeams {
  return openFolder(host).teams;
}

function rowOf({ name, members, tasks, lead, createdAt, cwd }: TeamSummary): readonly string[] {
  const count = (state: string): string => {
    const of = members.filter((member) => member.state === state).length;
    return of === 0 ? "" : `${of} ${state}`;
  };
  const states = ["working", "idle", "ended"].map(count).filter((text) => text !== "");
  const done = tasks.filter(({ status }) => status === "completed").length;
  const age = describeAge(Date.now() - createdAt);
  return [name, lead, states.join(", "), `${done}/${tasks.length}`, age, cwd].map(stripControlCharacters);
}

/** `retinue teams show NAME`. */
export async function teamsShow(
  { host }: CommandContext,
  name: string,
  { json }: TeamsOptions,
): Promise<number> {
  const teams = openTeams(host);
  const team = await teams.get(name);
  if (json === true) return writeJson(host, { team });
  const { lines } = await teams.board(name);
  const fields = [
    { label: "team", value: team.name },
    ...(team.description === "" ? [] : [{ label: "description", value: team.description }]),
    { label: "lead", value: `session ${team.leadSessionId} (${team.lead})` },
    { label: "folder", value: team.cwd },
    ...team.members.map((member) => ({
      label: member.name,
      value: [
        member.state,
        member.agentType,
        member.agentId,
        member.unread === 0 ? undefined : `${member.unread} unread`,
        member.lastEnding,
      ]
        .filter((text) => text !== undefined)
        .join(", "),
    })),
    ...team.tasks.map((task, at) => ({ label: `task ${task.id}`, value: lines[at] ?? "" })),
  ];
  host.stdout.write(
    renderFields(fields, createPaint(host.stdout.isColourAllowed), host.stdout.columns ?? 80),
  );
  return 0;
}

/** `retinue teams board NAME`. */
export async function teamsBoard(
  { host }: CommandContext,
  name: string,
  { json }: TeamsOptions,
): Promise<number> {
  const { tasks, lines, invalid } = await openTeams(host).board(name);
  if (json === true) return writeJson(host, { tasks, invalid });
  const broken = invalid.map(({ file, reason }) => `${file} is not a task: ${reason}`);
  const shown = [...lines, ...broken].map((line) => `${stripControlCharacters(line)}\n`);
  host.stdout.write(shown.length === 0 ? "The board has no tasks.\n" : shown.join(""));
  return 0;
}

/** `retinue teams messages NAME [MEMBER]`. */
export async function teamsMessages(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string | undefined },
  { json }: TeamsOptions,
): Promise<number> {
  const found = await openTeams(host).messages(name, member);
  if (json === true) return writeJson(host, { messages: found.map(({ to, mail }) => ({ to, ...mail })) });
  const paint = createPaint(host.stdout.isColourAllowed);
  for (const { to, mail, body } of found) {
    const head = `${mail.timestamp}  ${mail.from} → ${to}${mail.read ? "" : "  (unread)"}`;
    const lines = body.split("\n").map((line) => `  ${stripControlCharacters(line)}`);
    host.stdout.write(`${paint.dim(stripControlCharacters(head))}\n${lines.join("\n")}\n`);
  }
  if (found.length === 0) host.stderr.write("There are no messages.\n");
  return 0;
}

/** `retinue teams send NAME MEMBER TEXT`: a message of the person, who does not become a lead by it. */
export async function teamsSend(
  { host }: CommandContext,
  {
    name,
    member,
    words,
  }: { readonly name: string; readonly member: string; readonly words: readonly string[] },
): Promise<number> {
  const text = words.join(" ").trim();
  if (text === "")
    throw misuse("The message is missing.", `Write retinue teams send ${name} ${member} "text".`);
  const { to, isLed } = await openTeams(host).send(name, member, text);
  const note = isLed ? "" : " No process leads the team now; it is read when the session is continued.";
  host.stdout.write(`Sent to ${stripControlCharacters(to)}.${note}\n`);
  return 0;
}

/** `retinue teams stop NAME [MEMBER]`: ends members that run; their tasks go back to the board. */
export async function teamsStop(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string | undefined },
): Promise<number> {
  const giveUp = new AbortController();
  const forget = host.onInterrupt((reason) => giveUp.abort(reason));
  const options = { signal: giveUp.signal, member };
  try {
    for await (const { member: one, wasRunning } of openTeams(host).stop(name, options)) {
      const shown = stripControlCharacters(one);
      host.stdout.write(wasRunning ? `${shown} was stopped.\n` : `${shown} does not run.\n`);
    }
  } finally {
    forget();
  }
  return 0;
}

/** `retinue teams clean [NAME]`: removes teams that no process leads; a named one also when it has open tasks. */
export async function teamsClean(
  { host }: CommandContext,
  name: string | undefined,
  { force = false, dryRun = false }: TeamsOptions,
): Promise<number> {
  const teams = await openTeams(host).clean(name, { force, dryRun });
  for (const team of teams) {
    const shown = stripControlCharacters(team.name);
    if (!team.isRemoved) host.stdout.write(`kept  ${shown} (a running process leads it)\n`);
    else host.stdout.write(`${dryRun ? "would remove" : "removed"}  ${shown}\n`);
  }
  if (teams.length === 0) host.stdout.write("Nothing to clean up.\n");
  return 0;
}

/** `retinue teams watch NAME MEMBER`: shows what a member does until it ends; each line that is typed is a message to it. */
export async function teamsWatch(
  { host }: CommandContext,
  { name, member }: { readonly name: string; readonly member: string },
): Promise<number> {
  const teams = openTeams(host);
  // Before anything is shown: one that is not there is an error.
  await teams.messages(name, member);
  const stop = new AbortController();
  const forget = host.onInterrupt((reason) => stop.abort(reason));
  host.stdout.write(`${member} of ${name}. What you type is sent to it.\n`);
  const typing = sendLines(host.stdin.lines({ signal: stop.signal }), (text) =>
    teams.send(name, member, text),
  );
  try {
    for await (const line of teams.watch(name, member, { signal: stop.signal }))
      host.stdout.write(`${stripControlCharacters(line)}\n`);
    host.stdout.write(`${member} is no longer running.\n`);
    return stop.signal.aborted ? exitCodeOf(stop.signal.reason) : 0;
  } finally {
    stop.abort();
    forget();
    await typing;
  }
}

async function sendLines(
  lines: AsyncIterable<string>,
  send: (text: string) => Promise<unknown>,
): Promise<void> {
  try {
    for await (const line of lines) if (line.trim() !== "") await send(line.trim());
  } catch {
    // The view continues without what is typed.
  }
}

function writeJson(host: CliHost, value: object): number {
  host.stdout.write(`${JSON.stringify({ version: 1, ...value }, undefined, 2)}\n`);
  return 0;
}
