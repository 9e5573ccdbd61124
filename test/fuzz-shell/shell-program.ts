import { type Choices, createChoices } from "./random.ts";

/** Names of the harmless commands; `mf` fails. */
export const markers = ["m1", "m2", "m3", "mf"] as const;

/** A program over the grammar of bash in which every marker that may run has a number of its own, and no slash is. */
export function generateProgram(seed: number): string {
  const maker = { choices: createChoices(seed), count: 0 };
  const program = list(maker, 3);
  return maker.choices.chance(0.1) ? damage(maker.choices, program) : program;
}

interface Maker {
  readonly choices: Choices;
  count: number;
}

type Make = (maker: Maker, depth: number) => string;

/** Texts that end in a newline have a here-document at their end. */
function join(left: string, separator: string, right: string): string {
  return left.endsWith("\n") ? left + right : left + separator + right;
}

function closed(text: string, end: string): string {
  return text.endsWith("\n") ? text + end : `${text}; ${end}`;
}

const list: Make = (maker, depth) => {
  let text = statement(maker, depth);
  const more = maker.choices.below(depth + 1);
  for (let at = 0; at < more; at += 1) {
    const separator = maker.choices.pick([
      "; ",
      "\n",
      " && ",
      " || ",
      " | ",
      " |& ",
      " & ",
      ";\n\n  ",
      " &&\n",
      " # a $(m1 9999)\n",
    ]);
    text = join(text, separator, statement(maker, depth));
  }
  return text;
};

const statement: Make = (maker, depth) => {
  if (depth <= 0) return simple(maker, 0);
  return maker.choices.pick<Make>([simple, simple, simple, simple, wrapped, wrapped, ...compounds])(
    maker,
    depth - 1,
  );
};

const compounds: readonly Make[] = [
  (maker, depth) => `{ ${closed(list(maker, depth), "}")}`,
  (maker, depth) => `(${list(maker, depth)})`,
  (maker, depth) =>
    `if ${closed(list(maker, depth), "then")} ${closed(list(maker, depth), "else")} ${closed(list(maker, depth), "fi")}`,
  (maker, depth) => `while ${closed(list(maker, depth), "do")} ${closed(list(maker, depth), "break; done")}`,
  (maker, depth) => `until ${closed(list(maker, depth), "do")} ${closed(list(maker, depth), "break; done")}`,
  (maker, depth) => `for x in a ${word(maker, depth)}; do ${closed(list(maker, depth), "done")}`,
  (maker, depth) =>
    seldom(maker, () => `for ((i=0; i<2; i++)); do ${closed(list(maker, depth), "done")}`, ":"),
  (maker, depth) =>
    `case ${word(maker, depth)} in a|b) ${closed(list(maker, depth), ";;")}\n*) ${closed(list(maker, depth), ":")} ;& c) ${closed(list(maker, depth), "esac")}`,
  (maker, depth) => `[[ ${word(maker, depth)} == ${word(maker, depth)} ]] || ${list(maker, depth)}`,
  (maker, depth) => `! ${statement(maker, depth)}`,
  (maker, depth) => `time ${simple(maker, depth)}`,
  (maker, depth) => seldom(maker, () => `coproc ${simple(maker, depth)}`, ":"),
  (maker, depth) => `x=${word(maker, depth)}`,
  (maker, depth) => `x=${word(maker, depth)}; ${simple(maker, depth)}`,
  (maker, depth) => `y='a b *.txt'; ${simple(maker, depth)} $y "$y"`,
  (maker, depth) => `for x in a 'b c' ${word(maker, depth)}; do ${marker(maker)} "$x" $x; done`,
  (maker, depth) => `echo 'l1 l2' | while read -r x y; do ${closed(list(maker, depth), "done")}`,
  (maker, depth) => `cd sub && ${list(maker, depth)}`,
  (maker, depth) => `x=(a ${word(maker, depth)})`,
  (maker, depth) => seldom(maker, () => `export y=${word(maker, depth)}`, "export NODE_ENV=test"),
  (maker, depth) => seldom(maker, () => `f() { ${closed(list(maker, depth), "}")}; f`, "true"),
  (maker, depth) => `((1 + ${maker.choices.below(9)})) && ${list(maker, depth)}`,
];

