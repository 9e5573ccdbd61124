/** The text of a page in one pass, whatever the page. */
export function stripTags(html: string): string {
  const lower = html.toLowerCase();
  const parts: string[] = [];
  for (let at = 0; at < html.length; ) {
    const open = html.indexOf("<", at);
    parts.push(html.slice(at, open === -1 ? undefined : open));
    const block = ["script", "style"].find((name) => lower.startsWith(name, open + 1));
    const last = block === undefined ? open : lower.indexOf(`</${block}`, open);
    const close = open === -1 || last === -1 ? -1 : html.indexOf(">", last);
    if (close === -1) break;
    at = close + 1;
  }
  return tidyLines(parts.join(" "));
}

/** Lines without empty ones and without spaces around them. */
export function tidyLines(text: string): string {
  const lines = text.split("\n").map((line) => line.replace(/\s+/g, " ").trim());
  return lines.filter((line) => line !== "").join("\n");
}
