/** What an agent that only looks must not have; everything else of the parent's tools stays. */
export const toolsDeniedToReaders: readonly string[] = [
  "Write",
  "Edit",
  "NotebookEdit",
  "Task",
  "EnterPlanMode",
  "ExitPlanMode",
  "AskUserQuestion",
  "KillShell",
];
