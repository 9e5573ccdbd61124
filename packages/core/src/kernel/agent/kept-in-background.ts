import { type BackgroundRight, backgroundRights } from "@retinue/gate/permission-policy.ts";
import type { TaskControl } from "../../tasks/task-manager.ts";
import type { Stopwatch } from "../../tasks/watch-run.ts";
import type { RuntimeContext } from "../runtime-context.ts";

/** What children of a session keep when no one waits for them: as settings say, else as its host does. */
export function keptInBackground({
  live,
  discovered,
}: Pick<RuntimeContext, "live" | "discovered">): readonly BackgroundRight[] {
  const { mcpTools, questions } = discovered.settings.settings.plain.backgroundAgents ?? {};
  const isHosted = live?.attendsBackground === true;
  const kept = {
    mcpTools: mcpTools ?? isHosted,
    questions: questions === undefined ? isHosted : questions === "ask",
  };
  return backgroundRights.filter((right) => kept[right]);
}

/** The clock of a parent, which stands still for questions of a child only as long as the parent waits for that child. */
export function heldWhileWaiting(
  stopwatch: Stopwatch,
  { attended, unattended }: Pick<TaskControl, "attended" | "unattended">,
): Stopwatch {
  return {
    ...stopwatch,
    async hold(wait) {
      if (!attended()) return wait();
      const answer = wait();
      const moved = Promise.withResolvers<void>();
      const move = (): void => moved.resolve();
      unattended.addEventListener("abort", move, { once: true });
      try {
        await stopwatch.hold(() => Promise.race([answer, moved.promise]));
      } finally {
        unattended.removeEventListener("abort", move);
      }
      return answer;
    },
  };
}
