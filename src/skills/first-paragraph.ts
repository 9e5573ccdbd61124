const longest = 1024;

/** What a text says first: its first paragraph that is no heading, else its first heading. */
export function firstParagraph(body: string): string {
  const blocks = beginningOf(body).split(/\n[ \t]*\n/);
  const texts = blocks.map((block) => ({ heading: /^\s*#{1,6}\s/.test(block), text: plainText(block) }));
  const filled = texts.filter(({ text }) => text !== "");
  const chosen = filled.find(({ heading }) => !heading) ?? filled[0];
  return (chosen?.text ?? "").slice(0, longest).trim();
}

/** Enough to hold a few headings and comments before the first paragraph, however long the body is. */
function beginningOf(body: string): string {
  return body.slice(0, 16 * longest).replace(/<!--[\s\S]*?(?:-->|$)/g, "");
}

/** Without the marks of headings, quotes and fences; lines become one. */
function plainText(block: string): string {
  const lines = block.split("\n").filter((line) => !/^\s*(?:```|~~~|-{3,}\s*$|={3,}\s*$)/.test(line));
  const isHeadingOnly = lines.every((line) => /^\s*(?:#|$)/.test(line));
  const kept = isHeadingOnly ? lines : lines.filter((line) => !/^\s*#{1,6}\s/.test(line));
  return kept
    .map((line) => line.replace(/^\s*(?:#{1,6}|>)\s*/, "").trim())
    .join(" ")
    .trim();
}