const simple: Make = (maker, depth) => {
  const { choices } = maker;
  let text = choices.chance(0.15) ? `A=${word(maker, depth)} ` : "";
  text += marker(maker);
  for (let at = choices.below(3); at > 0; at -= 1)
    text += choices.pick([" ", "  ", "\t", " \\\n "]) + word(maker, depth);
  if (choices.chance(0.2))
    text += choices
      .pick([" >.out", " 2>&1", " >>.out", " &>.out", " <in", " 2>", " >&2"])
      .replace(/2>$/, "2>.err");
  if (choices.chance(0.1)) text += ` <<<${word(maker, depth)}`;
  return depth > 0 && choices.chance(0.15) ? text + hereDocument(maker, depth) : text;
};

const hereDocument: Make = (maker, depth) => {
  const body = `text ${word(maker, depth - 1)}\n\t$(${list(maker, depth - 1)}\n)`;
  const quote = maker.choices.pick(["", "", "'", '"', "\\"]);
  const end = quote === "\\" ? "" : quote;
  const rest = maker.choices.chance(0.3) ? ` && ${marker(maker)}` : "";
  return maker.choices.chance(0.3)
    ? ` <<-${quote}E${end}${rest}\n\t${body}\n\tE\n`
    : ` <<${quote}E${end}${rest}\n${body}\nE\n`;
};

const wrapped: Make = (maker, depth) => {
  const inner = (): string => list(maker, depth);
  return maker.choices.pick<() => string>([
    () => `sh -c ${quoted(maker, inner())}`,
    () => `bash -ec ${quoted(maker, inner())}`,
    () => `eval ${quoted(maker, inner())}`,
    () => `trap ${quoted(maker, inner())} EXIT`,
    () => `env B=1 ${marker(maker)}`,
    () => `env -u B ${marker(maker)}`,
    () => `timeout -k 1 5 ${marker(maker)}`,
    () => `nice -n 1 ${marker(maker)}`,
    () => `command ${marker(maker)}`,
    () => `(exec ${marker(maker)})`,
    () => `echo a b | xargs -n1 ${marker(maker)}`,
    () => `echo a | xargs -I{} sh -c ${quoted(maker, `${marker(maker)} {}`)}`,
    () => `find . -maxdepth 0 -exec ${marker(maker)} {} \\;`,
    () => `bash <<'S'\n${inner()}\nS\n`,
    () => `builtin eval ${quoted(maker, inner())}`,
    () => `env timeout 5 nice ${marker(maker)}`,
  ])();
};

/** A marker with its number, in one of many spellings. */
function marker(maker: Maker): string {
  maker.count += 1;
  return `${spelled(maker, maker.choices.pick(markers))} ${spelled(maker, String(maker.count))}`;
}

function bareMarker(maker: Maker): string {
  maker.count += 1;
  return `${maker.choices.pick(markers)} ${maker.count}`;
}

function spelled({ choices }: Maker, text: string): string {
  const rest = text.slice(1);
  return choices.pick([
    text,
    text,
    text,
    text,
    `'${text}'`,
    `"${text}"`,
    `\\${text}`,
    `${text[0]}""${rest}`,
    `${text[0]}\\\n${rest}`,
    `$'\\x${text.charCodeAt(0).toString(16)}'${rest}`,
    `$'\\${text.charCodeAt(0).toString(8).padStart(3, "0")}'${rest}`,
    `"${text[0]}"'${rest}'`,
  ]);
}

const word: Make = (maker, depth) => {
  const { choices } = maker;
  if (depth <= 0) return choices.pick(plainWords);
  const inner = (): string => list(maker, depth - 1);
  return choices.pick<() => string>([
    () => choices.pick(plainWords),
    () => choices.pick(plainWords),
    () => choices.pick(plainWords),
    () => `$(${inner()})`,
    () => `"a $(${inner()}) b"`,
    () => backticks(inner()),
    () => `"${backticks(bareMarker(maker))}"`,
    () => `<(${inner()})`,
    () => seldom(maker, () => `\${x:-$(${inner()})}`, `\${x:-y}`),
    () => seldom(maker, () => `"\${x:-"$(${inner()})"}"`, `\${x:-y}`),
    () => seldom(maker, () => `\${x#$(${inner()})}`, `\${x:-y}`),
    () => seldom(maker, () => `\${x%%$(${inner()})}`, `\${x:-y}`),
    () => seldom(maker, () => `$((1 + $(${inner()})))`, "$((x + 1))"),
    () => seldom(maker, () => `a{$(${inner()}),b}`, `\${x:-y}`),
    () => seldom(maker, () => `\${x:$(${inner()}; echo 0)}`, "a"),
  ])();
};

