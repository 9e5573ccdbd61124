/** Markup that only an attack or an accident has; the parsers need minutes for it, and nothing can interrupt them. */
export function isBeyondParsing(html: string, limits = { elements: 30_000, depth: 150 }): boolean {
  let depth = 0;
  let elements = 0;
  for (const [, slash, name = ""] of html.matchAll(/<(\/?)([a-z][a-z0-9]*)/gi)) {
    const tag = name.toLowerCase();
    if (slash !== "/") elements += 1;
    if (!closesByItself.has(tag)) depth = Math.max(0, depth + (slash === "/" ? -1 : 1));
    if (elements > limits.elements || depth > limits.depth) return true;
  }
  return false;
}

/** Elements that have no end tag, or whose end a parser finds without one. */
const closesByItself: ReadonlySet<string> = new Set(
  `area base br col embed hr img input link meta param source track wbr p li dt dd tr td th thead tbody tfoot option
  optgroup colgroup html head body path circle rect line polygon polyline ellipse use stop`.split(/\s+/),
);

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

/** Lines without empty ones and without blanks around them. */
export function tidyLines(text: string): string {
  const lines = text.split("\n").map((line) => line.replace(/\s+/g, " ").trim());
  return lines.filter((line) => line !== "").join("\n");
}
