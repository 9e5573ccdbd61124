import { isRetinueError, type RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { workflowFiles } from "../../journal/session-files.ts";
import { builtinTool, failed } from "../../tools/builtin/builtin-tool.ts";
import * as t from "../../tools/input-type.ts";
import type { Tool, ToolContext } from "../../tools/tool.ts";
import type { Capability } from "../agent/open-agent.ts";
import { previewWorkflow } from "./bill-workflow.ts";
import type { FoundWorkflow, SessionWorkflows } from "./session-workflows.ts";

interface WorkflowToolOptions {
  readonly workflows: SessionWorkflows;
  /** How large workflows are that a model writes; advice only. */
  readonly size?: string | undefined;
  /** Whether the folder's own files may be run by a rule alone. */
  readonly isTrusted: () => boolean;
  readonly transcripts: string;
}

const optional = (description: string) => t.string().optional().describe(description);

const input = t
  .object({
    script: t.string().max(524_288).optional().describe("The text of a workflow script, to run it once."),
    name: optional("The name of a saved workflow."),
    scriptPath: optional("A file with a workflow script, such as one that an earlier call has named."),
    args: t.unknown().optional().describe("What the script reads as `args`: any JSON value."),
    resumeFromRunId: t
      .string()
      .regex(/^wf_[a-z0-9-]{6,}$/)
      .optional()
      .describe("An earlier run: its finished steps are taken from its journal, whatever else changed."),
    title: optional("Ignored."),
    description: optional("Ignored."),
    phases: t.unknown().optional().describe("Ignored."),
  })
  .refine(
    ({ script, name, scriptPath }) => script !== undefined || name !== undefined || scriptPath !== undefined,
    {
      message: "give script, name or scriptPath",
    },
  );

/** What a call was found to mean when it was decided about; that is what runs. */
interface Prepared {
  readonly found?: FoundWorkflow;
  /** What is wrong with it, so that no question is needed. */
  readonly failure?: RetinueError;
}

/** The tool with which the main agent starts workflows, and the one question about each start. */
export interface WorkflowCalls {
  /** The call returns immediately; the result comes as a notice. */
  readonly tool: Tool;
  /** Reads the script before the question, and shows it whole. */
  readonly beforeCall: NonNullable<Capability["beforeCall"]>;
}

type Input = t.Infer<typeof input>;

export function createWorkflowTool(options: WorkflowToolOptions): WorkflowCalls {
  const prepared = new Map<string, Prepared>();
  const tool = builtinTool<Input>({
    name: "Workflow",
    description: describe(options),
    input,
    async preview(given) {
      // The script is in the question, however it was named.
      const { script, args, resumeFromRunId } = given;
      const found = await options.workflows.find(script === undefined ? given : { script });
      const bill = await options.workflows.bill({ args, resumeFromRunId }, found);
      return bill && previewWorkflow(found, bill);
    },
    async call(given, context) {
      const known = prepared.get(context.callId) ?? {};
      prepared.delete(context.callId);
      return start(given, context, { ...options, ...known });
    },
  });
  return {
    tool,
    beforeCall: (next) => async (request, asking) => {
      const read = isOurs(request.tool) ? input.safeParse(request.input) : undefined;
      if (read?.success !== true) return next(request, asking);
      const given = read.data;
      let found: FoundWorkflow;
      try {
        found = await options.workflows.find(given);
      } catch (failure) {
        if (!isRetinueError(failure)) throw failure;
        prepared.set(request.call.id, { failure });
        return { type: "allowed", input: given };
      }
      const shown = { ...given, ...workflowQuestion(found) };
      const call = { ...request.call, input: shown };
      const answer = await next({ ...request, call, input: shown }, asking);
      if (answer.type !== "allowed") return answer;
      const { script, name, scriptPath } = answer.input as Input;
      const isSame = script === found.text && name === given.name && scriptPath === given.scriptPath;
      // A host may change the script: then that is what runs.
      if (!isSame)
        return {
          ...answer,
          input:
            script === found.text
              ? answer.input
              : { ...(answer.input as Input), name: undefined, scriptPath: undefined },
        };
      prepared.set(request.call.id, { found });
      return { ...answer, input: given };
    },
  };
}

function isOurs({ name, origin }: Tool): boolean {
  return name === "Workflow" && origin === "builtin";
}

/** What a person sees before a run beside the bill: the whole script, and in which phases it says it works. */
function workflowQuestion({ meta, text }: FoundWorkflow) {
  const phases = Array.isArray(meta.phases) ? meta.phases : [];
  return {
    script: text,
    description: meta.description,
    ...(phases.length === 0 ? {} : { phases }),
  };
}

async function start(
  { script, name, scriptPath, args, resumeFromRunId }: Input,
  { callId, allowedBy, sessionId, signal }: ToolContext,
  { workflows, isTrusted, transcripts, failure, ...known }: WorkflowToolOptions & Prepared,
) {
  // The person who was asked about the call has seen its bill.
  const isAgreed = allowedBy === "person" || allowedBy === "program";
  const request = {
    script,
    name,
    scriptPath,
    args,
    resumeFromRunId,
    callId,
    notifies: true,
    isAgreed,
    signal,
  };
  try {
    if (failure !== undefined) throw failure;
    const found = known.found ?? (await workflows.find(request));
    // A rule was written before this folder was there; a person who answers sees the script.
    if (found.saved?.scope === "project" && !isTrusted() && allowedBy === "rule")
      return failed(
        `The workflow ${JSON.stringify(name)} is a file of this folder (${found.saved.file}), which is not trusted, so no rule can allow it. A person can trust the folder with \`retinue trust\`, or allow this call when asked.`,
      );
    const live = await workflows.start(request, found);
    const state = live.state();
    const { taskId, runId, scriptPath: file, description, name: workflowName } = state;
    const transcriptDir = workflowFiles(transcripts, sessionId, runId).transcripts;
    return {
      content: [
        `Workflow launched in the background. Task ID: ${taskId}`,
        `Run ID: ${runId}`,
        `Summary: ${description}`,
        `Transcript dir: ${transcriptDir}`,
        ...(file === undefined
          ? []
          : [
              `Script file: ${file}`,
              `To change it and go on, edit this file and call Workflow with scriptPath and resumeFromRunId ${JSON.stringify(runId)}: steps that are finished and did not change are not run again.`,
            ]),
        "You are notified with the result when it has ended. Go on with other work, or end your turn; do not wait for it by asking.",
      ].join("\n"),
      data: {
        status: "async_launched",
        taskId,
        taskType: "local_workflow",
        workflowName,
        runId,
        summary: description,
        transcriptDir,
        scriptPath: file,
      },
    };
  } catch (error) {
    if (!isRetinueError(error)) throw error;
    return failed([error.message, error.advice ?? ""].join(" ").trim());
  }
}

const sizes: ReadonlyMap<string, string> = new Map([
  ["small", "Keep workflows small: up to about five agents."],
  ["medium", "Keep workflows of a middling size: up to about fifteen agents."],
  ["large", "Workflows may be large: up to about fifty agents where the work needs them."],
  ["unrestricted", "Make workflows as large as the work needs."],
]);

function describe({ workflows, size = "medium" }: WorkflowToolOptions): string {
  const saved = [...workflows.saved.values()].map(({ name, meta }) => {
    const when = meta.whenToUse === undefined ? "" : ` ${meta.whenToUse}`;
    return `- ${name}: ${meta.description}.${when}`;
  });
  return `Runs a workflow: a JavaScript script that starts many agents and decides by what they return.

- Use it when the person asks for a workflow, names a saved one, or wants work that fans out over many parts with checks in between. For one or a few pieces of work use Agent.
- It runs in the background; you are notified once, with the result. TaskOutput shows how far it is, TaskStop ends it.
- \`name\` runs a saved workflow, \`script\` one that you write, \`scriptPath\` one in a file. \`args\` is what the script reads as \`args\`.
- With \`resumeFromRunId\` finished steps are not run again; steps that changed or failed are.
- ${sizes.get(size) ?? ""}

A script begins with \`export const meta = { name: '…', description: '…', phases: [{ title: '…' }] }\`, a literal without variables. The rest is the body of an async function in plain JavaScript, without imports. It has no files, network, clock or random numbers; agents do what needs them. Its functions:
- \`await agent(prompt, { label?, phase?, schema?, model?, effort?, isolation?: 'worktree', agentType?, verify? })\` gives the agent's last text, with \`schema\` (JSON Schema of an object) the checked value, null where the provider failed; it throws where there can be no result. The agent knows nothing but its prompt.
- \`await parallel([() => agent(…), …])\` waits for all; one that fails is null.
- \`await pipeline(items, (item) => …, (previous, item, index) => …)\` takes each item through the stages alone; a stage that gives null ends it.
- \`phase(title)\` and \`log(text)\` show progress; \`await workflow(name, args)\` runs another one; \`budget.total\`, \`budget.spent()\` and \`budget.remaining()\` count output tokens.
- \`return\` gives the result, as plain JSON.

Saved workflows:
${saved.length === 0 ? "(none)" : saved.join("\n")}`;
}
