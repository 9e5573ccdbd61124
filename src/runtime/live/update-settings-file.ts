import { join } from "node:path";
import type { JsonRecord } from "../../foundation/json-record.ts";
import { changeJson } from "../../settings/approve-mcp-servers.ts";
import type { Paths } from "../../settings/paths.ts";
import { staysInside } from "../../settings/write-local-rules.ts";

/** Writes top-level keys to a settings file of the person; `null` removes a key. */
export async function updateSettingsFile(
  { projectRoot, settings: { user } }: Pick<Paths, "projectRoot" | "settings">,
  source: "localSettings" | "userSettings",
  settings: JsonRecord,
): ReturnType<typeof changeJson> {
  const local = join(projectRoot, ".claude", "settings.local.json");
  if (source === "localSettings" && !(await staysInside(local, projectRoot)))
    return { type: "refused", file: local, why: `${local} is a link that leads out of the project` };
  const changes = Object.entries(settings).map(([key, value]) => ({
    path: [key],
    value: value ?? undefined,
  }));
  return changeJson(source === "userSettings" ? user : local, () => changes);
}
