/** What a person has written and not sent: the text as it is shown, and what its chips represent. */
export interface Draft {
  readonly text: string;
  readonly pastes: ReadonlyMap<string, string>;
}

export const emptyDraft: Draft = { text: "", pastes: new Map() };

export function draftOf(text: string): Draft {
  return isLarge(text) ? withPaste(emptyDraft, 0, text).draft : { text, pastes: new Map() };
}

/** What is sent: every chip replaced by what was pasted. */
export function expandDraft({ text, pastes }: Draft): string {
  return pastes.size === 0 ? text : text.replace(chipPattern, (chip) => pastes.get(chip) ?? chip);
}

/** Puts pasted text into a draft: a large one as a chip, which represents it until it is sent. */
export function withPaste(
  { text, pastes }: Draft,
  at: number,
  pasted: string,
): { readonly draft: Draft; readonly cursor: number } {
  // Line ends as the model reads them; of control characters only tabs stay.
  const clean = pasted
    .replace(/\r\n?/g, "\n")
    .replace(/\u001b\[(\d+);5u/g, (_, code: string) => String.fromCharCode(Number(code) & 0x1f))
    .replace(/[^\P{Cc}\n\t]/gu, "");
  const inserted = isLarge(clean) ? chipFor(clean, pastes) : clean;
  return {
    draft: {
      text: text.slice(0, at) + inserted + text.slice(at),
      pastes: inserted === clean ? pastes : new Map([...pastes, [inserted, clean]]),
    },
    cursor: at + inserted.length,
  };
}

/** Puts an image into a draft: a chip that is sent as it is, beside the image. */
export function withImage(
  { text, pastes }: Draft,
  at: number,
  chip: string,
): { readonly draft: Draft; readonly cursor: number } {
  const before = at > 0 && !/\s/.test(text[at - 1] ?? "") ? " " : "";
  const inserted = `${before}${chip} `;
  return {
    draft: {
      text: text.slice(0, at) + inserted + text.slice(at),
      pastes: new Map([...pastes, [chip, chip]]),
    },
    cursor: at + inserted.length,
  };
}

/** Where chips are in a text; the cursor does not go into them, and they are deleted as a whole. */
export function chipRanges({
  text,
  pastes,
}: Draft): readonly { readonly start: number; readonly end: number }[] {
  if (pastes.size === 0) return [];
  return [...text.matchAll(chipPattern)]
    .filter(([chip]) => pastes.has(chip))
    .map((found) => ({ start: found.index, end: found.index + found[0].length }));
}

const chipPattern = /\[pasted #\d+: [\d,]+ (?:lines|characters)\]|\[image #\d+: [^\]\n]*\]/g;
const maxShownLines = 8;
const maxShownCharacters = 1000;

function isLarge(text: string): boolean {
  return text.length > maxShownCharacters || text.split("\n", maxShownLines + 1).length > maxShownLines;
}

function chipFor(text: string, pastes: Draft["pastes"]): string {
  const lines = text.split("\n").length;
  const size =
    lines > 1 ? `${lines.toLocaleString("en")} lines` : `${text.length.toLocaleString("en")} characters`;
  return `[pasted #${pastes.size + 1}: ${size}]`;
}
