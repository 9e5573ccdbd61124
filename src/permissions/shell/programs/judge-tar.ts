import { hasOption, type OptionTable, optionTable, scanOptions, valuesOf } from "../option-table.ts";
import { plainWord, type Word } from "../word.ts";
import { type Judgement, judgement, optionPaths, optionRisk, type UsedPath, used } from "./judgement.ts";

export const tarOptions: OptionTable = optionTable(
  "A c d r t u x f: file: C: directory: I:! use-compress-program:! to-command:! checkpoint? checkpoint-action:! " +
    "rsh-command:! rmt-command:! F:! info-script:! new-volume-script:! T:< files-from:< X:< exclude-from:< " +
    "g:> listed-incremental:> index-file:> P! absolute-names! remove-files! one-top-level? K: N: L: b: H: V: " +
    "owner: group: mode: mtime: transform:! xform:! strip-components: exclude: exclude-vcs no-same-owner no-same-permissions " +
    "same-owner same-permissions j J z Z a v k m p w h O S B l o to-stdout create extract get list append update concatenate " +
    "catenate diff compare delete test-label gzip bzip2 xz zstd auto-compress verbose keep-old-files overwrite " +
    "skip-old-files touch volno-file:> suffix: format: sort: warning: wildcards numeric-owner totals? dereference help version",
);
const extracting = ["x", "extract", "get"];
const writing = "c create r append u update A concatenate catenate delete".split(" ");

/** Reads a tar command: which archive and which directory it writes. */
export function judgeTar(words: readonly Word[]): Judgement {
  const scanned = scanOptions(separated(words.slice(1)), tarOptions);
  const creates = hasOption(scanned, ...writing);
  const archives = valuesOf(scanned, "f", "file");
  const directories = valuesOf(scanned, "C", "directory");
  const paths: UsedPath[] = [...optionPaths(scanned.options), ...used(archives, creates ? "write" : "read")];
  if (hasOption(scanned, ...extracting))
    paths.push(...below(directories.length > 0 ? directories : [plainWord(".")], "write"));
  else paths.push(...used(directories, "read"));
  const reach = hasOption(scanned, "h", "dereference") ? "follow" : "all";
  if (creates) paths.push(...below(scanned.operands, "read", reach));
  return judgement(false, paths, [
    optionRisk("tar", scanned),
    archives.some(({ text }) => text.includes(":")) ? "tar opens an archive on another machine" : undefined,
    scanned.unclear,
  ]);
}

function below(words: readonly Word[], use: UsedPath["use"], reach: "all" | "follow" = "all"): UsedPath[] {
  return used(words, use).map((path) => ({ ...path, below: reach }));
}

/** `xzf a.tgz` is `-x -z -f a.tgz`: the values follow in the order of the letters. */
function separated(words: readonly Word[]): Word[] {
  const [first, ...rest] = words;
  if (first === undefined || !first.literal || first.text.startsWith("-")) return [...words];
  const separate: Word[] = [];
  for (const letter of first.text) {
    separate.push(plainWord(`-${letter}`));
    const value = tarOptions.get(letter)?.includes(":") ? rest.shift() : undefined;
    if (value !== undefined) separate.push(value);
  }
  return [...separate, ...rest];
}
