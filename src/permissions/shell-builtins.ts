import { isSafeVariable, isSteeringVariable } from "./shell-environment.ts";
import { type Judgement, judgement, used } from "./shell-judgement.ts";
import { optionTable, scanOptions } from "./shell-options.ts";
import type { Word } from "./shell-word.ts";

const harmless = new Set(
  ": true false pwd exit return break continue shift times type echo jobs cd".split(" "),
);
const changing = new Set(
  (
    "declare typeset local readonly let unset mapfile readarray getopts eval exec hash alias unalias enable bind " +
    "complete compgen compopt fc history shopt trap umask ulimit disown bg fg suspend logout coproc"
  ).split(" "),
);

/** What a builtin of bash does; undefined for anything else. */
export function judgeBuiltin(words: readonly Word[]): Judgement | undefined {
  const name = words[0]?.text ?? "";
  if (harmless.has(name)) return judgement(true, []);
  if (changing.has(name)) return judgement(false, [], [`${name} changes the state of the shell`]);
  switch (name) {
    case "pushd":
    case "popd":
      return judgement(false, []);
    case "wait":
      return judgement(
        true,
        [],
        [words.length > 1 && !allPlain(words) ? "wait may set a variable" : undefined],
      );
    case "command":
      return judgement(/^-[pvV]*[vV]/.test(words[1]?.text ?? ""), []);
    case "export":
      return judgeExport(words);
    case "set":
      return judgement(true, [], [isHarmlessSet(words) ? undefined : "set changes the state of the shell"]);
    case "read":
      return judgeRead(words);
    case "printf":
      return judgePrintf(words);
    case "test":
      return judgeTest(words.slice(1));
    case "[":
      return judgeTest(words.slice(1, -1));
    case "source":
    case ".":
      return {
        ...judgement(false, used(words.slice(1, 2), "read"), ["it runs a file in this shell"]),
        ...(words[1]?.literal === true && { wildcardHead: `${name} ${words[1].text}` }),
      };
    default:
      return undefined;
  }
}

function allPlain(words: readonly Word[]): boolean {
  return words.slice(1).every(({ text, literal }) => literal && /^(?:%?\d+|-n)$/.test(text));
}

function judgeExport(words: readonly Word[]): Judgement {
  const names = words.slice(1).map(({ text }) => /^([A-Za-z_]\w*)(?:=|$)/.exec(text)?.[1] ?? "");
  return judgement(
    true,
    [],
    [names.every(isSafeVariable) ? undefined : "export changes what later commands do"],
  );
}

function isHarmlessSet(words: readonly Word[]): boolean {
  const flags = words.slice(1);
  return (
    flags.length > 0 &&
    flags.every(({ text, literal }, at) =>
      text === "pipefail" ? /o$/.test(flags[at - 1]?.text ?? "") : literal && /^[-+][euxofv]+$/.test(text),
    )
  );
}

const readOptions = optionTable("r s e p: t: n: N: d: u: i: a:");

function judgeRead(words: readonly Word[]): Judgement {
  const scanned = scanOptions(words.slice(1), readOptions);
  const arrays = scanned.options.flatMap(({ name, value }) => (name === "a" && value ? [value] : []));
  const names = [...scanned.operands, ...arrays];
  const plain = names.every(
    ({ text, literal }) => literal && /^[A-Za-z_]\w*$/.test(text) && !isSteeringVariable(text),
  );
  return judgement(
    true,
    [],
    [plain && !scanned.loose ? undefined : "read sets a variable that steers the shell"],
  );
}

function judgePrintf(words: readonly Word[]): Judgement {
  const format = words[1]?.text === "--" ? words[2] : words[1];
  const setting = format?.loose === true || format?.text.startsWith("-") === true;
  const counting = /%[^A-Za-z%]*n/.test(format?.text ?? "");
  return judgement(true, [], [setting || counting ? "printf may set a variable" : undefined]);
}

const binary = /^(?:==?|!=|<|>|-(?:eq|ne|lt|le|gt|ge|nt|ot|ef))$/;
const unary = /^-[a-hknoprstuwxzGLNOS]$/;

const variable = /^"?\$(?:\{([A-Za-z_]\w*)\}|([A-Za-z_]\w*))"?$/;

/** `-v` and `-R` evaluate their argument; words that are not known could become them. */
function judgeTest(words: readonly Word[]): Judgement {
  const rest = withoutNegation(words);
  const evaluating = rest.some(({ text, literal }) => literal && /^-[vR]$/.test(text));
  const known = isOneTest(rest) || rest.every(({ loose, source }) => !loose || variable.test(source));
  return judgement(true, [], [evaluating || !known ? "the test may evaluate a variable" : undefined]);
}

/** Variables that could bring such an operator into a test, if the command itself gave them a text. */
export function evaluatedByTest(words: readonly Word[]): readonly string[] {
  const rest = withoutNegation(words[0]?.text === "[" ? words.slice(1, -1) : words.slice(1));
  if (isOneTest(rest)) return [];
  return rest.flatMap(({ source }) => {
    const found = variable.exec(source);
    return found === null ? [] : [found[1] ?? found[2] ?? ""];
  });
}

function withoutNegation(words: readonly Word[]): readonly Word[] {
  return words[0]?.text === "!" && words[0].literal ? words.slice(1) : words;
}

function isOneTest(words: readonly Word[]): boolean {
  if (words.some(({ loose, source }) => loose && !source.startsWith('"'))) return false;
  const [left, operator] = words;
  if (words.length === 1) return true;
  if (words.length === 2) return left?.literal === true && unary.test(left.text);
  return words.length === 3 && operator?.literal === true && binary.test(operator.text);
}
