import type { AccountModels } from "@retinue/core/kernel/project/project-keys.ts";

/** What a person should know about a key that was tried; undefined where it works. */
export function describeRefusal(
  account: AccountModels,
): { readonly level: "error" | "warning"; readonly text: string } | undefined {
  if (account.type === "refused")
    return {
      level: "error",
      text: `${account.host} refuses the key (status ${account.status}). Check that it is complete, not revoked, and meant for this address.`,
    };
  if (account.type === "unknown")
    return { level: "warning", text: `The key could not be tried with ${account.host}: ${account.why}.` };
  return undefined;
}
