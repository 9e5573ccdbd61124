import { optionPaths, optionRisk } from "./shell-command-spec.ts";
import { type Judgement, judgement, type UsedPath, used } from "./shell-judgement.ts";
import { type OptionTable, optionTable, type ScannedWords, scanOptions } from "./shell-options.ts";
import { plainWord, type Word } from "./shell-word.ts";

const table: OptionTable = optionTable(
  "A c d r t u x f: file: C: directory: I:! use-compress-program:! to-command:! checkpoint: checkpoint-action:! " +
    "rsh-command:! rmt-command:! F:! info-script:! new-volume-script:! T:< files-from:< X:< exclude-from:< " +
    "g:> listed-incremental:> index-file:> P! absolute-names! remove-files! one-top-level? K: N: L: b: H: V: " +
    "owner: group: mode: mtime: transform: strip-components: exclude: no-same-owner j J z Z a v k m p w h O " +
    "to-stdout create extract get list append update concatenate catenate diff compare delete test-label gzip " +
    "bzip2 xz zstd verbose keep-old-files volno-file:> suffix: format: hole-detection: sort: warning:",
);
const extracting = new Set(["x", "extract", "get"]);
const writing = new Set("c create r append u update A concatenate catenate delete".split(" "));

/** Reads a tar command: which archive and which directory it writes. */
export function judgeTar(words: readonly Word[]): Judgement {
  const scanned = scanOptions(separated(words.slice(1)), table);
  const has = (names: ReadonlySet<string>): boolean => scanned.options.some(({ name }) => names.has(name));
  const creates = has(writing);
  const paths: UsedPath[] = [
    ...optionPaths(scanned.options),
    ...used(valuesOf(scanned, "f", "file"), creates ? "write" : "read"),
  ];
  const directories = valuesOf(scanned, "C", "directory");
  if (has(extracting)) paths.push(...used(directories.length > 0 ? directories : [plainWord(".")], "write"));
  else paths.push(...used(directories, "read"));
  if (creates)
    paths.push(...used(scanned.operands, "read").map((path) => ({ ...path, below: true as const })));
  return judgement(false, paths, [
    optionRisk(words, scanned),
    valuesOf(scanned, "f", "file").some(({ text }) => text.includes(":"))
      ? "tar opens an archive on another machine"
      : undefined,
    scanned.loose ? "an argument of tar is only known when it runs and may be an option" : undefined,
  ]);
}

function valuesOf({ options }: ScannedWords, ...names: string[]): Word[] {
  return options.flatMap(({ name, value }) => (names.includes(name) && value !== undefined ? [value] : []));
}

/** `xzf a.tgz` is `-x -z -f a.tgz`: the values follow in the order of the letters. */
function separated(words: readonly Word[]): Word[] {
  const [first, ...rest] = words;
  if (first === undefined || !first.literal || first.text.startsWith("-")) return [...words];
  const separate: Word[] = [];
  for (const letter of first.text) {
    separate.push(plainWord(`-${letter}`));
    const value = table.get(letter)?.includes(":") ? rest.shift() : undefined;
    if (value !== undefined) separate.push(value);
  }
  return [...separate, ...rest];
}
