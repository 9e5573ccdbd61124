import { isBeyondParsing, stripTags, tidyLines } from "./plain-html.ts";

export interface ConvertedPage {
  readonly text: string;
  readonly title?: string;
}

const maxHtml = 3_000_000;

/** A page as Markdown: its article where there is one, else all of it; plain text where the page defeats the parser. */
export async function convertHtml(html: string, url: string): Promise<ConvertedPage> {
  const cut = html.length > maxHtml;
  const source = cut ? html.slice(0, maxHtml) : html;
  const plain = () => ({ text: stripTags(source) });
  const converted = isBeyondParsing(source) ? plain() : await convert(source, url).catch(plain);
  return cut
    ? { ...converted, text: `${converted.text}\n\n[The page is longer; the rest was not read.]` }
    : converted;
}

async function convert(html: string, url: string): Promise<ConvertedPage> {
  const [{ parseHTML }, { Readability }, { default: Turndown }] = await Promise.all([
    import("linkedom"),
    import("@mozilla/readability"),
    import("turndown"),
  ]);
  const whole = /<html[\s>]/i.test(html) ? html : `<!doctype html><html><body>${html}</body></html>`;
  const { document } = parseHTML(whole);
  clean(document, url);
  const title = (document.querySelector("title")?.textContent ?? "").replace(/\s+/g, " ").trim();
  const everything = document.body?.innerHTML ?? "";
  const length = (document.body?.textContent ?? "").trim().length;
  const article = new Readability(document).parse();
  const isWorthIt = article !== null && (article.length ?? 0) >= Math.min(500, length / 2);
  const chosen = isWorthIt ? (article.content ?? everything) : everything;
  const { document: part } = parseHTML(`<!doctype html><html><body>${chosen}</body></html>`);
  const markdown = createTurndown(Turndown).turndown(part.body);
  const text = markdown.replace(/\n{3,}/g, "\n\n").trim();
  return title === "" ? { text } : { text, title };
}

interface PageElement {
  getAttribute(name: string): string | null;
  setAttribute(name: string, value: string): void;
  removeAttribute(name: string): void;
  remove(): void;
}

interface PageDocument {
  querySelectorAll(selector: string): Iterable<PageElement>;
}

/** Takes out what no reader sees, and makes links whole. */
function clean(document: PageDocument, url: string): void {
  for (const element of document.querySelectorAll(unseen)) element.remove();
  for (const element of document.querySelectorAll("[style]")) {
    if (/display\s*:\s*none|visibility\s*:\s*hidden/i.test(element.getAttribute("style") ?? ""))
      element.remove();
  }
  for (const link of document.querySelectorAll("a[href]")) {
    const target = URL.parse(link.getAttribute("href") ?? "", url);
    const isWeb = target !== null && /^(?:https?|mailto):$/.test(target.protocol);
    if (isWeb) link.setAttribute("href", target.href);
    else link.removeAttribute("href");
  }
}

const unseen =
  "script, style, noscript, template, svg, iframe, object, embed, canvas, img, [hidden], [aria-hidden=true]";

interface TurndownConstructor {
  new (options: object): TurndownLike;
}

interface TurndownLike {
  addRule(
    name: string,
    rule: { filter: string[]; replacement: (content: string, node: unknown) => string },
  ): unknown;
  turndown(node: unknown): string;
}

function createTurndown(Turndown: unknown): TurndownLike {
  // Its types ask for the DOM of a browser, which is not part of this program's types.
  const service = new (Turndown as TurndownConstructor)({
    headingStyle: "atx",
    codeBlockStyle: "fenced",
    bulletListMarker: "-",
    hr: "---",
  });
  service.addRule("cell", {
    filter: ["th", "td"],
    replacement: (content) => ` ${tidyLines(content).replaceAll("\n", " ").replaceAll("|", "\\|")} |`,
  });
  service.addRule("row", {
    filter: ["tr"],
    replacement: (content, node) =>
      `|${content}\n${isFirstRow(node) ? `|${" --- |".repeat(cellsOf(node))}\n` : ""}`,
  });
  service.addRule("table", { filter: ["table"], replacement: (content) => `\n\n${content.trim()}\n\n` });
  service.addRule("tablePart", { filter: ["thead", "tbody", "tfoot"], replacement: (content) => content });
  return service;
}

interface RowElement {
  readonly children: { readonly length: number };
  readonly parentNode: { readonly nodeName: string; readonly previousElementSibling: unknown } | null;
  readonly previousElementSibling: unknown;
}

function isFirstRow(node: unknown): boolean {
  const row = node as RowElement; // The rule's filter lets only rows through.
  if (row.previousElementSibling !== null) return false;
  return row.parentNode?.nodeName === "TABLE" || row.parentNode?.previousElementSibling === null;
}

function cellsOf(node: unknown): number {
  return (node as RowElement).children.length; // The rule's filter lets only rows through.
}
