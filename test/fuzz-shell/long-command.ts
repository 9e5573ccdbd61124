import { type Choices, createChoices } from "./random.ts";

/** Repeats a piece until a length is reached. */
function fill(piece: string | ((at: number) => string), length: number, between = ""): string {
  const parts: string[] = [];
  for (let size = 0, at = 0; size < length; at += 1) {
    const part = typeof piece === "string" ? piece : piece(at);
    parts.push(part);
    size += part.length + between.length + 1;
  }
  return parts.join(between);
}

/** Something between an opening and a closing, as deep as the length allows. */
function nest(open: string, inner: string, close: string, length: number): string {
  const depth = Math.max(1, Math.floor((length - inner.length) / (open.length + close.length || 1)));
  return open.repeat(depth) + inner + close.repeat(depth);
}

/** Text that is quoted for a shell once more at every level; it grows by itself. */
function requote(inner: string, before: string, length: number): string {
  let text = inner;
  for (let level = 0; level < 40; level += 1) {
    const next = `${before}'${text.replaceAll("'", "'\\''")}'`;
    if (next.length > length) break;
    text = next;
  }
  return text;
}

const words = [
  "a",
  "rm",
  "-rf",
  "git",
  "push",
  "--force",
  "src/a.ts",
  "../b",
  "/etc/passwd",
  "~/x",
  "*.ts",
  "**/*",
  "'q'",
  '"$x"',
  "$(ls)",
  "`id`",
  "{a,b}",
  "x=1",
  "-C",
  "--",
  "a=b",
  "@f",
  "http://a.b/c",
  "curl",
  "--config=x",
  ".env",
  "[a-z]*",
  "\\;",
  "secrets/key.txt",
] as const;

