import { estimateTextTokens } from "../../conversation/estimate-request-tokens.ts";
import { shortenText } from "../../loop/shorten-text.ts";
import { hasEnded, type TaskState } from "../../tasks/task-state.ts";
import type { TodoItem } from "../../tools/tool-host.ts";

/** What continues while a conversation is compacted. */
export interface OngoingWork {
  readonly tasks?: readonly TaskState[];
  readonly todos?: readonly TodoItem[];
  /** Skills that were called, newest last, with the text the model read. */
  readonly skills?: readonly { readonly name: string; readonly text: string }[];
  /** Skills that the model was informed of, one line each. */
  readonly offered?: string;
}

/** What an agent must not forget when its conversation is replaced by a summary, each part as one text. */
export function carryOverContext({
  tasks = [],
  todos = [],
  skills = [],
  offered = "",
}: OngoingWork): readonly string[] {
  return [agentsText(tasks), todosText(todos), offeredText(offered), skillsText(skills)].filter(
    (text) => text !== "",
  );
}

function offeredText(list: string): string {
  return list === "" ? "" : `Skills for files you have used, which the Skill tool loads too:\n${list}`;
}

function agentsText(tasks: readonly TaskState[]): string {
  const running = tasks.filter((task) => task.background && !hasEnded(task));
  if (running.length === 0) return "";
  const lines = running.map(
    ({ id, agentType, description, status }) => `- ${id} (${agentType}): ${description} [${status}]`,
  );
  return [
    "Agents you have started that still run in the background; you are notified when they end, and TaskOutput reads them by id. Do not start them again.",
    ...lines,
  ].join("\n");
}

function todosText(todos: readonly TodoItem[]): string {
  if (todos.length === 0) return "";
  const lines = todos.map(({ content, status }) => `- [${status}] ${content}`);
  return ["Your list of steps:", ...lines].join("\n");
}

const skillTokens = 5_000;
const allSkillTokens = 25_000;
/** Less of a skill than this is of no use. */
const leastTokens = 250;

/** The newest skills first, as far as there is room. */
function skillsText(skills: NonNullable<OngoingWork["skills"]>): string {
  let left = allSkillTokens;
  const texts: string[] = [];
  for (const { name, text } of skills.toReversed()) {
    const shortened = shortenText(text, Math.min(skillTokens, left));
    if (left < leastTokens || shortened === "") break;
    left -= estimateTextTokens(shortened);
    texts.push(`The skill ${name}, which you have called:\n${shortened}`);
  }
  return texts.toReversed().join("\n\n");
}
