import { firstSentence } from "../../../../definitions/first-sentence.ts";

export interface NewAgent {
  readonly name: string;
  readonly description: string;
  readonly tools?: readonly string[];
  readonly model?: string;
  readonly prompt?: string;
}

/** The text of a new definition file. */
export function starterFile(agent: NewAgent): string {
  const { name, tools, model } = agent;
  const description = agent.description.replace(/\s+/g, " ").trim();
  return [
    "---",
    `name: ${name}`,
    `description: ${quoted(description)}`,
    ...(tools === undefined ? [] : [`tools: ${tools.length === 0 ? "[]" : plain(tools.join(", "))}`]),
    ...(model === undefined ? [] : [`model: ${plain(model)}`]),
    "---",
    "",
    (agent.prompt ?? starterPrompt({ description, ...(tools === undefined ? {} : { tools }) })).trim(),
    "",
  ].join("\n");
}

/** A prompt to start from: the task, how to work, when to stop, what to return. */
function starterPrompt({ description, tools }: Pick<NewAgent, "description" | "tools">): string {
  const changes = tools === undefined || tools.some((entry) => /^(?:Edit|Write|NotebookEdit)\b/.test(entry));
  return `You are given one task by another agent and hand back one report. No one sees your work in between.

# What you are for
${firstSentence(description)}

# How to work
1. Settle first what a finished result looks like. If the task is missing something essential, say what, instead of guessing.
2. Look before you act: find the files and facts the result depends on.
3. ${changes ? "Change in small steps, and check each one: run the tests, read the result again." : "You only read and report; you change nothing."}
4. Stay inside the task. Mention what else you noticed; do not act on it.

# When to stop
Stop when the result is there and checked, or when two further attempts brought nothing new. Then say what you tried.

# What to return
- The result first, in one to three sentences.
- The evidence: places as path:line, commands with what they printed.
${changes ? "- Every file you changed, and how you checked it.\n" : ""}- What you could not check, and what is still open.`;
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

/** Without quotes where YAML reads the same without them. */
function plain(text: string): string {
  const isSafe =
    /^[A-Za-z][\w ,.()/*:@+-]*$/.test(text) && !/: |:$|^(?:true|false|yes|no|on|off|null)$/i.test(text);
  return isSafe ? text : JSON.stringify(text);
}
