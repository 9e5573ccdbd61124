import { projectPaths } from "../../../../runtime/project/create-project.ts";
import type { FoundTask } from "../../../../runtime/project/project-tasks.ts";
import type { CliHost } from "../../cli-host.ts";
import { openTasks } from "../../gather-session.ts";

/** The folder in which this project's sessions are kept. */
export function transcriptsOf({ cwd, home, environment: env, platform }: CliHost): string {
  return projectPaths({ cwd, home, env, platform }).transcripts;
}

/** The one child with this id, the beginning of its id, or its name; what is no id is refused before anything is read. */
export function findNamedTask(host: CliHost, written: string): Promise<FoundTask> {
  return openTasks(host).get(written);
}
