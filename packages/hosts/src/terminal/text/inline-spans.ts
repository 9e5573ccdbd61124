import { Lexer, type Token, type Tokens } from "marked";
import { type Span, span } from "../screen/row.ts";
import { bold, colours, combine, dim, italic, type Style, strike, underline } from "../screen/style.ts";

/** One line of Markdown as spans: emphasis, code and links; everything else is kept as it was written. */
export function inlineSpans(text: string, style: Style = 0): readonly Span[] {
  // Most lines hold nothing that could be markup, and looking is cheaper than reading.
  if (!/[*_`[\]<>~\\&]|https?:/.test(text)) return [span(text, style)];
  return spansOf(Lexer.lexInline(text, { gfm: true }), style);
}

function spansOf(tokens: readonly Token[], style: Style): readonly Span[] {
  return tokens.flatMap((token) => spansOfToken(token, style));
}

function spansOfToken(token: Token, style: Style): readonly Span[] {
  switch (token.type) {
    case "strong":
      return spansOf(token.tokens ?? [], combine(style, bold));
    case "em":
      return spansOf(token.tokens ?? [], combine(style, italic));
    case "del":
      return spansOf(token.tokens ?? [], combine(style, strike));
    case "codespan":
      return [span(textOf(token), combine(style, colours.code))];
    case "link":
      return linkSpans(token as Tokens.Link, style);
    case "image":
      return [span(`${textOf(token)} (${(token as Tokens.Image).href})`, combine(style, dim))];
    case "br":
      return [span(" ", style)];
    case "escape":
      return [span(textOf(token), style)];
    default:
      return token.type === "text" && "tokens" in token && token.tokens !== undefined
        ? spansOf(token.tokens, style)
        : [span(rawOf(token), style)];
  }
}

/** The address follows the text where it is not the text itself. */
function linkSpans({ href, text, tokens }: Tokens.Link, style: Style): readonly Span[] {
  const label = spansOf(tokens, combine(style, underline | colours.link));
  return text === href || `mailto:${text}` === href || text === ""
    ? label
    : [...label, span(` (${href})`, combine(style, dim))];
}

function textOf(token: Token): string {
  return "text" in token && typeof token.text === "string" ? token.text : token.raw;
}

/** Text is shown as it was written; nothing here is HTML, so entities stay what they are. */
function rawOf(token: Token): string {
  return token.raw;
}
