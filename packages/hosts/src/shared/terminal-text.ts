import { hiddenCharacters } from "./strip-control-characters.ts";

/**
 * What may be written to a terminal: text, line breaks, tabs, and where colours are on the styles of this program. All
 * else that a terminal would act on, or that would hide or turn round what is shown, becomes its escape as JSON has it,
 * so that JSON stays what it was. Everything that is written to a terminal goes through here.
 */
export function terminalText(text: string, { colours }: { readonly colours: boolean }): string {
  return text
    .toWellFormed()
    .split(/(\u001b\[\d{1,2}m)/)
    .map((part, at) => (at % 2 === 1 && colours && ownStyles.has(part) ? part : escaped(part)))
    .join("");
}

/** Bold and dim with their end, the colours of `createPaint`, and back to the usual colour. */
const ownStyles: ReadonlySet<string> = new Set(
  [1, 2, 22, 31, 32, 33, 34, 36, 39].map((code) => `\u001b[${code}m`),
);

function escaped(text: string): string {
  return text.replace(hiddenCharacters, (found) =>
    found === "\n" || found === "\t" ? found : asJsonEscape(found),
  );
}

function asJsonEscape(character: string): string {
  const units = Array.from({ length: character.length }, (_, at) => character.charCodeAt(at));
  return units.map((unit) => `\\u${unit.toString(16).padStart(4, "0")}`).join("");
}
