/**
 * Tags that the runtime itself uses, and the fences around parts of a prompt; in anything from outside they are only
 * text. Spaces may be inside a tag, since a model reads it all the same.
 */
const controlTags =
  /<(\s{0,4}\/?\s{0,4})((?:system-reminder|system|task-notification|agent-message|teammate-message|user-prompt-submit-hook|function_calls|function_results|invoke|tool_result|tool_use|web-page|antml:[a-z_]+)\b|skill(?:-notes)?(?![\w-])|agent-memory|instructions|mcp-instructions)/gi;

/** Read by a model and seen by no person: controls, directions, tags, and what only splits a word of plain letters. */
const hidden =
  /[^\P{Cc}\n\t]|[\u200B\u200E\u200F\u202A-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]|(?<=[!-~])(?:\u200C|\u200D|\u00AD)+(?=[!-~])/gu;

/**
 * Makes text from outside safe to show to a model: web pages, results of MCP servers and child agents, files in a prompt.
 * It can't close its own fence, pose as another part of the prompt, as the runtime or as a turn of the conversation, hide
 * anything from a person who reviews it, or contain what a terminal obeys. Everything from outside goes through here.
 */
export function escapeControlTags(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n?/g, "\n")
    .replace(hidden, "")
    .replace(controlTags, "<\\$1$2")
    .replace(/^(Human|Assistant|System):/gm, "$1\\:");
}

/** The same for a name that is shown within a line or a list, such as that of a file: it can't begin a line of its own. */
export function escapeName(name: string): string {
  return escapeControlTags(name.replace(/\p{Cc}/gu, "\uFFFD"));
}

export function escapeNames(names: readonly string[]): readonly string[] {
  return names.map(escapeName);
}

/** One line of text that can neither hide anything nor pose as the runtime. */
export function escapeLine(text: string): string {
  return escapeControlTags(text.replace(/\s+/gu, " ")).replace(/ {2,}/g, " ").trim();
}

export function escapeLines(texts: readonly string[]): readonly string[] {
  return texts.map(escapeLine);
}
