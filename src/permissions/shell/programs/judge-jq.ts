import { optionTable, scanOptions } from "../option-table.ts";
import type { Word } from "../word.ts";
import { environmentReason, type Judgement, judgement, optionPaths, optionRisk, used } from "./judgement.ts";

const table = optionTable(
  "r raw-output c compact-output n null-input s slurp R raw-input S sort-keys C color-output M monochrome-output e " +
    "exit-status j join-output a ascii-output tab indent: unbuffered stream seq h help V version f:<! from-file:<! L:<!",
);

/** Reads a jq command: only filters of a small grammar are understood, which see nothing but the input. */
export function judgeJq(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), table);
  const [filter, ...files] = scanned.operands;
  const judged = judgement(
    true,
    [...optionPaths(scanned.options), ...used(files, "read")],
    [
      optionRisk("jq", scanned),
      scanned.unclear,
      filter !== undefined && (!filter.literal || !isHarmlessFilter(filter.text))
        ? "the filter of jq is more than paths, selections and plain functions"
        : undefined,
    ],
  );
  return environmentReason(words) === undefined ? judged : { ...judged, readOnly: false };
}

const token =
  /\s+|"(?:[^"\\]|\\["\\/bfnrtu])*"|\$[A-Za-z_]\w*|@[a-z0-9]+|\.\.|\.[A-Za-z_]\w*|[A-Za-z_]\w*|\d+(?:\.\d+)?|\/\/=?|\|=|[-+*/%]=|[=!<>]=|[-+*/%<>|,.:;?()[\]{}=]/y;

const functions = new Set(
  (
    "select map map_values keys keys_unsorted length has in to_entries from_entries with_entries type sort sort_by group_by " +
    "unique unique_by min max min_by max_by add any all first last nth range floor ceil round sqrt tostring tonumber join split " +
    "test match capture scan sub gsub contains inside startswith endswith ltrimstr rtrimstr ascii_downcase ascii_upcase empty " +
    "not flatten reverse paths leaf_paths del values nulls strings numbers objects arrays booleans scalars iterables tojson " +
    "fromjson recurse limit until if then elif else end and or as reduce foreach try catch true false null index rindex " +
    "indices explode implode utf8bytelength transpose walk splits ascii todate fromdate error isvalid"
  ).split(" "),
);
const formats = new Set("@text @json @html @uri @csv @tsv @sh @base64 @base64d".split(" "));

/** Whether a filter is built of paths, operators and functions of the list; variables must be bound in it. */
export function isHarmlessFilter(filter: string): boolean {
  const bound = new Set<string>();
  let previous = "";
  for (let at = 0; at < filter.length; ) {
    token.lastIndex = at;
    const found = token.exec(filter)?.[0];
    if (found === undefined) return false;
    at += found.length;
    if (/^\s/.test(found)) continue;
    if (found.startsWith("@") && !formats.has(found)) return false;
    if (found.startsWith("$")) {
      if (previous === "as") bound.add(found);
      else if (!bound.has(found)) return false;
    }
    const isKey = /^\s*:(?!:)/.test(filter.slice(at)) && /^[{,]$/.test(previous);
    if (/^[A-Za-z_]/.test(found) && !functions.has(found) && !isKey && !isShortKey(filter, at, previous))
      return false;
    previous = found;
  }
  return true;
}

/** `{name}` and `{name, version}` take fields of that name. */
function isShortKey(filter: string, at: number, previous: string): boolean {
  return /^[{,]$/.test(previous) && /^\s*[,}]/.test(filter.slice(at)) && isInObject(filter, at);
}

function isInObject(filter: string, at: number): boolean {
  const before = filter.slice(0, at).replace(/"(?:[^"\\]|\\.)*"/g, "");
  const open: string[] = [];
  for (const sign of before) {
    if ("{[(".includes(sign)) open.push(sign);
    if ("}])".includes(sign)) open.pop();
  }
  return open.at(-1) === "{";
}
