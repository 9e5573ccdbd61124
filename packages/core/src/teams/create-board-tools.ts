import { escapeControlTags, escapeName } from "@retinue/base/foundation/escape-control-tags.ts";
import type { JsonRecord } from "@retinue/base/foundation/json-record.ts";
import * as t from "../tools/input-type.ts";
import type { Tool, ToolOutcome } from "../tools/tool.ts";
import { type BoardTask, claimableTasks, lineOf, openBlockers, sortedTasks } from "./board.ts";
import type { TaskDraft } from "./board-store.ts";
import { leadName, refuseMemberName } from "./team-config.ts";
import { deliver, findAddressee, offerTasks, type TeamContext } from "./team-context.ts";
import type { TeamStore } from "./team-store.ts";

/** TaskCreate, TaskUpdate, TaskList and TaskGet: the board of tasks that a team shares. */
export function createBoardTools(teamContext: TeamContext): readonly Tool[] {
  return [createTool(teamContext), updateTool(teamContext), listTool(teamContext), getTool(teamContext)];
}

const common = { effect: "coordinate", origin: "builtin" } as const;
const text = (about: string) => t.string().optional().describe(about);
const ids = (about: string) => t.array(t.coerce.string()).optional().describe(about);
const metadata = t.record(t.unknown()).optional().describe("Anything else worth keeping.");

const createInput = t.object({
  subject: t.string().min(1).describe("The task in a few words, as an order."),
  description: t
    .string()
    .default("")
    .describe("What is to be done, with everything the one who does it needs."),
  activeForm: text("What someone is doing who works on it."),
  owner: text("The member it is for; anyone may claim it when left out."),
  blockedBy: ids("Ids of tasks that have to be completed first."),
  metadata,
});

function createTool(teamContext: TeamContext): Tool {
  const tool: Tool<t.Infer<typeof createInput>> = {
    ...common,
    name: "TaskCreate",
    description:
      "Adds a task to the team's board. Members claim tasks that have no owner and whose blockers are completed.",
    input: createInput,
    async call({ owner, ...draft }) {
      const store = await teamContext.ensureStore();
      const named = owner === undefined ? undefined : findOwner(store, owner, teamContext);
      if (named?.type === "refused") return failed(named.reason);
      const member = named?.name;
      if (member !== undefined && member !== teamContext.name && !teamContext.isLead)
        return failed("Only the lead assigns tasks to others.");
      const full = { ...draft, ...(member === undefined ? {} : { owner: member }) };
      // Absent fields stay absent: the schema gives undefined for none of them.
      const created = await store.board.create(full as TaskDraft, teamContext.approveCreated);
      if (created.type === "refused") return failed(`The task was not created: ${created.reason}`);
      const { task } = created;
      if (named?.type === "member" && member !== undefined && member !== teamContext.name)
        await assign(teamContext, task, member);
      else
        await offerTasks(
          store,
          claimableTasks(store.board.read()).filter(({ id }) => id === task.id),
        );
      return done(`Task ${task.id} was created: ${task.subject}${laterNote(named)}`, {
        task: { id: task.id, subject: task.subject },
      });
    },
  };
  return tool as Tool;
}

const updateInput = t.object({
  taskId: t.coerce.string().describe("The id of the task."),
  status: t
    .oneOf(["pending", "in_progress", "completed", "deleted"])
    .optional()
    .describe("in_progress claims it for you; completed when it is done."),
  owner: text("Who does it; empty gives it back."),
  subject: text("A new subject."),
  description: text("A new description."),
  activeForm: text("What someone is doing who works on it."),
  addBlocks: ids("Ids of tasks that wait for this one."),
  addBlockedBy: ids("Ids of tasks that this one waits for."),
  metadata,
});

function updateTool(teamContext: TeamContext): Tool {
  const tool: Tool<t.Infer<typeof updateInput>> = {
    ...common,
    name: "TaskUpdate",
    description:
      "Changes a task of the team's board: claims it, completes it, assigns it or says what it waits for. Two members never hold the same task.",
    input: updateInput,
    async call({ taskId, owner, ...given }, { signal }) {
      const store = await teamContext.ensureStore();
      const named = owner === undefined || owner === "" ? undefined : findOwner(store, owner, teamContext);
      if (named?.type === "refused") return failed(named.reason);
      const member = named?.name ?? owner;
      // The schema gives undefined for no field that was sent.
      const change = { ...given, ...(member === undefined ? {} : { owner: member }) } as JsonRecord;
      const outcome = await store.board.change(taskId, change, {
        by: { name: teamContext.name, isLead: teamContext.isLead },
        approve: (task) => teamContext.approveCompleted(task, signal),
      });
      if (outcome.type === "refused") return failed(`Task ${taskId} was not changed: ${outcome.reason}`);
      const { task, before, unblocked, deleted } = outcome;
      const isAssigned =
        task.owner !== undefined && task.owner !== before.owner && task.owner !== teamContext.name;
      if (isAssigned && named?.type === "member") await assign(teamContext, task, named.name);
      await offerTasks(store, unblocked);
      const free = unblocked.map(({ id }) => `task ${id}`).join(", ");
      const pendingMessages = free === "" ? "" : ` Free now: ${free}.`;
      if (deleted) return done(`Task ${taskId} was deleted.${pendingMessages}`, { taskId });
      return done(`${lineOf(task, store.board.read())}${laterNote(named)}${pendingMessages}`, {
        taskId,
        statusChange: { from: before.status, to: task.status },
      });
    },
  };
  return tool as Tool;
}