/** Kinds of commands that are costly to read, each at about the given length. */
export const longCommands: ReadonlyMap<string, (length: number, choices: Choices) => string> = new Map(
  Object.entries({
    "eval before eval": (n: number) => `${fill("eval ", n)}ls`,
    "eval of quoted eval": (n: number) => requote("ls", "eval ", n),
    "shell in shell": (n: number) => requote("ls", "bash -c ", n),
    "shells in a row": (n: number) => fill("bash -c 'ls; rm x'", n, "; "),
    "one shell with many commands": (n: number) => `bash -c '${fill("ls a; ", n)}'`,
    wrappers: (n: number) => `${fill("env A=1 nice timeout 5 nohup stdbuf -oL ", n)}ls`,
    "xargs in xargs": (n: number) => `${fill("xargs -I{} ", n)}ls`,
    "sudo in sudo": (n: number) => `${fill("sudo ", n)}ls`,
    "command in command": (n: number) => `${fill("command ", n)}ls`,
    "find with actions": (n: number) => `find . ${fill("-exec ls {} \\; ", n)}`,
    "find in find": (n: number) => `${fill("find . -exec ", n)}ls {} \\;`,
    "trap in trap": (n: number) => requote("ls", "trap ", n / 2),
    "one long word": (n: number) => `git ${"x".repeat(n)}`,
    "one long word of an unknown program": (n: number) => `frobnicate ${"x".repeat(n)}`,
    "one long program": (n: number) => "x".repeat(n),
    "a long word with separators": (n: number) => `frobnicate ${fill("rm -rf;", n)}`,
    "a long quoted text": (n: number) => `sh -x y '${fill("rm -rf a; ", n)}'`,
    "a long path": (n: number) => `cat ${fill("a/", n)}b`,
    "a long path upwards": (n: number) => `cat ${fill("../", n)}b`,
    "a long path with dots": (n: number) => `rm ${fill("a/../", n)}b`,
    "a long path in git parts": (n: number) => `cp x ${fill("hooks/", n)}b`,
    "many links in a path": (n: number) => `cat ${fill("loop/", n)}b`,
    "many words": (n: number) => `ls ${fill((at) => `w${at}`, n, " ")}`,
    "many words of an unknown program": (n: number) => `frobnicate ${fill((at) => `w${at}`, n, " ")}`,
    "many options": (n: number) => `frobnicate ${fill((at) => `--option-${at}=w${at}`, n, " ")}`,
    "many options with values": (n: number) => `kubectl ${fill((at) => `-n v${at}`, n, " ")} delete x`,
    "npm with many words": (n: number) => `npm ${fill((at) => `-w p${at}`, n, " ")} i x`,
    "docker with many words": (n: number) => `docker ${fill((at) => `--label l${at}`, n, " ")} run x`,
    "many files removed": (n: number) => `rm ${fill((at) => `f${at}`, n, " ")}`,
    "many files read": (n: number) => `cat ${fill((at) => `src/f${at}.ts`, n, " ")}`,
    "many links made": (n: number) => `ln -s ${fill((at) => `f${at}`, n, " ")} d`,
    "many links in a row": (n: number) => fill((at) => `ln -s f${at} g${at}`, n, "; "),
    "links and their use": (n: number) => fill((at) => `ln -s f${at} g${at}; cat g${at}/x`, n, "; "),
    "many copies": (n: number) => `cp ${fill((at) => `f${at}`, n, " ")} src`,
    "many moves": (n: number) => fill((at) => `mv f${at} g${at}`, n, "; "),
    unset: (n: number) => fill("unset ", n),
    "unset in a row": (n: number) => fill("unset x", n, "; "),
    export: (n: number) => `export ${fill((at) => `A${at}=x`, n, " ")}`,
    assignments: (n: number) => fill((at) => `a${at}=$a${at - 1}x`, n, "; "),
    "assignments that double": (n: number) =>
      `a0=xxxxxxxxxx; ${fill((at) => `a${at + 1}="$a${at}$a${at}"`, n, "; ")}; ls $a9`,
    "assignments before a command": (n: number) => `${fill((at) => `A${at}=1`, n, " ")} ls`,
    arrays: (n: number) => `a=(${fill((at) => `w${at}`, n, " ")}); ls "\${a[@]}"`,
    "changes of folder": (n: number) => fill((at) => `cd d${at}`, n, "; "),
    "folders that may be": (n: number) => fill((at) => `cd d${at} || cd e${at}`, n, "; "),
    "folders that may be, and files": (n: number) =>
      `${fill((at) => `cd d${at} || true`, n / 2, "; ")}; ${fill((at) => `cat f${at}`, n / 2, "; ")}`,
    pushd: (n: number) => fill((at) => `pushd d${at}`, n, "; "),
    subshells: (n: number) => nest("(", "ls", ")", n),
    "subshells with blanks": (n: number) => nest("( ", "ls", " )", n),
    groups: (n: number) => nest("{ ", "ls", "; }", n),
    substitutions: (n: number) => `ls ${nest("$(ls ", "x", ")", n)}`,
    "substitutions in quotes": (n: number) => `ls ${nest('"$(ls ', "x", ')"', n)}`,
    "many substitutions": (n: number) => `ls ${fill("$(ls) ", n)}`,
    backquotes: (n: number) => `ls ${fill("`ls` ", n)}`,
    backslashes: (n: number) => `ls ${"\\".repeat(n)}`,
    "backquotes with backslashes": (n: number) => `ls \`${"\\\\".repeat(n / 2)}\``,
    "process substitutions": (n: number) => `ls ${nest("<(cat ", "x", ")", n)}`,
    "parameters in parameters": (n: number) => `ls ${nest("${a:-", "x", "}", n)}`,
    "many parameters": (n: number) => `ls ${fill((at) => `\${v${at}}`, n)}`,
    "parameters with patterns": (n: number) => `ls ${fill("$" + "{a//x*y/z}", n)}`,
    arithmetic: (n: number) => `ls $((${fill("1+", n)}1))`,
    "arithmetic in parentheses": (n: number) => `ls $((${nest("(", "1", ")", n)}))`,
    "arithmetic commands": (n: number) => fill("((i++))", n, "; "),
    "counting loops": (n: number) => nest("for ((i=0;i<9;i++)); do ", "ls", "; done", n),
    braces: (n: number) => `ls ${fill("{a,b}", n)}`,
    "braces in braces": (n: number) => `ls ${nest("{a,", "b", "}", n)}`,
    "open braces": (n: number) => `ls ${"{".repeat(n)}`,
    "commas in braces": (n: number) => `ls {${fill("a,", n)}b}`,
    "a range in braces": (n: number) => `ls ${fill("{1..1000000}", n, " ")}`,
    "a range with steps": () => "ls {1..999999999..1} {a..z}{a..z}{a..z}{a..z}",
    "file patterns": (n: number) => `ls ${fill((at) => `*${at}*`, n, " ")}`,
    stars: (n: number) => `ls ${"*".repeat(n)}`,
    "stars and letters": (n: number) => `ls ${fill("*a", n)}b`,
    "patterns in folders": (n: number) => `ls ${fill("*/", n)}`,
    classes: (n: number) => `ls ${fill("[a-z]*", n)}`,
    "open classes": (n: number) => `ls ${"[".repeat(n)}`,
    "extended patterns": (n: number) => `ls ${nest("@(a|", "b", ")", n)}`,
    "here-documents": (n: number) => fill((at) => `cat <<E${at}\nx\nE${at}`, n, "\n"),
    "a long here-document": (n: number) => `cat <<E\n${fill("rm -rf x\n", n)}E`,
    "a long here-document for a shell": (n: number) => `sh <<E\n${fill("rm -rf x\n", n)}E`,
    "a here-document without an end": (n: number) => `cat <<E\n${fill("$(x) ", n)}`,
    "many here-documents in a line": (n: number) => `cat ${fill((at) => `<<E${at} `, n)}`,
    redirections: (n: number) => `ls ${fill((at) => `>f${at}`, n, " ")}`,
    "redirections of a group": (n: number) => nest("{ ", "ls", "; } >f", n),
    functions: (n: number) => fill((at) => `f${at}() { f${at + 1}; }`, n, "; "),
    "functions in functions": (n: number) => nest("f() { ", "ls", "; }", n),
    "if in if": (n: number) => nest("if ls; then ", "ls", "; fi", n),
    elif: (n: number) => `if ls; then ls; ${fill("elif ls; then ls; ", n)}fi`,
    "while in while": (n: number) => nest("while ls; do ", "ls", "; done", n),
    "loops in loops": (n: number) => nest("for x in 1 2 3 4 5 6 7 8 9; do ", "ls $x", "; done", n),
    "loops over files": (n: number) => nest("for x in *; do ", "ls $x", "; done", n),
    "a loop with many words": (n: number) => `for x in ${fill((at) => `w${at}`, n, " ")}; do ls $x; done`,
    case: (n: number) => `case x in ${fill((at) => `a${at}) ls;;`, n, " ")} esac`,
    "case in case": (n: number) => nest("case x in a) ", "ls", ";; esac", n),
    "patterns of case": (n: number) => `case x in ${fill((at) => `a${at}|`, n)}b) ls;; esac`,
    tests: (n: number) => `[[ ${fill("-n x && ", n)}-n y ]]`,
    "tests in parentheses": (n: number) => `[[ ${nest("( ", "-n x", " )", n)} ]]`,
    expressions: (n: number) => `[[ x =~ ${fill("(a*)*", n)} ]]`,
    pipes: (n: number) => fill("cat", n, " | "),
    ands: (n: number) => fill("ls", n, " && "),
    "ors and ands": (n: number) => fill("ls && cd x || ls", n, " || "),
    background: (n: number) => fill("ls", n, " & "),
    lines: (n: number) => fill("ls", n, "\n"),
    "continued lines": (n: number) => `ls ${fill("\\\n", n)}`,
    comments: (n: number) => fill("# '\" $( ", n, "\n"),
    blanks: (n: number) => `ls${" ".repeat(n)}x`,
    quotes: (n: number) => `ls ${fill("'a'\"b\"", n)}`,
    "an open quote": (n: number) => `ls "${'\\"'.repeat(n / 2)}`,
    "double quotes in a text": (n: number) => `frobnicate '${'"'.repeat(n)}'`,
    escapes: (n: number) => `ls $'${fill("\\x41", n)}'`,
    separators: (n: number) => ";".repeat(n),
    parentheses: (n: number) => "(".repeat(n),
    negations: (n: number) => `${fill("! ", n)}ls`,
    "invisible characters": (n: number) => `ls ${"\u200d".repeat(n)}`,
    "wide characters": (n: number) => `ls ${"😀".repeat(n / 2)}`,
    "blanks of other scripts": (n: number) => `ls ${"\u00a0".repeat(n)}`,
    "git with options": (n: number) => `git ${fill((at) => `-c a.b${at}=c`, n, " ")} log`,
    "git in folders": (n: number) => `git ${fill((at) => `-C d${at}`, n, " ")} log`,
    "git with paths": (n: number) => `git checkout -- ${fill((at) => `f${at}`, n, " ")}`,
    "git with commits": (n: number) => `git log ${fill((at) => `c${at}..d${at}`, n, " ")}`,
    sed: (n: number) => `sed '${fill("s/a/b/;", n)}' f`,
    "sed with files": (n: number) => `sed '${fill("w f\n", n)}' f`,
    jq: (n: number) => `jq '${nest("(", ".", ")", n)}' f`,
    "jq with pipes": (n: number) => `jq '${fill(". | ", n)}.' f`,
    awk: (n: number) => `awk '${fill("{print $1}", n)}' f`,
    printf: (n: number) => `printf '${fill("%s", n)}' x`,
    urls: (n: number) => `curl ${fill((at) => `http://h${at}.example/`, n, " ")}`,
    "a long url": (n: number) => `curl http://a.b/${"x".repeat(n)}`,
    tar: (n: number) => `tar cf x.tar ${fill((at) => `f${at}`, n, " ")}`,
    rsync: (n: number) => `rsync -a ${fill((at) => `f${at}`, n, " ")} d`,
    ssh: (n: number) => `ssh host ${fill("rm -rf x; ", n)}`,
    make: (n: number) => `make ${fill((at) => `A${at}=rm`, n, " ")}`,
    "names of the approvals": (n: number) => `${fill("retinue -x y ", n)}approve x`,
    "unset of the mark": (n: number) => `${fill("unset a b c ", n)}CLAUDECOD`,
    "words at random": (n: number, choices: Choices) => fill(() => choices.pick(words), n, " "),
    "words and separators at random": (n: number, choices: Choices) =>
      fill(
        () => `${choices.pick(words)}${choices.pick([" ", " ", " ", ";", "\n", "|", "&&", "||", " > "])}`,
        n,
      ),
    "signs at random": (n: number, choices: Choices) =>
      fill(
        () =>
          choices.pick([
            "'",
            '"',
            "`",
            "$",
            "(",
            ")",
            "{",
            "}",
            "[",
            "]",
            "\\",
            "\n",
            ";",
            "&",
            "|",
            "<",
            ">",
            " ",
            "a",
            "*",
            "?",
            "!",
            "#",
            "=",
            "~",
          ]),
        n,
      ),
  }),
);

