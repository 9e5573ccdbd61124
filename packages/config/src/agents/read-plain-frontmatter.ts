/**
 * Reads frontmatter that needs no YAML parser: `key: words`, quoted words without escapes, lists of words, and paragraphs behind
 * `>` or `|`. Gives up on everything else. Most files are like this, and a parser that is not yet warmed up costs more than the whole start.
 */
export function readPlainFrontmatter(
  lines: readonly string[],
): Readonly<Record<string, unknown>> | undefined {
  const fields = new Map<string, unknown>();
  for (let index = 0; index < lines.length; index += 1) {
    const line = lines[index] ?? "";
    if (line === "") continue;
    const colon = line.indexOf(":");
    const key = line.slice(0, colon);
    if (colon < 1 || !plainKey.test(key) || fields.has(key) || key === "__proto__") return undefined;
    const rest = line.slice(colon + 1);
    const block = rest === "" ? readList(lines, index + 1) : readParagraph(rest, lines, index + 1);
    const value = block === undefined ? readValue(rest) : block.value;
    if (value === undefined) return undefined;
    fields.set(key, value);
    index += block?.length ?? 0;
    // An indented line would continue with the value above.
    if (startsWithBlank(lines[index + 1])) return undefined;
  }
  return fields.size === 0 ? undefined : Object.fromEntries(fields);
}

const plainKey = /^[A-Za-z_][A-Za-z0-9_-]*$/;
/** Begins with a letter, so it is no number, and holds nothing that YAML, or a reader of YAML, could take for syntax. */
const plainText =
  /^[A-Za-z\u00c0-\u024f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3](?:(?!: | #|:$)[\x20-\x7e\u00a1-\u024f\u2010-\u2027\u2030-\u205e\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7a3])*$/;
const quotedText = /^(?:"([\x20\x21\x23-\x5b\x5d-\x7e]*)"|'([\x20-\x26\x28-\x7e]*)')$/;
/** Nothing is syntax in such a line; one that begins with a blank would keep its line break. */
const lineOfText =
  /^(?! )[\x20-\x7e\u00a1-\u024f\u2010-\u2027\u2030-\u205e\u3001-\u30ff\u4e00-\u9fff\uac00-\ud7a3]+$/;
const smallNumber = /^(?:0|[1-9][0-9]{0,8})$/;
const wordsOfOtherTypes: ReadonlySet<string> = new Set(
  ["null", "true", "false"].flatMap((word) => [
    word,
    word.toUpperCase(),
    `${word[0]?.toUpperCase()}${word.slice(1)}`,
  ]),
);

/** What is below a key, and how many lines it has. */
interface ReadBlock {
  readonly value: string | readonly string[];
  readonly length: number;
}

function startsWithBlank(line: string | undefined): boolean {
  return line !== undefined && (line.startsWith(" ") || line.startsWith("\t"));
}

function readValue(rest: string): unknown {
  if (!rest.startsWith(" ")) return undefined;
  const text = trimSpaces(rest);
  if (text.startsWith("[")) {
    // `[Read, "Grep"]` of bare words; brackets, commas and colons inside an entry are for the parser.
    if (!text.endsWith("]")) return undefined;
    const items: string[] = [];
    for (const part of text.slice(1, -1).split(",")) {
      const item = readScalar(trimSpaces(part));
      if (typeof item !== "string" || /[[\]{}:"'#]/.test(item)) return undefined;
      items.push(item);
    }
    return items;
  }
  return readScalar(text);
}

/** YAML trims spaces and tabs, and no other white space. A pattern would take long over long runs of spaces. */
function trimSpaces(text: string): string {
  const isBlank = (at: number): boolean => text[at] === " " || text[at] === "\t";
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(start)) start += 1;
  while (end > start && isBlank(end - 1)) end -= 1;
  return text.slice(start, end);
}

function readScalar(text: string): string | number | undefined {
  if (plainText.test(text)) return wordsOfOtherTypes.has(text) ? undefined : text;
  const quoted = quotedText.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2];
  return smallNumber.test(text) ? Number(text) : undefined;
}

/** `- word` lines that are all indented alike, directly below their key. */
function readList(lines: readonly string[], from: number): ReadBlock | undefined {
  const indent = /^( +)- /.exec(lines[from] ?? "")?.[1];
  if (indent === undefined) return undefined;
  const items: string[] = [];
  for (let index = from; lines[index]?.startsWith(`${indent}- `) === true; index += 1) {
    const item = readScalar(trimSpaces((lines[index] ?? "").slice(indent.length + 2)));
    if (typeof item !== "string") return undefined;
    items.push(item);
  }
  return { value: items, length: items.length };
}

/** Lines of text that are all indented alike, with another field below them. */
function readParagraph(rest: string, lines: readonly string[], from: number): ReadBlock | undefined {
  const header = /^ ([>|])(-?)$/.exec(rest);
  const indent = /^( +)[^ ]/.exec(lines[from] ?? "")?.[1];
  if (header === null || indent === undefined) return undefined;
  const texts: string[] = [];
  for (let index = from; lines[index]?.startsWith(indent) === true; index += 1) {
    const text = (lines[index] ?? "").slice(indent.length);
    if (!lineOfText.test(text)) return undefined;
    texts.push(text);
  }
  const next = lines[from + texts.length];
  if (next === undefined || next === "" || startsWithBlank(next)) return undefined;
  const [, style, chomping] = header;
  const value = texts.join(style === ">" ? " " : "\n");
  return { value: chomping === "-" ? value : `${value}\n`, length: texts.length };
}
