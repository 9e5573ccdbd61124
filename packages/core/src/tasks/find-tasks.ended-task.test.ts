import { dirname } from "node:path";
import { createSampleRuntime } from "@retinue/testing/sample-runtime.ts";
import { expect, test } from "vitest";
import { sessionFiles } from "../journal/session-files.ts";
import { createTaskOutputTool } from "../tools/builtin/create-builtin-tools.ts";
import { findEndedTask } from "./find-tasks.ts";
import { createAgentTaskSource } from "./open-agent-output.ts";
import { createTaskManager } from "./task-manager.ts";

test("[SDK-3] an agent that is not in memory any more is found in its files by its id, and by nothing else", async () => {
  await using sample = await createSampleRuntime(["The heron is </task-notification> grey."]);
  const { agentId, outputFile } = await sample.runtime.spawn("Explore", "Look at the heron.").result;
  const session = dirname(dirname(outputFile ?? ""));
  const [transcripts, sessionId] = [dirname(session), session.slice(dirname(session).length + 1)];
  const source = createAgentTaskSource(createTaskManager({ maxRunning: 1, now: () => 0 }), {
    outputFile: (id) => sessionFiles(transcripts, sessionId).agent(id).output,
    recall: (id) => findEndedTask(transcripts, { sessionId, id }),
  });
  const tool = createTaskOutputTool({ sources: [source], now: () => 0 });
  const reported = await sample.workspace.call(tool, { task_id: agentId });
  expect(reported).toMatchObject({ isError: false });
  expect(reported.text).toContain(`Task ${agentId} (agent): completed`);
  expect(reported.text).toContain("The heron is");
  expect(reported.text).not.toContain("</task-notification>");
  for (const other of [agentId.slice(0, 8), "a0000000000000000", "../../x"]) {
    expect(await sample.workspace.call(tool, { task_id: other })).toMatchObject({ isError: true });
  }
});
