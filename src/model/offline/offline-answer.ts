/** The first line of every answer, so that no one takes this program for a language model. */
export const offlineLabel =
  "[offline model: no key is configured. This answer comes from a small program that runs the real tools and quotes " +
  "what they return; it understands nothing and changes nothing.]";

export const offlineHelp = `For real answers configure a model: set ANTHROPIC_API_KEY, or name another provider's model with
--model provider/model (such as openai/… with OPENAI_API_KEY, or ollama/… for one on this machine).
Without one you can ask: "what is here", "map FOLDER", "where is NAME", "read FILE".`;

export function offlineAnswer(...sections: readonly (string | undefined)[]): string {
  const said = sections.filter((section) => section !== undefined && section.trim() !== "");
  return [offlineLabel, ...said, offlineHelp].join("\n\n");
}

/** What a child that ran on this same program said, without the frame around it. */
export function withoutFrame(text: string): string {
  return text.replace(offlineLabel, "").replace(offlineHelp, "").trim();
}

export function counted(count: number, thing: string): string {
  return `${count.toLocaleString("en-US")} ${thing}${count === 1 ? "" : "s"}`;
}
