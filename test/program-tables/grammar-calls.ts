import { awkFunctions, awkVariables } from "@retinue/gate/shell/programs/judge-command.ts";
import { findTests } from "@retinue/gate/shell/programs/judge-find.ts";
import { jqFormats, jqFunctions } from "@retinue/gate/shell/programs/judge-jq.ts";

/** One word of a language that a program reads, and calls with it: at least one of them must work. */
export interface GrammarRow {
  readonly program: string;
  readonly word: string;
  readonly calls: readonly (readonly string[])[];
}

const findValues: ReadonlyMap<string, string> = new Map(
  Object.entries({
    "-type": "f",
    "-xtype": "f",
    "-size": "+1",
    "-perm": "644",
    "-user": "root",
    "-group": "root",
    "-fstype": "ext4",
    "-printf": String.raw`%p %s %T@ %u %l\n`,
    "-regextype": "posix-extended",
    "-newer": "a.txt",
    "-anewer": "a.txt",
    "-cnewer": "a.txt",
    "-samefile": "a.txt",
    "-newermt": "yesterday",
    "-newerat": "yesterday",
    "-newerct": "yesterday",
    "-newermm": "a.txt",
    "-name": "*.txt",
    "-iname": "*.TXT",
  }),
);

function findCall(word: string, count: number): readonly string[] {
  if (word === "(" || word === ")") return ["find", "tree", "(", "-print", ")"];
  if (/^(?:!|-not)$/.test(word)) return ["find", "tree", word, "-empty"];
  if (/^(?:-a|-and|-o|-or|,)$/.test(word)) return ["find", "tree", "-empty", word, "-print"];
  if (/^-(?:depth|d|xdev|mount|daystart|noleaf|.*race|maxdepth|mindepth|regextype)$/.test(word))
    return ["find", "tree", word, ...(count === 1 ? [findValues.get(word) ?? "1"] : []), "-print"];
  return ["find", "tree", word, ...(count === 1 ? [findValues.get(word) ?? "1"] : [])];
}

/** Every production of the scripts of sed that are understood. */
const sedScripts = [
  ..."p d n N D P h H g G x l = q Q q3 Q3".split(" ").map((command) => `1${command}`),
  "$p",
  "1,2p",
  "1,+1p",
  "2,~4p",
  "0~2p",
  "/a/p",
  "/A/Ip",
  "/a/,/b/p",
  "/a/,$d",
  "2!d",
  "/[[:alpha:]]/p",
  String.raw`/\//p`,
  "1{p;d}",
  "1{/a/{p}}",
  ":a;N;$!ba",
  "/a/b;p",
  "s/a/b/;tend;p;:end",
  "s/a/b/;T;p",
  "s/a/b/",
  "s/a/b/gpI2",
  "s|a|b|",
  "s,a,b,g",
  String.raw`s/\(a\)/[\1&]/`,
  "y/ab/ba/",
  "1p;2p\n3p",
];

const jqKeywords: ReadonlyMap<string, string> = new Map(
  Object.entries({
    if: "if .a then 1 else 2 end",
    elif: "if .c then 1 elif .a then 2 else 3 end",
    and: ".a and .b",
    or: ".a or .b",
    as: ".a as $x | $x",
    reduce: "reduce .a[] as $x (0; . + $x)",
    foreach: "foreach .a[] as $x (0; . + $x)",
    try: "try error catch .",
  }),
);
const partOf: ReadonlyMap<string, string> = new Map([
  ["then", "if"],
  ["else", "if"],
  ["end", "if"],
  ["catch", "try"],
]);

const jqInputs = [".", ".a", ".b", '"2015-03-05T23:51:47Z"', "1425599507", "[1,2]", "[[1],[2]]", '{"a":1}'];
const jqArguments = [
  [""],
  ["(.)", '("a")', "(1)"],
  ["(.;.)", '("a";"b")', "(1;.)"],
  ["(.;.;.)", '("a";"b";"g")'],
];

