import { existsSync } from "node:fs";
import { join } from "node:path";
import type { GatheredSession } from "../../gather-session.ts";

export interface NewOptions {
  readonly name?: string;
  readonly description?: string;
  readonly tools?: string;
  readonly model?: string;
  readonly scope?: string;
  readonly prompt?: string;
  readonly force?: boolean;
}

export type NewScope = "project" | "user";

/** The nearest agents folder there is, or the one at the project's root. */
export function folderFor(scope: NewScope, { discovered }: GatheredSession): string {
  const { agents, projectRoot } = discovered.paths;
  if (scope === "user") return agents.user;
  const existing = agents.project.find((folder) => existsSync(folder));
  return existing ?? join(projectRoot, ".claude", "agents");
}
