/** Text as text, in an element or a quoted attribute; what would hide or reorder it is replaced. */
export function escapeHtml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g, "\ufffd")
    .replace(/[\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu, "\ufffd")
    .replace(/[&<>"'`]/g, (character) => `&#${character.charCodeAt(0)};`);
}

/** HTML that was made here; a template may put it in as it is. */
export interface Html {
  readonly html: string;
}

type Part = string | number | Html | readonly Html[];

/** A template in which everything but HTML made by this function is escaped. */
export function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const out = texts.map((text, index) => text + (index < parts.length ? render(parts[index] ?? "") : ""));
  return { html: out.join("") };
}

function render(part: Part): string {
  if (typeof part === "string") return escapeHtml(part);
  if (typeof part === "number") return String(part);
  return "html" in part ? part.html : part.map((one) => one.html).join("");
}
