import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { KeyPlace } from "@retinue/core/kernel/project/project-keys.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { describeRefusal } from "../shared/describe-refusal.ts";
import { misuse } from "../shared/misuse.ts";
import { openProject } from "../shared/open-project.ts";
import { untilInterrupted } from "./mcp/mcp-list.ts";

export interface AuthLoginOptions {
  readonly keep?: string;
  readonly fromVariable?: string;
}

const maxKeyBytes = 4_000;

/** `retinue auth login`: takes a key, tries it, and keeps it where only this person can read it; never in a project. */
export async function authLogin(context: CommandContext, options: AuthLoginOptions): Promise<number> {
  const { host } = context;
  const { keys, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  if (options.fromVariable !== undefined) {
    if (options.keep !== undefined)
      throw misuse("--from-variable keeps no key, so it cannot be combined with --keep.");
    const file = await keys.useVariable(options.fromVariable);
    host.stdout.write(`${nameOf(file)} takes the key from ${options.fromVariable}.\n`);
    return 0;
  }
  const place: KeyPlace = options.keep === "keychain" ? "keychain" : "settings";
  const { settingsFile } = await keys.look();
  const where = place === "keychain" ? "the keychain" : `${nameOf(settingsFile)}, which only you can read`;
  if (host.canAsk) host.stdout.write(`The key will be kept in ${where}.\n`);
  const key = await readKey(context);
  const account = await untilInterrupted(context, (signal) => keys.check({ key, signal }));
  const refusal = account === undefined ? undefined : describeRefusal(account);
  if (refusal?.level === "error")
    throw new RetinueError("key-refused", refusal.text, { advice: "Nothing was kept." });
  if (refusal !== undefined) host.stderr.write(`retinue: ${refusal.text}\n`);
  await keys.save(key, place);
  const works = account?.type === "listed" ? ` ${account.host} accepts it.` : "";
  host.stdout.write(`The key is kept in ${where}.${works} \`retinue auth logout\` forgets it.\n`);
  return 0;
}

/** `retinue auth logout`: forgets what `retinue auth login` has kept. */
export async function authLogout(context: CommandContext): Promise<number> {
  const wasThere = await openProject(context, { toleratesBrokenFiles: true }).keys.remove();
  context.host.stdout.write(
    wasThere ? "The key is forgotten.\n" : "No key was kept here; nothing was changed.\n",
  );
  return 0;
}

async function readKey({ host }: CommandContext): Promise<string> {
  if (host.canAsk)
    return (
      await host.ask("Paste the key (it is not shown): ", { isHidden: true }).finally(host.endQuestions)
    ).trim();
  if (host.stdin.isTerminal) throw misuse("No one can be asked for a key here.", piping);
  const key = (await host.stdin.readAll({ limit: maxKeyBytes })).trim();
  if (key === "") throw misuse("Nothing was piped in.", piping);
  return key;
}

const piping = "Pipe it in: `retinue auth login < FILE`, or name a variable with --from-variable.";
