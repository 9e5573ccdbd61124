import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import type { TrustOverview } from "@retinue/core/kernel/project/project-trust.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { misuse } from "../shared/misuse.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint, type Paint } from "../shared/paint.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";
import { waitingSections } from "../shared/waiting-sections.ts";
import { paintLines } from "./agents/agents-lock.ts";
import { differenceLines, openDifferences } from "./agents/lock-report.ts";

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
  const { show, remove: takesBack, yes, json } = options;
  if (takesBack === true && (show === true || yes === true || json === true))
    throw misuse("--remove takes no other options: it takes trust back without a question.");
  if (yes === true && (show === true || json === true))
    throw misuse("--show and --json change nothing.", "Leave out --yes.");
  const host = { ...context.host, cwd: findFolder(context.host.cwd, folder) };
  const { trust: _forThisRun, ...session } = context.session;
  const project = openProject({ ...context, host, session }, { toleratesBrokenFiles: true });
  const { nameOf } = project;
  const found = await project.trust.show({ pathText: nameOf });
  if (options.json === true) {
    host.stdout.write(`${JSON.stringify(trustAsJson(found, nameOf), undefined, 2)}\n`);
    return 0;
  }
  if (options.remove === true) {
    const { answer } = found;
    if (!answer.trusted) {
      context.host.stdout.write(`${answer.folder} is not trusted; nothing was changed.\n`);
      return 0;
    }
    const { folder, still } = await project.trust.revoke();
    context.host.stdout.write(`${folder} is no longer trusted.\n`);
    if (still === undefined) return 0;
    context.host.stderr.write(
      `This folder is still trusted: ${still}. Run it again to take that back too.\n`,
    );
    return 1;
  }
  host.stdout.write(describeTrust(found, nameOf, createPaint(host.stdout.isColourAllowed)));
  if (options.show === true || found.answer.trusted) return 0;
  if (!(await isWanted(context, options))) {
    host.stdout.write("Nothing was changed.\n");
    return 1;
  }
  // What was shown is what is accepted, whatever became of the files meanwhile.
  const folderNow = await project.trust.grant(found.lock);
  host.stdout.write(`${folderNow} is trusted now. \`retinue trust --remove\` takes it back.\n`);
  return 0;
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

function describeTrust(
  { answer, parts, nested, isolation, lock }: TrustOverview,
  nameOf: (file: string) => string,
  paint: Paint,
): string {
  const changed = answer.trusted ? undefined : answer.changed;
  const why = changed === undefined ? "" : `, because ${changed}`;
  const heading = answer.trusted ? `Trusted: ${answer.why}.` : `Not trusted: ${answer.folder}${why}`;
  const sections = waitingSections(parts).flatMap(({ title, members }) => [
    "",
    paint.bold(title),
    ...members.map(({ text, from }) => `  ${text}  ${paint.dim(`(${from})`)}`),
  ]);
  const nothing =
    parts.length === 0
      ? ["", "Nothing in it waits for trust today; what is added later would count immediately."]
      : [];
  const isolated = [isolation.text, isolation.advice].filter((text) => text !== undefined).join(" ");
  const lines = [
    stripControlCharacters(heading),
    isolated,
    ...describeChanges({ answer, lock }, paint),
    ...sections,
    ...nothing,
  ];
  return `${[...lines, ...nestedLines(nested, nameOf, paint), ""].join("\n")}\n`;
}

/** What changed since the configuration of a trusted folder was accepted. */
export function describeChanges(
  { answer, lock }: Pick<TrustOverview, "answer" | "lock">,
  paint: Paint,
): readonly string[] {
  if (lock.type === "none") {
    const isGone = !answer.trusted && answer.changed !== undefined;
    return isGone ? ["", goneAdvice] : [];
  }
  if (lock.type === "broken")
    return lock.diagnostics.flatMap(({ message, advice }) => ["", paint.error(message), advice ?? ""]);
  const open = openDifferences(lock.differences);
  if (open.length === 0) return [];
  return [
    "",
    paint.bold("Changed since retinue.lock was written"),
    ...open.flatMap((difference) => paintLines(differenceLines(difference), paint).split("\n")).map(indent),
  ];
}

const goneAdvice =
  "retinue.lock was here and is gone, so nothing says what was accepted. Bring it back from version control, or read what the folder may do.";

function indent(line: string): string {
  return `  ${line}`;
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

function trustAsJson(
  { answer, parts, nested, isolation, lock }: TrustOverview,
  nameOf: (file: string) => string,
) {
  const { trusted, folder, why } = answer;
  return {
    version: 1,
    folder,
    trusted,
    why,
    parts,
    nested: nested.files.map(nameOf),
    isolated: isolation.isIsolated,
    ...(lock.type === "none" ? {} : { lock: lockJson(lock) }),
  };
}

function lockJson(lock: Exclude<TrustOverview["lock"], { readonly type: "none" }>) {
  if (lock.type === "broken") return { fits: false, diagnostics: lock.diagnostics };
  const differences = openDifferences(lock.differences);
  return { fits: differences.length === 0, differences };
}
