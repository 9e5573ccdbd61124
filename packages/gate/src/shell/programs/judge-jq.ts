import type { Judgement, Word } from "../model.ts";
import { hasOption, optionTable, scanOptions } from "../word.ts";
import { environmentReason, judgement, optionPaths, optionRisk, used } from "./judgement.ts";

export const jqOptions = optionTable(
  "r raw-output c compact-output n null-input s slurp R raw-input S sort-keys C color-output M monochrome-output e " +
    "exit-status j join-output a ascii-output tab indent: unbuffered stream seq h help V version f! from-file! L:<!",
);

/** Reads a jq command: only filters of a small grammar are understood, which see nothing but the input. */
export function judgeJq(words: readonly Word[]): Judgement {
  const { rest, named, unclear } = withoutNamedValues(words.slice(1));
  const scanned = scanOptions(rest, jqOptions);
  const [filter, ...files] = scanned.operands;
  const fromFile = hasOption(scanned, "f", "from-file");
  const judged = judgement(
    true,
    [...optionPaths(scanned.options), ...used(fromFile ? scanned.operands : files, "read")],
    [
      optionRisk("jq", scanned),
      unclear,
      scanned.unclear,
      filter !== undefined && (!filter.literal || !isHarmlessFilter(filter.text, named))
        ? "the filter of jq is more than paths, selections and plain functions"
        : undefined,
    ],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

interface NamedValues {
  readonly rest: readonly Word[];
  readonly named: readonly string[];
  readonly unclear?: string;
}

/** `--arg name value` binds a variable; these options take two words each. */
function withoutNamedValues(words: readonly Word[]): NamedValues {
  const rest: Word[] = [];
  const named: string[] = [];
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as Word; // within the bounds that the loop has just checked
    if (word.text === "--") return { rest: [...rest, ...words.slice(at)], named };
    if (!/^--arg(?:json)?$/.test(word.text)) {
      rest.push(word);
      continue;
    }
    const [name, value] = words.slice(at + 1, at + 3);
    if (name?.literal !== true || value === undefined || !value.isOne)
      return { rest: words, named, unclear: `the option ${word.text} of jq is not understood` };
    named.push(`$${name.text}`);
    at += 2;
  }
  return { rest, named };
}

const token =
  /\s+|\$[A-Za-z_]\w*|@[a-z0-9]+|\.\.|\.[A-Za-z_]\w*|[A-Za-z_]\w*|\d+(?:\.\d+)?|\/\/=?|\|=|[-+*/%]=|[=!<>]=|[-+*/%<>|,.:;?()[\]{}="]/y;
/** Text of a string up to its end, or up to an expression in it. */
const stringText = /(?:[^"\\]|\\["\\/bfnrt]|\\u[0-9A-Fa-f]{4})*(?:"|\\\()/y;

export const jqFunctions = new Set(
  (
    "select map map_values keys keys_unsorted length has in to_entries from_entries with_entries type sort sort_by group_by " +
    "unique unique_by min max min_by max_by add any all first last nth range floor ceil round sqrt pow log exp tostring " +
    "tonumber join split test match capture scan sub gsub contains inside startswith endswith ltrimstr rtrimstr trim ltrim " +
    "rtrim ascii_downcase ascii_upcase empty not flatten reverse path paths leaf_paths getpath setpath delpaths pick del " +
    "values nulls strings numbers objects arrays booleans scalars iterables tojson fromjson recurse limit until while repeat " +
    "if then elif else end and or as reduce foreach try catch true false null index rindex indices explode implode " +
    "utf8bytelength transpose walk splits ascii todate fromdate now strftime strptime mktime gmtime dateadd datesub date " +
    "fromdateiso8601 todateiso8601 error isvalid input inputs input_filename input_line_number tostream fromstream " +
    "truncate_stream infinite nan isinfinite isnan isnormal abs toarray combinations IN INDEX"
  ).split(" "),
);
export const jqFormats = new Set(
  "@text @json @html @uri @csv @tsv @sh @base64 @base64d @base32 @base32d".split(" "),
);

/** Whether a filter is built of paths, operators and functions of the list; variables must be bound in it or `named`. */
export function isHarmlessFilter(filter: string, named: readonly string[] = []): boolean {
  const bound = new Set(named.filter((name) => name !== "$ENV" && !name.startsWith("$__")));
  /** What is open around a place; `"` is an expression in a string. */
  const open: string[] = [];
  let previous = "";
  let binds = false;
  for (let at = 0; at < filter.length; ) {
    const found = nextToken(filter, at, open);
    if (found === undefined) return false;
    at += found.length;
    if (/^\s/.test(found)) continue;
    if (found === "as") binds = true;
    if (found === "|" || found === "(") binds = false;
    if (found.startsWith("@") && !jqFormats.has(found)) return false;
    if (found.startsWith("$")) {
      if (binds) bound.add(found);
      else if (!bound.has(found)) return false;
    }
    const isKey =
      open.at(-1) === "{" && /^[{,]$/.test(previous) && /^\s*(?:[,}]|:(?!:))/.test(filter.slice(at));
    if (/^[A-Za-z_]/.test(found) && !jqFunctions.has(found) && !isKey) return false;
    previous = found;
  }
  return open.length === 0;
}

const closing: ReadonlyMap<string, string> = new Map([
  ["}", "{"],
  ["]", "["],
  [")", "("],
]);

/** The next token, with what it opens or closes noted; a string is one, up to its end or to an expression in it. */
function nextToken(filter: string, at: number, open: string[]): string | undefined {
  token.lastIndex = at;
  const found = token.exec(filter)?.[0];
  if (found === undefined) return undefined;
  const inString = found === ")" && open.at(-1) === '"';
  if (found === '"' || inString) {
    if (inString) open.pop();
    stringText.lastIndex = at + 1;
    const text = stringText.exec(filter)?.[0];
    if (text?.endsWith("(") === true) open.push('"');
    return text === undefined ? undefined : found + text;
  }
  if (/^[{[(]$/.test(found)) open.push(found);
  const opened = closing.get(found);
  return opened === undefined || open.pop() === opened ? found : undefined;
}
