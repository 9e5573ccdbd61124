import { stripVTControlCharacters } from "node:util";

/** How many cells of a terminal a text takes: wide characters two, combining ones none. */
export function widthOf(text: string): number {
  if (isPlain(text)) return text.length;
  return sizesOf(stripVTControlCharacters(text)).reduce((sum, { size }) => sum + size, 0);
}

/** The text in at most `width` cells, ending in … where it was cut. */
export function cutTo(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  return width < 1 ? "" : `${cutAt(text, width - 1).trimEnd()}…`;
}

export function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

/** Lines of at most `width` cells, broken between words where that is possible. */
export function wrap(text: string, width: number): string[] {
  const room = Math.max(8, width);
  return text.split("\n").flatMap((line) => wrapLine(line, room));
}

/** What a terminal would act on, or what would hide text, is replaced; tabs become spaces of one cell. */
export function stripControlCharacters(text: string): string {
  return text.toWellFormed().replace(/\t/g, " ").replace(hiddenCharacters, "\ufffd");
}

/** The same for a text of several lines; tabs stay. */
export function harmlessLines(text: string): string {
  return text
    .toWellFormed()
    .replace(/\r\n/g, "\n")
    .replace(hiddenCharacters, (found) => (found === "\n" || found === "\t" ? found : "\ufffd"));
}

/**
 * Control characters, other ends of lines, and characters that cannot be seen or that turn round the order of others.
 * What belongs to visible characters stays: selectors of how one looks, and joiners between characters of scripts that
 * need them and of emoji, but not beside plain letters, where they only hide.
 */
export const hiddenCharacters =
  /\p{Cc}|[\u2028\u2029\ufff9-\ufffb\u{e0000}-\u{e0fff}]|(?!\u034f|[\u180b-\u180d\u180f\ufe00-\ufe0f]|\u200c|\u200d)\p{Default_Ignorable_Code_Point}|(?<=^|[\0-\x7f])(?:\u200c|\u200d)|(?:\u200c|\u200d)(?=$|[\0-\x7f])/gu;

function wrapLine(line: string, width: number): string[] {
  const lines: string[] = [];
  let current = "";
  for (const word of line.split(" ")) {
    const longer = current === "" ? word : `${current} ${word}`;
    if (widthOf(longer) <= width) {
      current = longer;
      continue;
    }
    if (current !== "") lines.push(current);
    current = word;
    while (widthOf(current) > width) {
      const head = cutAt(current, width);
      if (head === "") break;
      lines.push(head);
      current = current.slice(head.length);
    }
  }
  return [...lines, current];
}

/** The longest beginning that takes at most `width` cells, never half a character. */
export function cutAt(text: string, width: number): string {
  if (isPlain(text)) return text.slice(0, width);
  let taken = 0;
  let cut = "";
  for (const { character, size } of sizesOf(text)) {
    taken += size;
    if (taken > width) break;
    cut += character;
  }
  return cut;
}

function isPlain(text: string): boolean {
  return /^[\x20-\x7e]*$/.test(text);
}

/** What a joiner ties to the character before it takes no cells of its own. */
function sizesOf(text: string): { readonly character: string; readonly size: number }[] {
  let isJoined = false;
  return Array.from(text, (character) => {
    const size = isJoined ? 0 : sizeOf(character);
    isJoined = character === "\u200d";
    return { character, size };
  });
}

function sizeOf(character: string): number {
  if (isPlain(character)) return 1;
  if (/[\p{Mn}\p{Me}\p{Cf}\p{Cc}\p{Emoji_Modifier}]/u.test(character)) return 0;
  return /\p{Emoji_Presentation}/u.test(character) || wide.test(character) ? 2 : 1;
}

/** East Asian wide and full-width blocks. */
const wide =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;
