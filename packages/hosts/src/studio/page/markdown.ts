import { marked, type Token, type Tokens } from "marked";
import { type ComponentChild, h } from "preact";
import { colouredCode } from "./code-colours.ts";
import { memo } from "./parts.ts";

const maxCharacters = 100_000;

/**
 * Markdown as elements. No HTML is made of it at any time: HTML in the text is shown as text, pictures as links, and links go only to
 * http, https and mail.
 */
export const Markdown = memo(({ text }: { text: string }): ComponentChild => {
  if (text.length > maxCharacters) return h("div", { class: "md plain" }, text);
  return h("div", { class: "md" }, blocks(marked.lexer(text)));
});

function blocks(tokens: readonly Token[]): ComponentChild {
  return tokens.map((token, at) => block(token as Tokens.Generic, at));
}

function block(token: Tokens.Generic, at: number): ComponentChild {
  const inner = token.tokens ?? [];
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading":
      // Below the headings of the page itself.
      return h(`h${Math.min(6, 3 + Number(token["depth"]))}`, { key: at }, inline(inner));
    case "paragraph":
      return h("p", { key: at }, inline(inner));
    case "code": {
      const language = String(token["lang"] ?? "").split(/\s/)[0] || undefined;
      const code = colouredCode(String(token["text"]), language?.toLowerCase());
      return h(
        "pre",
        { key: at, class: "code", tabIndex: 0, role: "group", "aria-label": language ?? "Code" },
        h("code", {}, code),
      );
    }
    case "blockquote":
      return h("blockquote", { key: at }, blocks(inner));
    case "hr":
      return h("hr", { key: at });
    case "list":
      return list(token as Tokens.List, at);
    case "table":
      return table(token as Tokens.Table, at);
    case "text":
      return h("span", { key: at }, inner.length === 0 ? plain(token) : inline(inner));
    default:
      return h("p", { key: at, class: "plain" }, token.raw);
  }
}

function list(token: Tokens.List, at: number): ComponentChild {
  const items = token.items.map((item, index) =>
    h(
      "li",
      { key: index },
      item.task ? h("span", { class: "task" }, item.checked === true ? "☑ " : "☐ ") : null,
      blocks(item.tokens.filter(({ type }) => type !== "checkbox")),
    ),
  );
  return token.ordered
    ? h("ol", { key: at, start: token.start === "" ? 1 : token.start }, items)
    : h("ul", { key: at }, items);
}

function table({ header, rows }: Tokens.Table, at: number): ComponentChild {
  const cells = (row: readonly Tokens.TableCell[], name: "th" | "td"): ComponentChild =>
    row.map((cell, column) => h(name, { key: column }, inline(cell.tokens)));
  return h(
    "div",
    { key: at, class: "wide", role: "group", tabIndex: 0, "aria-label": "Table" },
    h(
      "table",
      {},
      h("thead", {}, h("tr", {}, cells(header, "th"))),
      h(
        "tbody",
        {},
        rows.map((row, index) => h("tr", { key: index }, cells(row, "td"))),
      ),
    ),
  );
}

function inline(tokens: readonly Token[]): ComponentChild {
  return tokens.map((token, at) => inlineOne(token as Tokens.Generic, at));
}

function inlineOne(token: Tokens.Generic, at: number): ComponentChild {
  const inner = token.tokens ?? [];
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return h(token.type, { key: at }, inline(inner));
    case "codespan":
      return h("code", { key: at }, plain(token));
    case "br":
      return h("br", { key: at });
    case "link":
      return link(String(token["href"]), { key: at, children: inline(inner) });
    case "image":
      return link(String(token["href"]), { key: at, children: plain(token) || String(token["href"]) });
    case "escape":
    case "text":
      return inner.length === 0 ? plain(token) : inline(inner);
    default:
      return token.raw;
  }
}

/** Where a link may lead; others are only text. */
export function isSafeLink(href: string): boolean {
  return /^(?:https?:\/\/|mailto:)/i.test(href);
}

function link(href: string, { key, children }: { key: number; children: ComponentChild }): ComponentChild {
  if (!isSafeLink(href)) return h("span", { key, title: href }, children);
  return h("a", { key, class: "link", href, target: "_blank", rel: "noopener noreferrer" }, children);
}

/** The lexer escapes for HTML what is shown here as text. */
function plain(token: Tokens.Generic): string {
  return String(token["text"] ?? token.raw)
    .replaceAll("&lt;", "<")
    .replaceAll("&gt;", ">")
    .replaceAll("&quot;", '"')
    .replaceAll("&#39;", "'")
    .replaceAll("&amp;", "&");
}
