import { realpathSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { shown } from "../../../foundation/json-record.ts";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import { projectFiles } from "../../../settings/load-mcp-entries.ts";
import { createTrustStore, type TrustOutcome, type TrustStore } from "../../../settings/trust-store.ts";
import { gatherMcpOf } from "../gather-mcp.ts";
import type { GatheredSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { createPaint } from "../views/paint.ts";
import { findNestedConfiguration, type NestedConfiguration } from "./agents/find-nested-configuration.ts";
import { describeTrust, trustAsJson } from "./describe-trust.ts";
import { gatherSkills } from "./gather-skills.ts";

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
  const { session: gathered, catalog } = await gatherSkills(
    { ...context, host, session },
    { toleratesBrokenFiles: true },
  );
  const { stateFile } = gathered.discovered.paths;
  const store = createTrustStore({ stateFile, home: host.home });
  const { diagnostic } = gathered.trust.trusted ? {} : gathered.trust;
  if (diagnostic !== undefined) {
    const advice = diagnostic.advice === undefined ? {} : { advice: diagnostic.advice };
    throw new RetinueError("state-file", `Trust cannot be read: ${diagnostic.message}`, advice);
  }
  const { entries: servers } = (await gatherMcpOf(gathered, { host, session })).gathered;
  const brought = {
    servers,
    skills: [...catalog.list(), ...catalog.shadowed],
    nested: await findNested(gathered),
  };
  if (options.json === true) {
    host.stdout.write(`${JSON.stringify(trustAsJson(gathered, brought), undefined, 2)}\n`);
    return 0;
  }
  if (options.remove === true) return remove(context, { store, folder: host.cwd, gathered });
  host.stdout.write(describeTrust(gathered, brought, createPaint(host.stdout.isColourAllowed)));
  if (options.show === true || gathered.trust.trusted) return 0;
  if (!(await isWanted(context, options))) {
    host.stdout.write("Nothing was changed.\n");
    return 1;
  }
  const stored = orError(await store.trust(host.cwd));
  host.stdout.write(`${stored.folder} is trusted now. \`retinue trust --remove\` takes it back.\n`);
  return 0;
}

/** Those that this folder does not take its settings from anyway. */
async function findNested({ discovered: { paths } }: GatheredSession): Promise<NestedConfiguration> {
  const { project, local } = paths.settings;
  const known = new Set([...project, ...local, ...projectFiles(paths)]);
  const { files, isCut } = await findNestedConfiguration(paths.cwd);
  return { files: files.filter((file) => !known.has(file)), isCut };
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
    `${shown(written, 300)} is not a folder.`,
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
  {
    store,
    folder,
    gathered,
  }: { readonly store: TrustStore; readonly folder: string; readonly gathered: GatheredSession },
): Promise<number> {
  if (!gathered.trust.trusted) {
    host.stdout.write(`${gathered.trust.folder} is not trusted; nothing was changed.\n`);
    return 0;
  }
  const stored = orError(await store.untrust(folder));
  host.stdout.write(`${stored.folder} is not trusted any more.\n`);
  const after = await store.isTrusted(folder);
  if (!after.trusted) return 0;
  host.stderr.write(`This folder is still trusted: ${after.why}. Run it again to take that back too.\n`);
  return 1;
}

function orError(outcome: TrustOutcome): TrustOutcome {
  if (outcome.type === "stored") return outcome;
  const advice = outcome.diagnostic?.advice;
  throw new RetinueError(
    "trust-refused",
    `Trust was not changed: ${outcome.why}.`,
    advice === undefined ? {} : { advice },
  );
}
