import { startTortureProvider } from "../torture-provider.ts";
import { torturedWorktrees } from "../tortured-worktrees.ts";
import type { TortureMode } from "./torture-mode.ts";

/** `npm run torture -- worktrees`: kills a main agent ten times while 25 worktrees are made, and cleans up. */
export const run: TortureMode = async ({ rounds = 10, random, say }) => {
  await using provider = await startTortureProvider("worktrees");
  const left = await torturedWorktrees({ provider, random, kills: rounds, say });
  const { folders, branches, records, canAdd, isOthersKept } = left;
  for (const name of [...folders, ...branches, ...records]) say(`  left: ${name}`);
  say(
    `${folders.length} folders, ${branches.length} branches and ${records.length} records of git are left; git ${canAdd ? "can" : "cannot"} make another worktree; those of others are ${isOthersKept ? "kept" : "gone"}.`,
  );
  return folders.length + branches.length + records.length === 0 && canAdd && isOthersKept;
};
