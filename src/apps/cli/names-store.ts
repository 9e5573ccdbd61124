import type { CliHost } from "./cli-host.ts";

/** Commands that only make sense with a store. */
const storeCommands = new Set(["serve", "store"]);
/** Commands that look into a store where one is named. */
const sharedCommands = new Set([
  "tasks",
  "logs",
  "stop",
  "resume",
  "inspect",
  "clean",
  "run-plan",
  "plan",
  "doctor",
  "approvals",
  "approve",
  "deny",
  "studio",
]);

/** Whether arguments are about agents in a store rather than in this process. */
export function namesStore(
  arguments_: readonly string[],
  { environment }: Pick<CliHost, "environment">,
): boolean {
  const end = arguments_.indexOf("--");
  const own = end === -1 ? arguments_ : arguments_.slice(0, end);
  if (storeCommands.has(own[0] ?? "")) return true;
  if (own.some((word) => word === "--store" || word.startsWith("--store="))) return true;
  const isShared = sharedCommands.has(own[0] ?? "") || own.includes("-p") || own.includes("--print");
  return isShared && (environment["RETINUE_STORE"] ?? "") !== "";
}
