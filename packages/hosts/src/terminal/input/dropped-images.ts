import { fileURLToPath } from "node:url";

const imageNames = /\.(?:png|jpe?g|gif|webp)$/i;
const maxLength = 4_000;

/**
 * The image files that a paste consists of. Terminals paste the path of a file that is dropped on them: in quotes, with
 * backslashes before what a shell would read, as an address, or as it is.
 */
export function droppedImages(pasted: string): readonly string[] {
  const text = pasted.trim();
  if (text === "" || text.length > maxLength) return [];
  // A path as it is may have blanks, and is one then.
  const isOnePath = /^(?:~?\/[^\n"'\\]*|[A-Za-z]:\\[^\n"']*)$/.test(text) && !/\s~?\//.test(text);
  if (isOnePath && imageNames.test(text)) return [text];
  const words = readWords(text) ?? [];
  return words.every(isImage) ? words : [];
}

function isImage(path: string): boolean {
  return imageNames.test(path) && /^(?:\/|~\/|[A-Za-z]:\\)/.test(path);
}

/** Words as a shell reads them; undefined where a quote is left open. */
function readWords(text: string): readonly string[] | undefined {
  const pattern = /\s*(?:'([^']*)'|"([^"]*)"|((?:\\.|[^\s'"\\])+))(?=\s|$)/gy;
  const words: string[] = [];
  let end = 0;
  for (const { 0: whole, 1: single, 2: double, 3: bare, index } of text.matchAll(pattern)) {
    const word = single ?? double ?? bare?.replace(/\\(.)/g, "$1") ?? "";
    words.push(word.startsWith("file://") ? pathOf(word) : word);
    end = index + whole.length;
  }
  return end === text.length && words.length > 0 ? words : undefined;
}

function pathOf(address: string): string {
  try {
    return fileURLToPath(address);
  } catch {
    return address;
  }
}
