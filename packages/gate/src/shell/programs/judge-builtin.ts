import type { Judgement, Word } from "../model.ts";
import { isSafeVariable } from "../private-name.ts";
import { environmentReason, judgement, used } from "./judgement.ts";

const changing = new Set(
  (
    "declare typeset local readonly let unset mapfile readarray getopts eval exec hash alias unalias enable bind " +
    "complete compgen compopt fc history shopt trap ulimit disown bg fg suspend logout coproc jobs wait dirs times caller umask"
  ).split(" "),
);

const builtins: ReadonlySet<string> = new Set([
  ...changing,
  ...". : [ break builtin cd command continue echo exit export false kill popd printf pushd pwd read return set shift source test true type [[".split(
    " ",
  ),
]);

/** Whether bash itself does what a name says, so that no program is looked for. */
export function isBuiltin(name: string): boolean {
  return builtins.has(name);
}

/** What a builtin of bash does; only the forms that are listed here are harmless. Undefined for anything else. */
export function judgeBuiltin(words: readonly Word[]): Judgement | undefined {
  const name = words[0]?.text ?? "";
  const judged = judgeForm(name, words);
  if (judged === undefined) return undefined;
  const isHidden = environmentReason(words) !== undefined;
  return { ...judged, ...(isHidden && { readOnly: false }), changesOperands: false };
}

function judgeForm(name: string, words: readonly Word[]): Judgement | undefined {
  const rest = words.slice(1);
  switch (name) {
    case ":":
    case "true":
    case "false":
    case "echo":
      return judgement(true, []);
    case "pwd":
      return onlyIf(
        rest.every(({ text, literal }) => literal && /^-[LP]$/.test(text)),
        name,
      );
    case "exit":
    case "return":
    case "break":
    case "continue":
    case "shift":
      return onlyIf(
        rest.length <= 1 && rest.every(({ text, numeric }) => numeric === true || /^\d+$/.test(text)),
        name,
      );
    case "type":
      return onlyIf(
        rest.every(({ text, literal }) => literal && /^(?:-[afptP]+|[\w./+-]+)$/.test(text)),
        name,
      );
    case "wait":
    case "jobs":
    case "times":
    case "umask":
      return onlyIf(rest.length === 0, name);
    default:
      return judgeShellForm(name, rest);
  }
}

/** Builtins that move the shell, set something in it, test or print. */
function judgeShellForm(name: string, rest: readonly Word[]): Judgement | undefined {
  switch (name) {
    case "cd":
      return onlyIf(isMove(rest), name);
    case "command":
      return onlyIf(/^-[vV]$/.test(rest[0]?.text ?? "") && rest.every(({ literal }) => literal), name);
    case "export":
      return onlyIf(rest.every(isSafeAssignment), name, "export changes what later commands do");
    case "set":
      return onlyIf(isHarmlessSet(rest), name);
    case "read":
      return onlyIf(
        rest
          .filter(({ text }) => text !== "-r")
          .every(({ text, literal }) => literal && /^[A-Za-z_]\w*$/.test(text)),
        name,
      );
    case "printf":
      return judgement(true, [], [isHarmlessFormat(rest) ? undefined : "printf may set a variable"]);
    case "test":
      return onlyIf(isHarmlessTest(rest), name, "the test may evaluate a variable");
    case "[":
      return onlyIf(
        rest.at(-1)?.text === "]" && isHarmlessTest(rest.slice(0, -1)),
        name,
        "the test may evaluate a variable",
      );
    case "pushd":
      return onlyIf(isPlainPush(rest), name);
    case "popd":
      return onlyIf(rest.length === 0, name);
    case "help":
      return onlyIf(
        rest.every(({ text, literal }) => literal && /^[\w:.[{!%]/.test(text)),
        name,
      );
    case "source":
    case ".":
      return {
        ...judgement(false, used(rest.slice(0, 1), "read"), ["it runs a file in this shell"]),
        anywhere: false,
        ...(rest[0]?.literal === true && { wildcardHead: `${name} ${rest[0].text}` }),
      };
    default:
      return changing.has(name)
        ? judgement(false, [], [`${name} changes the state of the shell`])
        : undefined;
  }
}

function onlyIf(
  isPlain: boolean,
  name: string,
  reason = `${name} is only understood in its plain form`,
): Judgement {
  return judgement(true, [], [isPlain ? undefined : reason]);
}

function isMove(rest: readonly Word[]): boolean {
  const operands = rest.filter(({ text }) => text !== "--" && text !== "-L");
  return (
    operands.length <= 1 &&
    operands.every(
      ({ text, pathKnown, loose }) => pathKnown && !loose && (text === "-" || !text.startsWith("-")),
    )
  );
}

/** Whether `pushd` goes to one folder; other forms turn or shorten the list of folders. */
export function isPlainPush(rest: readonly Word[]): boolean {
  return rest.length === 1 && isMove(rest) && !/^[-+]/.test(rest[0]?.text ?? "");
}

function isSafeAssignment({ text, literal }: Word): boolean {
  const name = /^([A-Za-z_]\w*)(?:=|$)/.exec(text)?.[1];
  return literal && name !== undefined && isSafeVariable(name);
}

function isHarmlessSet(flags: readonly Word[]): boolean {
  return (
    flags.length > 0 &&
    flags.every(({ text, literal }, at) =>
      text === "pipefail" ? /o$/.test(flags[at - 1]?.text ?? "") : literal && /^[-+][euxo]+$/.test(text),
    )
  );
}

const conversions =
  /^(?:[^%]|%%|%[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?l{0,2}[diouxXeEfFgGaAcsbq]|%\([\w%:.,/ +-]*\)T)*$/;

/** Whether the words after `printf` only print: `-v` and `%n`, with any sign between, would set a variable. */
export function isHarmlessFormat(rest: readonly Word[]): boolean {
  const format = rest[0]?.text === "--" && rest[0].literal ? rest[1] : rest[0];
  if (format === undefined) return true;
  return (
    format.literal && (format !== rest[0] || !format.text.startsWith("-")) && conversions.test(format.text)
  );
}

const binary = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;
const unary = /^-[bcdefghkprstuwxzGLNOSn]$/;

/** Whether a test has one of the plain forms; `-v` and `-R` would evaluate their argument. */
export function isHarmlessTest(words: readonly Word[]): boolean {
  const rest = words[0]?.text === "!" && words[0].literal ? words.slice(1) : words;
  if (isOneTest(rest)) return true;
  if (!rest.every(({ literal }) => literal)) return false;
  // Several tests: each between `-a` and `-o`, all of it known.
  const tests: Word[][] = [[]];
  for (const word of rest) {
    if (/^-[ao]$/.test(word.text) && (tests.at(-1)?.length ?? 0) > 0) tests.push([]);
    else tests.at(-1)?.push(word);
  }
  return tests.every((test) => {
    const plain = test[0]?.text === "!" ? test.slice(1) : test;
    return plain.length > 0 && plain[0]?.text !== "(" && isOneTest(plain);
  });
}

function isOneTest(words: readonly Word[]): boolean {
  if (words.some(({ isOne }) => !isOne)) return false;
  const [left, operator] = words;
  if (words.length === 0) return true;
  if (words.length === 1) return true;
  if (words.length === 2) return left?.literal === true && unary.test(left.text);
  return words.length === 3 && operator?.literal === true && binary.test(operator.text);
}
