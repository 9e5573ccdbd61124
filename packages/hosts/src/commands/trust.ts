import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import type { ProjectTrust, TrustOverview, WaitingPart } from "@retinue/core/kernel/project/project-trust.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse } from "../shared/misuse.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint, type Paint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

export interface TrustOptions {
  readonly show?: boolean;
  readonly remove?: boolean;
  readonly yes?: boolean;
  readonly json?: boolean;
}

/** `retinue trust`: shows what waits for trust, asks, and writes the answer where Claude Code keeps it too. */
export async function trust(
  context: CommandContext,
  folder: string | undefined,
  options: TrustOptions,
): Promise<number> {
  refuseContradiction(options);
  const host = { ...context.host, cwd: findFolder(context.host.cwd, folder) };
  const { trust: _forThisRun, ...session } = context.session;
  const project = openProject({ ...context, host, session }, { toleratesBrokenFiles: true });
  const { nameOf } = project;
  const found = await project.trust.show({ pathText: nameOf });
  if (options.json === true) {
    host.stdout.write(`${JSON.stringify(trustAsJson(found, nameOf), undefined, 2)}\n`);
    return 0;
  }
  if (options.remove === true) return remove(context, found, project.trust);
  host.stdout.write(describeTrust(found, nameOf, createPaint(host.stdout.isColourAllowed)));
  if (options.show === true || found.answer.trusted) return 0;
  if (!(await isWanted(context, options))) {
    host.stdout.write("Nothing was changed.\n");
    return 1;
  }
  const folderNow = await project.trust.grant();
  host.stdout.write(`${folderNow} is trusted now. \`retinue trust --remove\` takes it back.\n`);
  return 0;
}

function refuseContradiction({ show, remove: takesBack, yes, json }: TrustOptions): void {
  if (takesBack === true && (show === true || yes === true || json === true))
    throw misuse("--remove takes no other options: it takes trust back without a question.");
  if (yes === true && (show === true || json === true))
    throw misuse("--show and --json change nothing.", "Leave out --yes.");
}

function findFolder(cwd: string, written = "."): string {
  const folder = resolve(cwd, written);
  const stats = statSync(folder, { throwIfNoEntry: false });
  if (stats?.isDirectory() === true) return realpathSync(folder);
  throw misuse(
    `${quote(written, 300)} is not a folder.`,
    "Name the folder of a project, or none for this one.",
  );
}

async function isWanted({ host }: CommandContext, { yes }: TrustOptions): Promise<boolean> {
  if (yes === true) return true;
  if (!host.canAsk) {
    throw misuse(
      "Without a terminal to ask in, `retinue trust` needs --yes.",
      "Read what it lists first. For one run without storing anything: --trust.",
    );
  }
  const answer = await host.ask("Trust this folder? [y/N] ").finally(host.endQuestions);
  return /^y(?:es)?$/i.test(answer.trim());
}

async function remove(
  { host }: CommandContext,
  { answer }: TrustOverview,
  trusting: ProjectTrust,
): Promise<number> {
  if (!answer.trusted) {
    host.stdout.write(`${answer.folder} is not trusted; nothing was changed.\n`);
    return 0;
  }
  const { folder, still } = await trusting.revoke();
  host.stdout.write(`${folder} is not trusted any more.\n`);
  if (still === undefined) return 0;
  host.stderr.write(`This folder is still trusted: ${still}. Run it again to take that back too.\n`);
  return 1;
}

const titles: Readonly<Record<WaitingPart["kind"], string>> = {
  runs: "Would run programs",
  variable: "Would set variables for every command",
  right: "Would allow without asking",
  setting: "Other settings that would count",
};

function describeTrust(
  { answer, parts, nested, isolation }: TrustOverview,
  nameOf: (file: string) => string,
  paint: Paint,
): string {
  const heading = answer.trusted ? `Trusted: ${answer.why}.` : `Not trusted: ${answer.folder}`;
  const groups = Map.groupBy(parts, ({ kind }) => kind);
  const sections = [...groups].flatMap(([kind, members]) => [
    "",
    paint.bold(titles[kind]),
    ...members.map((part) => `  ${lineOf(part, paint)}`),
  ]);
  const nothing =
    parts.length === 0
      ? ["", "Nothing in it waits for trust today; what is added later would count immediately."]
      : [];
  const isolated = [isolation.text, isolation.advice].filter((text) => text !== undefined).join(" ");
  const lines = [stripControlCharacters(heading), isolated, ...sections, ...nothing];
  return `${[...lines, ...nestedLines(nested, nameOf, paint), ""].join("\n")}\n`;
}

/** What they hold is shown by `retinue trust --show` in their folder. */
function nestedLines(
  { files, isCut }: TrustOverview["nested"],
  nameOf: (file: string) => string,
  paint: Paint,
): readonly string[] {
  if (files.length === 0) return [];
  const more = isCut ? ["  …"] : [];
  const title = "Would also count when work begins in their folder; `retinue trust --show FOLDER` shows";
  return [
    "",
    paint.bold(title),
    ...files.map((file) => `  ${stripControlCharacters(nameOf(file))}`),
    ...more,
  ];
}

function trustAsJson({ answer, parts, nested, isolation }: TrustOverview, nameOf: (file: string) => string) {
  const { trusted, folder, why } = answer;
  return {
    version: 1,
    folder,
    trusted,
    why,
    parts,
    nested: nested.files.map(nameOf),
    isolated: isolation.isIsolated,
  };
}

function lineOf({ name, value, from }: WaitingPart, paint: Paint): string {
  const words = value === undefined ? name : `${name}: ${value}`;
  return `${stripControlCharacters(words)}  ${paint.dim(stripControlCharacters(`(${from})`))}`;
}
