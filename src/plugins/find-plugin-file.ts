// @io
import { realpath } from "node:fs/promises";
import type { Diagnostic } from "../foundation/diagnostic.ts";
import { isFile } from "./load-plugin.ts";
import { isWithin } from "./plugin-agent-places.ts";

export interface PluginFile {
  readonly file: string;
  readonly root: string;
  /** The manifest names it, so it has to be there. */
  readonly isNamed: boolean;
  /** What is said where it is missing. */
  readonly missing: Pick<Diagnostic, "severity" | "message">;
}

export type FoundPluginFile =
  | { readonly type: "usable" }
  /** It need not be there. */
  | { readonly type: "absent" }
  | { readonly type: "refused"; readonly diagnostic: Diagnostic };

/** Whether a file of a plugin can be read; a link that leads out of the plugin is not followed. */
export async function findPluginFile({ file, root, isNamed, missing }: PluginFile): Promise<FoundPluginFile> {
  const lacking: FoundPluginFile = {
    type: "refused",
    diagnostic: {
      ...missing,
      code: "plugin-path-missing",
      file,
      advice: "Fix the path in `.claude-plugin/plugin.json`, or add the file.",
    },
  };
  if (!(await isFile(file))) return isNamed ? lacking : { type: "absent" };
  try {
    const [real, home] = await Promise.all([realpath(file), realpath(root)]);
    return isWithin(home, real)
      ? { type: "usable" }
      : { type: "refused", diagnostic: linkOutsidePlugin(file, "file") };
  } catch {
    return lacking;
  }
}

export function linkOutsidePlugin(file: string, what: string): Diagnostic {
  return {
    severity: "warning",
    code: "link-outside-plugin",
    file,
    message: "This link leads out of the plugin and was not followed.",
    advice: `Copy the ${what} into the plugin.`,
  };
}
