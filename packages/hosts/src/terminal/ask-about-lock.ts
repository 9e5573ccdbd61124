import { mayHaveLock } from "@retinue/core/kernel/project/lock/may-have-lock.ts";
import type { CommandContext } from "../shared/command-context.ts";

/** Before a conversation in a folder that was trusted and whose configuration is not the one that was accepted: shows what changed, and asks. */
export async function askAboutLock(context: CommandContext): Promise<void> {
  const { host, session } = context;
  // Nearly no folder has a lock, and what compares is not loaded for those.
  const { cwd, home, environment: env, platform } = host;
  if (!host.canAsk || session.trust === true || !mayHaveLock({ cwd, home, env, platform })) return;
  const [{ openProject }, { describeChanges }, { createPaint }] = await Promise.all([
    import("../shared/open-project.ts"),
    import("../commands/trust.ts"),
    import("../shared/paint.ts"),
  ]);
  const { trust } = openProject(context, { toleratesBrokenFiles: true });
  const { answer, lock } = await trust.changes();
  if (answer.trusted || answer.changed === undefined) return;
  const lines = describeChanges({ answer, lock }, createPaint(host.stdout.isColourAllowed));
  host.stdout.write(`${answer.folder} was trusted, and changed since.\n${lines.join("\n")}\n\n`);
  if (lock.type === "broken") return;
  const reply = await host.ask("Trust it as it is now? [y/N] ").finally(host.endQuestions);
  if (/^y(?:es)?$/i.test(reply.trim())) await trust.grant(lock);
  else host.stdout.write("It is treated as not trusted: its hooks, servers and allow rules are held back.\n");
}
