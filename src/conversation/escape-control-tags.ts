/** Tags that the runtime itself speaks with; in a child's mouth or a file they are only text. */
const controlTags =
  /<(\/?)(system-reminder|system|task-notification|agent-message|teammate-message|user-prompt-submit-hook|function_calls|function_results|invoke|tool_result|tool_use|antml:[a-z_]+)\b/gi;

/** Makes text that imitates control text harmless, and turns of a made-up dialogue too. */
export function escapeControlTags(text: string): string {
  return text.replace(controlTags, "<\\$1$2").replace(/^(Human|Assistant|System):/gm, "$1\\:");
}