const plainWords: readonly [string, ...string[]] = [
  "a",
  "'b; m1 9999'",
  '"c && m1 9999"',
  "\\;",
  "'$(m1 9999)'",
  '"\\$(m1 9999)"',
  "$x",
  '"$x"',
  "*.none",
  "*.txt",
  "sub/*",
  "[ab].txt",
  "?.txt",
  "*",
  ".h*",
  "{a,b}",
  "x{a,b}y",
  "{1..3}",
  "HEAD@{1}",
  "{}",
  "$'\\x2d\\x6e'",
  "$'\\u2713'",
  "$'\\141\\tb'",
  "--a=~",
  "-x",
  "$HOME",
  '"$HOME"sub',
  "$PWD",
  "\\*",
  "'*'",
  '"\\\\n"',
  "$".concat("{x%b}"),
  "$".concat("{y##*b}"),
  "~",
  "\\`m1",
  "$'a\\'b'",
  "'#'",
  "a#b",
  "--",
  "-n",
  "=",
  "$((1+2))",
  "$".concat("{#x}"),
  "$?",
  "'it'\"'\"'s'",
  "a\\\nb",
  '""',
  "é",
  "%s",
];

/** Words that only look plain, or that bash and others read differently. */
const oddWords: readonly [string, ...string[]] = [
  "{x}y,z}",
  "{a,{b,c}}",
  "{a,b",
  "a{,b}c",
  "{01..03}",
  "{a..c}",
  "$'\\x{2d}n'",
  "$'\\cA'",
  "$'\\0'",
  "~nobody",
  "~+",
  "a=~",
  "a=b:~",
  "$".concat("{x@Q}"),
  "$".concat("{!x}"),
  "[[:alpha:]].txt",
  "[]a].txt",
  "[^a].txt",
  "[a-b].txt",
  "@(a|b).txt",
  "*/",
  "**",
  "./*.txt",
  "a\\ b",
  "\\~",
  "'~'",
  '$"x"',
  "$[1+2]",
  "%1",
  "!x",
  "^a^b",
  "`m1 1`",
  "$(m1 1)",
  "a$(echo b)c",
  '"a$(echo "b c")d"',
  "$(echo a b)",
  "<(echo)",
  "x=1",
  "-",
  "''",
  "'a''b'\"c\"d\\e",
  "$*",
  '"$@"',
  "$0",
  "$1",
  "$_",
  "$-",
];

/** One command with a few words of any kind. */
export function generateWords(seed: number): string {
  const choices = createChoices(seed);
  const words = Array.from({ length: 1 + choices.below(3) }, () => {
    const one = (): string => choices.pick(choices.chance(0.5) ? plainWords : oddWords);
    return choices.chance(0.2) ? one() + one() : one();
  });
  const before = choices.pick(["", "", "", "x='a b'; ", "x=-n; ", "y='*.txt'; ", "cd sub; "]);
  return `${before}m1 ${words.join(" ")}`;
}

/** What the analysis calls opaque would hide all the rest. */
function seldom({ choices }: Maker, make: () => string, instead: string): string {
  return choices.chance(0.06) ? make() : instead;
}

function backticks(text: string): string {
  return `\`${text.replace(/[\\`]/g, "\\$&")}\``;
}

function quoted({ choices }: Maker, text: string): string {
  if (choices.chance(0.6)) return `'${text.replaceAll("'", "'\\''")}'`;
  return `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
}

/** One character less or more, so that the program may mean something else, or nothing. */
function damage(choices: Choices, program: string): string {
  const at = choices.below(program.length);
  const sign = choices.pick([
    "'",
    '"',
    "$",
    "(",
    ")",
    "`",
    "{",
    "}",
    ";",
    "&",
    "|",
    "<",
    ">",
    "\\",
    "\n",
    " ",
    "#",
    "!",
  ]);
  if (choices.chance(0.5)) return program.slice(0, at) + program.slice(at + 1);
  return program.slice(0, at) + sign + program.slice(at);
}