export interface LongCommand {
  readonly kind: string;
  readonly command: string;
}

const kinds = [...longCommands];

/** One kind, or several of them in a row or inside each other, at a length below the limit. */
export function generateLong(seed: number, limit = 1_000_000): LongCommand {
  const choices = createChoices(seed);
  const length = Math.max(20, Math.floor(limit ** (0.4 + 0.6 * (choices.below(1000) / 1000))));
  const one = (size: number): readonly [string, string] => {
    const [kind, make] = kinds[choices.below(kinds.length)] as (typeof kinds)[number];
    return [kind, make(Math.max(4, Math.floor(size)), choices)];
  };
  if (choices.chance(0.6)) {
    const [kind, command] = one(length);
    return { kind, command: command.slice(0, limit) };
  }
  const parts = Array.from({ length: 2 + choices.below(4) }, (_, __, count = 4) => one(length / count));
  const joined = parts
    .map(([, command]) => (choices.chance(0.3) ? `bash -c '${command.replaceAll("'", "'\\''")}'` : command))
    .join(choices.pick(["; ", "\n", " && ", " | "]));
  const wrapped = choices.chance(0.2) ? `for x in 1 2 3; do ${joined}\ndone` : joined;
  return { kind: parts.map(([kind]) => kind).join(" + "), command: wrapped.slice(0, limit) };
}
