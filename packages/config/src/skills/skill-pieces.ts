/** A stretch of a skill's text, or a command whose output takes its place. */
export type SkillPiece =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "command"; readonly command: string };

/**
 * A fenced block with its label, its inside and its closing fence; or an inline command. A fence is taken whole: tried at
 * each of its lengths, a long line of backticks would take minutes.
 */
const marks =
  /^ {0,3}(?<fence>`{3,}(?!`)|~{3,}(?!~))(?<label>[^\n]*)\n(?<inside>[\s\S]*?)(?:(?<end>^ {0,3}\k<fence>[`~]*[ \t]*$)|$(?![\s\S]))|(?<![^\s])!`(?<inline>[^`\n]+)`/gm;

/**
 * Finds the commands in a skill's own text: `` !`command` `` after a space or at the start of a line, and blocks fenced
 * with ```` ```! ````. Other fenced blocks show text, and what is in them is never run.
 */
export function splitSkill(body: string): readonly SkillPiece[] {
  const pieces: SkillPiece[] = [];
  let last = 0;
  for (const match of body.matchAll(marks)) {
    const command = commandOf(match.groups ?? {});
    if (command === undefined) continue;
    if (match.index > last) pieces.push({ type: "text", text: body.slice(last, match.index) });
    pieces.push({ type: "command", command });
    last = match.index + match[0].length;
  }
  if (last < body.length) pieces.push({ type: "text", text: body.slice(last) });
  return pieces;
}

export function hasCommands(body: string): boolean {
  return splitSkill(body).some(({ type }) => type === "command");
}

function commandOf(groups: Readonly<Record<string, string | undefined>>): string | undefined {
  const { label, inside, end, inline } = groups;
  const written = inline ?? (label?.trim() === "!" && end !== undefined ? inside : undefined);
  const command = written?.trim();
  return command === "" ? undefined : command;
}
