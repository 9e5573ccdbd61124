// @io
import { realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { quote } from "@retinue/base/foundation/json-record.ts";
import { isInside } from "@retinue/gate/permission-policy.ts";
import { type AgentPlan, type Decided, startOf } from "../../planning/agent-plan.ts";

type FoundStart =
  | { readonly type: "found"; readonly cwd?: Decided<string> }
  | { readonly type: "refused"; readonly reason: string };

/** The folder that a call or a definition names to start in, as it really is. */
export async function findStart(
  { call, definition }: { readonly call: string | undefined; readonly definition: string | undefined },
  above: Pick<AgentPlan, "cwd" | "directory">,
): Promise<FoundStart> {
  const written = call ?? definition;
  if (written === undefined) return { type: "found" };
  const from = call === undefined ? "the definition" : "the call";
  const folder = await realpath(resolve(startOf(above), written)).catch(() => undefined);
  if (folder === undefined)
    return {
      type: "refused",
      reason: `\`cwd\` of ${from} is ${quote(written, 200)}, which is not there.`,
    };
  return { type: "found", cwd: { value: folder, from } };
}

/** Why an agent cannot start where its plan says: it is no folder, or none of those it works in. */
export async function refuseStart({
  cwd,
  policy,
}: Pick<AgentPlan, "cwd" | "policy">): Promise<string | undefined> {
  if (cwd === undefined) return undefined;
  const { value, from } = cwd;
  const folders = await Promise.all(
    policy.workingDirectories.map((folder) => realpath(folder).catch(() => folder)),
  );
  const named = `\`cwd\` of ${from} is ${value}`;
  const real = await realpath(value).catch(() => undefined);
  const isFolder = real !== undefined && (await stat(real)).isDirectory();
  if (!isFolder) return `${named}, which is no folder.`;
  if (isInside(real, folders)) return undefined;
  return `${named}, which is outside of the folders that the agent works in: ${policy.workingDirectories.join(", ")}.`;
}
