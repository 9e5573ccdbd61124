import { type Paths, projectPaths } from "@retinue/core/kernel/project/create-project.ts";
import type { FoundTask } from "@retinue/core/kernel/project/project-tasks.ts";
import type { CliHost } from "./cli-host.ts";
import { openTasks } from "./open-project.ts";

/** Where everything of this folder and this user is. */
export function pathsOf({ cwd, home, environment: env, platform }: CliHost): Paths {
  return projectPaths({ cwd, home, env, platform });
}

/** The folder in which this project's sessions are kept. */
export function transcriptsOf(host: CliHost): string {
  return pathsOf(host).transcripts;
}

/** The one child with this id, the beginning of its id, or its name; what is no id is refused before anything is read. */
export function findNamedTask(host: CliHost, written: string): Promise<FoundTask> {
  return openTasks(host).get(written);
}