function listTool(teamContext: TeamContext): Tool {
  return {
    ...common,
    name: "TaskList",
    description: "Shows the team's board: every task with its status, owner and blockers.",
    input: t.object({}),
    isConcurrencySafe: () => true,
    repeats: "pure",
    async call() {
      const { board } = await teamContext.ensureStore();
      const tasks = board.read();
      const broken = board.invalid().map(({ file, reason }) => `${file} is not a task: ${reason}.`);
      const lines = [...sortedTasks(tasks).map((task) => lineOf(task, tasks)), ...broken];
      return done(lines.length === 0 ? "The board has no tasks." : lines.join("\n"), {
        tasks: sortedTasks(tasks).map((task) => ({ ...task, blockedBy: openBlockers(task, tasks) })),
      });
    },
  };
}

const getInput = t.object({ taskId: t.coerce.string().describe("The id of the task.") });

function getTool(teamContext: TeamContext): Tool {
  const tool: Tool<t.Infer<typeof getInput>> = {
    ...common,
    name: "TaskGet",
    description: "Shows one task of the team's board in full.",
    input: getInput,
    isConcurrencySafe: () => true,
    repeats: "pure",
    async call({ taskId }) {
      const tasks = (await teamContext.ensureStore()).board.read();
      const task = tasks.get(taskId);
      if (task === undefined) return failed(`There is no task ${taskId} on the board.`);
      const blocks = task.blocks.length === 0 ? "" : `\nBlocks: ${task.blocks.join(", ")}`;
      return done(`${lineOf(task, tasks)}${blocks}\n\n${escapeControlTags(task.description)}`, { task });
    },
  };
  return tool as Tool;
}

type Owner =
  | { readonly type: "member"; readonly name: string }
  /** A name that a member may have later. */
  | { readonly type: "later"; readonly name: string }
  | { readonly type: "refused"; readonly reason: string };

/** A lead plans before it starts its members, so a task of it may be for one that does not exist yet. */
function findOwner(store: TeamStore, owner: string, { isLead }: TeamContext): Owner {
  const config = store.config();
  const name = config === undefined ? undefined : findAddressee(config, owner);
  if (name !== undefined) return { type: "member", name };
  if (!isLead) return { type: "refused", reason: `There is no member ${JSON.stringify(owner)}.` };
  const reason = refuseMemberName(owner, config?.members.map((member) => member.name) ?? []);
  if (reason === undefined) return { type: "later", name: owner };
  return { type: "refused", reason: `There is no member ${JSON.stringify(owner)}: ${reason}.` };
}

function laterNote(owner: Owner | undefined): string {
  return owner?.type === "later"
    ? `. ${escapeName(owner.name)} is not a member yet; it is notified of the task when it joins.`
    : "";
}

async function assign(
  teamContext: TeamContext,
  { id, subject, description }: BoardTask,
  to: string,
): Promise<void> {
  await deliver(teamContext, to, {
    body: { type: "task_assignment", taskId: id, subject, description, assignedBy: teamContext.name },
  });
}

/** Notifies a member that joins of the tasks that were made for it before. */
export async function announceTasks(store: TeamStore, member: string): Promise<void> {
  const notified = new Set(
    store
      .inbox(member)
      .mail.flatMap(({ protocol, read }) =>
        protocol?.type === "task_assignment" && !read ? [protocol.taskId] : [],
      ),
  );
  const own = sortedTasks(store.board.read()).filter(
    ({ id, owner, status }) => owner === member && status !== "completed" && !notified.has(id),
  );
  for (const { id, subject, description } of own)
    await store.send(member, {
      from: leadName,
      body: { type: "task_assignment", taskId: id, subject, description, assignedBy: leadName },
    });
}

function done(content: string, data: unknown): ToolOutcome {
  return { content, data };
}

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true, data: { success: false, message: reason } };
}
