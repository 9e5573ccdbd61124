import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { loadAnalysis } from "./load-analysis.ts";
import type { ShellAnalysis } from "./model.ts";

function analyze(command: string): Promise<ShellAnalysis> {
  return loadAnalysis(command, { home: "/home/u", directory: "/nowhere" });
}

/** The commands that could run, in the order they are found. */
async function namesIn(command: string): Promise<string[]> {
  const { units } = await analyze(command);
  return units.map(({ words }) => words.map(({ text }) => text).join(" "));
}

describe("[PRM-9] every command that could run is found", () => {
  it.each([
    ["ls; touch x", ["ls", "touch x"]],
    ["ls\n\n  touch x", ["ls", "touch x"]],
    ["a && b || c | d |& e & f", ["a", "b", "c", "d", "e", "f"]],
    ["! a", ["a"]],
    ["time -p a", ["a"]],
    ["coproc a x", ["a x"]],
    ["(a; { b; })", ["a", "b"]],
    ["if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]],
    ["while a; do b; done; until c; do d; done", ["a", "b", "c", "d"]],
    ["for x in $(a); do b; done", ["a", "b"]],
    ["for ((i=0; i<3; i++)); do a; done", ["a"]],
    ["case $(a) in x) b;; *) c;& y) d;; esac", ["a", "b", "c", "d"]],
    ["[[ $(a) == `b` ]] || c", ["a", "b", "c"]],
    ["echo $(a) `b` <(c) >(d)", ["a", "b", "c", "d", "echo $(a) `b` <(c) >(d)"]],
    ["echo `echo \\`a\\``", ["a", "echo `a`", "echo `echo \\`a\\``"]],
    [`echo "\${x:-$(a)}"`, ["a", `echo \${x:-$(a)}`]],
    ["x=$(a)", ["a", "x=$(a)"]],
    ["x=(1 $(a))", ["a", "x=(1 $(a))"]],
    ["x[$(a)]=1", ["a", "x[$(a)]=1"]],
    ["cat <<E\n$(a)\nE", ["a", "cat"]],
    ["cat <<'E' && b\n$(a)\nE\nc", ["cat", "b", "c"]],
    ['cat <<< "$(a)"', ["a", "cat"]],
    ['b > "$(a)"', ["a", "b"]],
    ["f() { a; }; f", ["a", "f"]],
    ["to\\\nuch x", ["touch x"]],
    ["t\"ou\"'ch' $'\\x78'", ["touch x"]],
    ["ls # ; touch x", ["ls"]],
  ])("%s", async (command, names) => {
    expect(await namesIn(command)).toEqual(names);
  });
});

describe("[PRM-9] what is not fully understood is opaque", () => {
  it.each([
    ["ls &&& touch x", "it is not valid shell syntax"],
    ["echo 'abc", "it is not valid shell syntax"],
    ["cat <<E\nabc", "a here-document has no end"],
    ["$x a", "which program runs is only known when it runs"],
    ["l? a", "which program runs is only known when it runs"],
    ['eval "$x"', "the text that eval runs is only known when it runs"],
    [`echo \${x@P}`, "an expansion evaluates the text of a variable"],
    [`echo \${!x}`, "an indirect expansion names its variable when it runs"],
    [`echo \${x:=y}`, "an expansion sets a variable"],
    [`echo \${x:y[0]}`, "the place of a substring is evaluated"],
    [`echo \${a[i]}`, "an array subscript is evaluated"],
    ["((a[0]))", "an arithmetic expression evaluates text"],
    ["echo $(($(a)))", "an arithmetic expression evaluates text"],
    ["x='a[$(b)]'; echo $((x))", "an arithmetic expression evaluates text"],
    ["x='a[$(b)]'; [[ $x -eq 1 ]]", "a comparison of numbers evaluates text"],
    ["[[ -v 'x[$(a)]' ]]", "the test evaluates a variable's name"],
    ["for PATH in ./tools; do ls; done", "the variable PATH changes what commands do"],
    ["for PS4 in '$(a)'; do set -x; ls; done", "the variable PS4 changes what commands do"],
    ["read -r PATH; ls", "the variable PATH changes what commands do"],
    ["printf -v PATH x; ls", "printf may set a variable"],
    ["printf '%s%n' a PATH", "printf may set a variable"],
    ["getopts a PATH; ls", "getopts changes variables in a way that is not followed"],
    ["mapfile -C 'a' x", "mapfile changes variables in a way that is not followed"],
    ["declare -n r=PATH; r=.; ls", "declare changes variables in a way that is not followed"],
    ["export FOO=1; npm test", "the variable FOO may change what later commands do"],
    ["((PATH=1)); ls", "an arithmetic expression evaluates text"],
    ["select PATH in a; do ls; done", "it asks for a choice"],
    ["coproc ls", "it starts a coprocess"],
    ["find . -maxdepth 0 $'\\x{2d}exec' rm", "an escape sequence is not understood"],
    ["sort $'\\x{2d}oFILE' x", "an escape sequence is not understood"],
    ["find {x}x,.,-maxdepth,0,-exec} rm", "a brace expansion is not understood"],
    ["echo {a,{b,c}}", "a brace expansion is not understood"],
    ["y='a b *.txt'; cat $y", "a variable holds a file pattern among other text"],
    ["ls || expo(rt x", "it is not valid shell syntax"],
    [": (&& ls", "it is not valid shell syntax"],
    ["while true; do ls; ;done", "it is not valid shell syntax"],
    ["case a in a) ls; ;; esac", undefined],
    ["case a in a) ls;; esac", undefined],
    ["case a in a) ls ;; b) (pwd) ;; esac", undefined],
    ["ls;; pwd", "it is not valid shell syntax"],
    ["cat <((ls) || ls)", "arithmetic and a substitution look alike"],
    ["ls >=(a b)", "a parenthesis in a word is not quoted"],
    ["ls (; ls", "it is not valid shell syntax"],
    ["ls && y='a *.txt'; cat $y", "a variable holds a file pattern among other text"],
    [`cat \${x:-*.txt}`, "a variable holds a file pattern among other text"],
    ["((ls 1)\nls 2)", "it is not valid shell syntax"],
    ["(ls; (ls))", undefined],
    ["( (ls) )", undefined],
    ["[[ a\n== b ]] || ls", "it is not valid shell syntax"],
    [`echo \${\nx:-y}`, "a substitution in braces is not understood"],
    [`echo \${ ls; }`, "a substitution in braces is not understood"],
    ["sh -c 'x=(a b); ls'", "not every sh has arrays"],
    ["cat .[[:alpha:]]nv", "a file pattern is not understood"],
    ["cat @(a|b)", "an extended pattern is not understood here"],
    ['echo $"a"', "a translated string is not understood here"],
    ["dd if=~/x", "it is not clear where a home directory is meant"],
    ["f() { ls; }", "it defines a function"],
    ["1\\\n>x git push", "a line continues between a number and its redirection"],
    ["git 1\\\n>x push", "a line continues between a number and its redirection"],
    [": <(x=(a \\;)) <<'E'\ntouch x\nE", "an array is set in a substitution"],
    ["cat < /dev/tcp/example.org/80", "a redirection opens a network connection"],
    ["HOME=/tmp; cat ~/x", "the variable HOME changes what commands do"],
    ["sh -c '((a))'", "sh may read this syntax of bash differently"],
    ["zsh -c ls", "zsh does not read text as bash does"],
    ["timeout $t ls", "what timeout starts is not clear"],
    ["timeout --strange 5 ls", "what timeout starts is not clear"],
    ["ls\rtouch x", "it has control characters or invisible ones"],
    ["l\u200bs", "it has control characters or invisible ones"],
    ["ls \u202e dwp", "it has control characters or invisible ones"],
    ["ls\ufe0f", "it has control characters or invisible ones"],
    ["ls\u00a0-la", "it has spaces that bash does not take for spaces"],
    [`ls ${"a".repeat(10_000)}`, "it has more than 10000 characters"],
  ])("%s", async (command, reason) => {
    expect((await analyze(command)).opaque).toBe(reason);
  });

  it.each([
    "git commit -m '✨ add feature 🚀 👩‍💻 ❤️'",
    "echo 'a\u00a0b'",
    "i=0; while true; do i=$((i+1)); [[ $i -gt 3 ]] && break; done",
    `echo \${x%.ts} \${#x} \${x:0:3} \${x:-y} \${a[@]}`,
    "sh -c 'ls; cat x'",
  ])("not so: %s", async (command) => {
    expect((await analyze(command)).opaque).toBeUndefined();
  });
});

describe("[PRM-9] a loop over known words keeps the status of the command before it", () => {
  it("as a loop where its body begins with reading it", async () => {
    expect((await analyze("ls; for x in a b; do echo $?; done")).judged).toContain("for _r_x in a b");
  });
  it("as a sequence where the body runs something first", async () => {
    expect((await analyze("for x in a b; do ls $x; echo $?; done")).judged).not.toContain("for ");
  });
});

it("[PRM-9] a number that may not be set yet is no argument while it is empty", async () => {
  const { judged } = await analyze("while ls $x; do x=$((x + 1)); done");
  expect(judged).toContain(`ls \${_r_x}\n`);
});

describe("[PRM-9] a document with a quoted delimiter is a constant", () => {
  it("in the argument of a command", async () => {
    const { units } = await analyze("git commit -m \"$(cat <<'E'\nhello `x`\nE\n)\"");
    expect(units.at(-1)).toMatchObject({ grantText: "git commit -m 'hello `x`'" });
    expect(units.at(-1)?.words.every(({ literal }) => literal)).toBe(true);
  });

  it("but not when the delimiter is bare", async () => {
    const { units } = await analyze('git commit -m "$(cat <<E\nhello $(x)\nE\n)"');
    expect(units.at(-1)?.words.at(-1)).toMatchObject({ literal: false });
  });
});

describe("[PRM-9] redirections are paths that are read or written", () => {
  it.each([
    ["a > x", ["write  x"]],
    ["a >> x 2> y &> z", ["write  x", "write  y", "write  z"]],
    ["a < x", ["read  x"]],
    ["a <> x", ["read  x", "write  x"]],
    ["> x", ["write  x"]],
    ["a > /dev/null 2>&1 <&3 3>&-", []],
    ['a > "$HOME/x"', ["write  /home/u/x"]],
    ["a > '~/x'", ["write  ./~/x"]],
    ["a > $x", ["write  $x ?"]],
    ["cd d && a > x", ["write d x"]],
    ["cd d; a > x", ["write d x", "write  x"]],
    ["(cd d); a > x", ["write  x"]],
    ["cd d || a > x", ["write  x"]],
    ["cd $d && a > x", ["write unknown x"]],
    ["cd d && cd ../e && a > x", ["write d/../e x", "write e x"]],
    ["cd - && a > x; popd && a > y", ["write unknown x", "write unknown y", "write unknown y"]],
    ["for i in 1 2; do a > x; cd d; done", ["write  x", "write d x"]],
    ["while a > x; do cd d; done", ["write  x", "write unknown x"]],
    ["env -C d sh -c 'a > x'", ["write d x"]],
    ["if cd d; then a > x; else a > y; fi", ["write d x", "write  y"]],
  ])("%s", async (command, paths) => {
    const { redirects } = await analyze(command);
    const shown = redirects.map(
      ({ use, directory, path, literal }) => `${use} ${directory} ${path}${literal ? "" : " ?"}`,
    );
    expect([...new Set(shown)].sort()).toEqual([...new Set(paths)].sort());
  });
});

describe("[PRM-9] variables before a command", () => {
  it.each([
    ["CI=1 NO_COLOR=1 LC_ALL=C npm test", "npm test"],
    ["env NODE_ENV=test npm test", "npm test"],
    ["PATH=. npm test", undefined],
    ["FOO=1 npm test", undefined],
    ["LD_PRELOAD=x sh -c 'npm test'", undefined],
    ["env GIT_PAGER=x npm test", undefined],
    ["env =1 npm test", undefined],
  ])("%s is granted as %s", async (command, text) => {
    const unit = (await analyze(command)).units.at(-1);
    expect(unit?.grantText).toBe(text);
    expect(unit?.restrictTexts).toContain("npm test");
  });

  it.each([
    "PATH=.; ls",
    "IFS=x",
    "export GIT_PAGER=x",
    "declare -x LD_PRELOAD=x",
    "read PATH",
    "PS4='$(a)'",
  ])("%s is never granted", async (command) => {
    expect((await analyze(command)).opaque).toMatch(/variable/);
  });
});

describe("[PRM-9] any text at all", () => {
  const signs = fc.constantFrom(
    ..."'\"$(){}[]`;&|<>\\\n #!*?~=-@%:/.",
    "ls",
    "$((",
    "<<E\n",
    "\nE\n",
    "for x in ",
    "do ",
    "done",
    `\${x:`,
    "𝒳",
  );
  const text = fc.array(signs, { maxLength: 60 }).map((parts) => parts.join(""));

  it("never throws, and is the same twice", async () => {
    await fc.assert(
      fc.asyncProperty(fc.oneof(text, fc.string({ unit: anyCharacter })), async (command) => {
        const analysis = await analyze(command);
        expect(analysis.exactText).toBe(command.trim());
        expect(await analyze(command)).toEqual(analysis);
      }),
      { numRuns: 120 },
    );
  });

  it("does not take out of proportion for long and deep ones", async () => {
    const hostile = [
      "echo a; ".repeat(10_000),
      "echo $(".repeat(300) + ")".repeat(300),
      "for x in a; do cd b; ".repeat(200) + "done; ".repeat(200),
      "find . -exec ".repeat(500),
      "sudo ".repeat(2_000),
      "`".repeat(5_000),
      "cd a; ".repeat(2_000),
    ];
    const sizes = await Promise.all(hostile.map(async (command) => (await analyze(command)).units.length));
    expect(sizes.every((size) => size <= 10_001)).toBe(true);
  }, 10_000);
});

describe("[PRM-9] a composition has the commands of its parts", () => {
  const part = fc.constantFrom(
    "ls -l",
    "rm x",
    "cd d",
    "git push",
    "A=1 b",
    "sudo c",
    "cat <x",
    "echo $(d)",
    "sh -c 'e; f'",
    "if g; then h; fi",
  );
  const joined = fc.constantFrom<(a: string, b: string) => string>(
    (a, b) => `${a}; ${b}`,
    (a, b) => `${a} && ${b}`,
    (a, b) => `${a} || ${b}`,
    (a, b) => `${a} | ${b}`,
    (a, b) => `${a} & ${b}`,
    (a, b) => `${a}\n${b}`,
    (a, b) => `(${a}); { ${b}; }`,
    (a, b) => `echo "$(${a})" <(${b})`,
    (a, b) => `if ${a}; then ${b}; fi`,
    (a, b) => `while ${a}; do ${b}; done`,
    (a, b) => `x=$(${a}) y=\`${b}\` z`,
    (a, b) => `cat <<E\n$(${a})\nE\n${b}`,
    (a, b) => `case x in $(${a})) ${b};; esac`,
    (a, b) => `bash -c '${a.replaceAll("'", "'\\''")}' && eval '${b.replaceAll("'", "'\\''")}'`,
  );

  it("however they are joined", async () => {
    await fc.assert(
      fc.asyncProperty(part, part, joined, joined, async (a, b, join, again) => {
        const whole = again(join(a, b), a);
        const found = new Set((await analyze(whole)).units.map(({ written }) => written));
        for (const each of [a, b])
          for (const { written } of (await analyze(each)).units) expect(found).toContain(written);
      }),
      { numRuns: 100 },
    );
  });
});

describe("[PRM-9] what is too much to be looked up is not looked up", () => {
  it("a thousand commands in one call", async () => {
    expect((await analyze("ls\n".repeat(500))).opaque).toBeUndefined();
    const { opaque, units } = await analyze("ls\n".repeat(1_200));
    expect(opaque).toContain("too complex");
    expect(units.length).toBeGreaterThan(500);
  });

  it("a hundred file patterns in one call", async () => {
    const patterns = (count: number): string =>
      Array.from({ length: count }, (_, at) => `${at}*/x`).join(" ");
    expect((await analyze(`ls ${patterns(100)}`)).opaque).toBeUndefined();
    expect((await analyze(`ls ${patterns(101)}`)).opaque).toContain("too many files");
    // The same one again costs nothing.
    expect((await analyze(`ls ${"a*/x ".repeat(500)}`)).opaque).toBeUndefined();
  });
});