/** One call for each number of arguments that jq knows the function with, such as `sub/2`. */
function jqRow(word: string, builtins: readonly string[]): GrammarRow {
  const keyword = jqKeywords.get(partOf.get(word) ?? word);
  if (keyword !== undefined || word === "null" || word === "true" || word === "false")
    return { program: "jq", word, calls: [["jq", keyword ?? word, "d.json"]] };
  const arities = builtins.flatMap((name) =>
    name.startsWith(`${word}/`) ? [Number(name.split("/")[1])] : [],
  );
  const calls = arities.flatMap((arity) => {
    const uses = (jqArguments[arity] ?? []).flatMap((given) =>
      jqInputs.map((input) => `try (${input} | ${word}${given}) catch "failed"`),
    );
    return uses.length === 0 ? [] : [["jq", uses.map((use) => `[limit(3; ${use})]`).join(", "), "d.json"]];
  });
  return { program: "jq", word, calls };
}

const awkArguments = [
  "",
  "()",
  "($0)",
  '($0, "a")',
  "(1, 2)",
  '(/a/, "b")',
  '(/a/, "b", "g")',
  "(1, 2, 3)",
  "($0, parts)",
];

export const grammarRows: readonly GrammarRow[] = [
  ...[...findTests].map(([word, count]) => ({ program: "find", word, calls: [findCall(word, count)] })),
  ...sedScripts.map((script) => ({
    program: "sed",
    word: script,
    calls: [
      ["sed", "-n", script, "a.txt"],
      ["sed", script, "a.txt"],
    ],
  })),
  ...[...jqFormats].map((word) => ({
    program: "jq",
    word,
    calls: [
      ["jq", `.b | ${word}`, "d.json"],
      ["jq", `.a | ${word}`, "d.json"],
    ],
  })),
  ...["gawk", "mawk"].flatMap((program) => [
    ...[...awkFunctions].map((word) => ({
      program,
      word,
      calls: awkArguments.map((given) => [program, `{ x = ${word}${given}; print x }`, "a.txt"]),
    })),
    ...[...awkVariables].map((word) => ({
      program,
      word,
      calls: [
        [program, `{ print ${word} }`, "a.txt"],
        [program, `BEGIN { ${word} = "probe.txt" } { print }`, "a.txt"],
        [program, "-v", `${word}=probe.txt`, "{ print }", "a.txt"],
        [program, "{ print }", `${word}=probe.txt`, "a.txt"],
      ],
    })),
  ]),
];

/** `builtins` are the functions that the jq of this machine has. */
export function jqRows(builtins: readonly string[]): readonly GrammarRow[] {
  return [...jqFunctions].map((word) => jqRow(word, builtins));
}

/** What the languages can do beyond that, and real programs with it: each of these leaves a file, or starts a program. */
export const actingCalls: readonly (readonly string[])[] = [
  ["sed", "1e touch made", "a.txt"],
  ["sed", "s/b/touch made/e", "a.txt"],
  ["sed", "w made", "a.txt"],
  ["sed", "s/b/c/w made", "a.txt"],
  ["sed", "1W made", "a.txt"],
  ["sed", ":a;1e touch made", "a.txt"],
  ["sed", "{p};1e touch made", "a.txt"],
  ["sed", "-n", "/a/{1e touch made\n}", "b.txt"],
  ["find", "a.txt", "-fprint", "made"],
  ["find", "a.txt", "-fls", "made"],
  ["find", "a.txt", "-exec", "touch", "made", ";"],
  ["find", "b.txt", "-delete"],
  ["gawk", 'BEGIN { system("touch made") }'],
  ["gawk", 'BEGIN { print "x" > "made" }'],
  ["gawk", 'BEGIN { print "x" | "cat > made" }'],
  ["gawk", 'BEGIN { "touch made" | getline }'],
  ["gawk", '@load "filefuncs"; BEGIN { print "x" > "made" }'],
  ["gawk", "--dump-variables=made", "1", "a.txt"],
];

/** Files that are read without being named as an operand would be. */
export const readingCalls: readonly (readonly string[])[] = [
  ["sed", "r probe.txt", "a.txt"],
  ["sed", "1R probe.txt", "a.txt"],
  ["gawk", 'BEGIN { while ((getline line < "probe.txt") > 0) print line }'],
  ["gawk", 'BEGIN { ARGV[1] = "probe.txt" } { print }', "a.txt"],
  ["gawk", "-f", "probe.txt", "a.txt"],
  ["jq", "-n", "--rawfile", "x", "probe.txt", "$x"],
  ["jq", "-n", "--slurpfile", "x", "d.json", "$x"],
  ["jq", "-f", "probe.txt", "d.json"],
  ["find", "-files0-from", "names"],
];
