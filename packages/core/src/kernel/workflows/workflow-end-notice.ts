import { escapeControlTags } from "@retinue/base/foundation/escape-control-tags.ts";
import type { UserMessage } from "../../conversation/message.ts";
import { type WorkflowRunState, workflowTotals } from "../../protocol/workflow-state.ts";

/** Of a result the model reads so many characters; the whole is in the output file. */
const maxResult = 8000;

/** What the agent that started a workflow is shown at its end. */
export function workflowEndNotice(state: WorkflowRunState): UserMessage {
  const { taskId, callId, outputFile, status, failures, runId, scriptPath, errorLine } = state;
  const totals = workflowTotals(state);
  const lines = [
    "<task-notification>",
    `<task-id>${taskId}</task-id>`,
    ...(callId === undefined ? [] : [`<tool-use-id>${callId}</tool-use-id>`]),
    ...(outputFile === undefined ? [] : [`<output-file>${outputFile}</output-file>`]),
    `<status>${status}</status>`,
    `<summary>${inXml(workflowSummary(state))}</summary>`,
    ...(state.result === undefined ? [] : [`<result>${shownResult(state.result, outputFile)}</result>`]),
    ...(errorLine === undefined
      ? []
      : [`<diagnostics>The error came from line ${errorLine} of the script.</diagnostics>`]),
    ...(status === "failed"
      ? [
          `<recovery>Finished steps are kept. After a correction, call Workflow with ${scriptPath === undefined ? "the script" : `scriptPath ${JSON.stringify(scriptPath)}`} and resumeFromRunId ${JSON.stringify(runId)}: only what changed or failed runs again.</recovery>`,
        ]
      : []),
    ...(failures.length === 0 ? [] : [`<failures>${inXml(failures.join("\n"))}</failures>`]),
    "<usage>",
    `<agent_count>${totals.agents}</agent_count>`,
    `<agents_done>${totals.done}</agents_done>`,
    `<agents_error>${totals.failed}</agents_error>`,
    `<agents_skipped>${totals.skipped}</agents_skipped>`,
    `<agents_empty_result>${totals.empty}</agents_empty_result>`,
    ...(totals.taken === 0 ? [] : [`<agents_cached>${totals.taken}</agents_cached>`]),
    `<subagent_tokens>${totals.tokens}</subagent_tokens>`,
    `<tool_uses>${totals.toolUses}</tool_uses>`,
    `<duration_ms>${(state.endedAt ?? state.startedAt) - state.startedAt}</duration_ms>`,
    "</usage>",
    "</task-notification>",
  ];
  return { role: "user", content: [{ type: "text", text: lines.join("\n") }] };
}

/** How a run ended, in a sentence. */
export function workflowSummary({ description, status, error }: WorkflowRunState): string {
  const what = `Dynamic workflow ${JSON.stringify(description)}`;
  if (status === "failed") return `${what} failed: ${error ?? "unknown error"}`;
  return status === "killed" ? `${what} was stopped` : `${what} ${status}`;
}

function shownResult(result: string, outputFile: string | undefined): string {
  if (result.length <= maxResult) return inXml(result);
  const where = outputFile === undefined ? "" : ` The whole is in ${outputFile}.`;
  return `${inXml(result.slice(0, maxResult))}… [${result.length} characters.${where}]`;
}

/** As text between tags, which it cannot close. */
function inXml(text: string): string {
  return escapeControlTags(text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;"));
}
