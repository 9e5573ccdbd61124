import { permissionModes } from "@retinue/base/foundation/option-words.ts";
import * as z from "zod";

const agentId = z.string().min(1).max(64).describe("The id that came with the result of spawn_agent.");

const waitMs = z
  .number()
  .int()
  .min(0)
  .max(600_000)
  .optional()
  .describe("How long to wait at most, in milliseconds: 30000 unless given.");

/** What each tool takes. */
export const inputs = {
  list_agents: z.object({}),
  spawn_agent: z.object({
    agent: z.string().min(1).optional().describe("Which agent, by its name; general-purpose when left out."),
    prompt: z.string().min(1).describe("The whole task. The agent sees nothing of your conversation."),
    description: z.string().min(1).optional().describe("What it does, in three to five words, for people."),
    model: z.string().min(1).optional().describe("Only if another model than the agent's own is needed."),
    background: z.boolean().optional().describe("Return immediately; agent_output gives the result later."),
    max_turns: z.number().int().positive().optional().describe("The most turns it may take."),
    name: z.string().min(1).max(64).optional().describe("A name to address it by."),
    isolation: z.enum(["worktree"]).optional().describe("Gives it its own copy of the repository."),
    mode: z
      .enum(permissionModes)
      .optional()
      .describe("A narrower permission mode for it; a wider one does not count."),
    resume: z
      .string()
      .min(1)
      .max(64)
      .optional()
      .describe("The id of an agent that has ended, to continue with it."),
  }),
  agent_output: z.object({
    agent_id: agentId,
    block: z.boolean().optional().describe("Wait for its end; true unless you say false."),
    timeout_ms: waitMs,
  }),
  stop_agent: z.object({ agent_id: agentId }),
  send_message: z.object({
    agent_id: agentId,
    message: z.string().min(1).describe("What it should know or do now."),
  }),
  read_messages: z.object({
    timeout_ms: waitMs,
  }),
  message_team: z.object({
    to: z.string().min(1).max(64).describe('The name of a teammate, or "*".'),
    message: z.string().optional().describe("What you want to say; with a type: the reason or feedback."),
    type: z.enum(["message", "shutdown_request", "plan_approval_response"]).optional(),
    request_id: z.string().max(200).optional().describe("Which request a response answers."),
    approve: z.boolean().optional().describe("Whether a response agrees."),
  }),
  create_task: z.object({
    subject: z.string().min(1).describe("The task in a few words."),
    description: z.string().optional().describe("What is to be done, in full."),
    owner: z.string().optional().describe("The teammate it is for; anyone may claim it when left out."),
    blockedBy: z.array(z.string()).optional().describe("Ids of tasks that have to be completed first."),
  }),
  update_task: z.object({
    taskId: z.string().describe("The id of the task."),
    status: z.enum(["pending", "in_progress", "completed", "deleted"]).optional(),
    owner: z.string().optional().describe("Who does it; empty gives it back."),
    addBlockedBy: z.array(z.string()).optional().describe("Ids of tasks that this one waits for."),
  }),
  list_tasks: z.object({}),
  delete_team: z.object({ force: z.boolean().optional().describe("Also while teammates are active.") }),
};

const denials = z.array(z.object({ tool: z.string(), reason: z.string() })).optional();

/** Open at the end: results of agents may hold more in later versions. */
const spawned = z.looseObject({
  status: z.enum(["completed", "sub_agent_entered", "async_launched", "teammate_spawned"]),
  agentId: z.string(),
  agentType: z.string().optional(),
  description: z.string().optional(),
  prompt: z.string().optional(),
  content: z
    .array(z.object({ type: z.literal("text"), text: z.string() }))
    .optional()
    .describe("The final text, when it has ended."),
  endStatus: z.enum(["completed", "partial", "failed", "stopped"]).optional(),
  stopReason: z.string().optional(),
  outputFile: z
    .string()
    .optional()
    .describe("Where its work can be followed, when it runs in the background."),
  totalTokens: z.number().optional(),
  totalToolUseCount: z.number().optional(),
  totalDurationMs: z.number().optional(),
  totalCostUsd: z.number().optional(),
  denials,
});

const view = z.object({
  agentId: z.string(),
  agentType: z.string(),
  description: z.string(),
  name: z.string().optional(),
  state: z.enum(["queued", "running", "completed", "partial", "failed", "stopped", "interrupted"]),
  activity: z.string().optional(),
  stopReason: z.string().optional(),
  error: z.string().optional(),
  text: z.string(),
  turns: z.number().optional(),
  totalTokens: z.number(),
  totalToolUseCount: z.number(),
  totalCostUsd: z.number().optional(),
  denials,
});

/** What each tool gives beside its text. */
export const outputs = {
  list_agents: z.object({
    agents: z.array(
      z.object({
        name: z.string(),
        description: z.string(),
        tools: z.array(z.string()).describe('What it may use; "*" represents everything.'),
        model: z.string(),
        scope: z.string(),
      }),
    ),
  }),
  spawn_agent: spawned,
  agent_output: view,
  stop_agent: view,
  send_message: z.object({
    delivery: z.enum(["queued", "resumed"]).describe("Read between its turns, or taken up again with it."),
    agentId: z.string(),
  }),
};
