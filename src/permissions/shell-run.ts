import { noteAssigned, steeringReason } from "./shell-assignments.ts";
import { evaluatedByTest } from "./shell-builtins.ts";
import { enter, type Flow, staying } from "./shell-directory.ts";
import { isSafeVariable } from "./shell-environment.ts";
import { findActions } from "./shell-find.ts";
import { optionTable, scanOptions } from "./shell-options.ts";
import { baseName, createUnit, toOperands, type UnitInput } from "./shell-unit.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";
import type { Word } from "./shell-word.ts";
import { shells } from "./shell-wrapper-specs.ts";
import { type Unwrapped, unwrap } from "./shell-wrappers.ts";

export interface RunContext {
  readonly scene: Scene;
  /** Text that comes in by here-documents. */
  readonly input: readonly string[];
}

/** Notes what a list of words runs: itself, and what it starts. */
export function runWords(walk: Walk, words: readonly Word[], context: RunContext): Flow {
  const { scene } = context;
  const name = words[0];
  if (name === undefined) return staying(scene.directories);
  if (!name.literal || name.text === "" || scene.depth > 40) {
    markOpaque(
      walk,
      name.literal ? "it is nested too deeply" : "which program runs is only known when it runs",
    );
    pushUnit(walk, words, scene);
    return staying(["unknown"]);
  }
  const base = baseName(name.text);
  const dialect = shells.get(base);
  if (dialect !== undefined) return runShell(walk, words, context, dialect);
  const unwrapping = unwrap(words, base);
  if (unwrapping.type === "inner") return runInner(walk, words, unwrapping.unwrapped, context);
  if (unwrapping.type === "unclear") {
    markOpaque(walk, unwrapping.reason);
    pushUnit(walk, words, scene, { exactOnly: unwrapping.reason });
    return staying(scene.directories);
  }
  return runPlain(walk, words, base, scene);
}

function runPlain(walk: Walk, words: readonly Word[], base: string, scene: Scene): Flow {
  pushUnit(walk, words, scene);
  const [, ...rest] = words;
  switch (base) {
    case "cd":
    case "pushd":
      return { success: movedTo(rest, scene), failure: scene.directories };
    case "popd":
      return { success: ["unknown"], failure: scene.directories };
    case "eval":
      return runText(walk, rest, words, { ...scene, outer: withText(scene, words) });
    case "trap":
      return runTrap(walk, rest, words, scene);
    case "find":
      for (const { words: inner, elsewhere } of findActions(words)) {
        const directories = elsewhere ? ["unknown"] : scene.directories;
        runWords(walk, inner, { scene: deeper(scene, words, { directories }), input: [] });
      }
      return staying(scene.directories);
    case "source":
    case ".":
      return staying(["unknown"]);
    case "test":
    case "[":
      for (const variable of evaluatedByTest(words)) walk.evaluated.add(variable);
      return staying(scene.directories);
    case "read":
    case "mapfile":
    case "readarray":
    case "getopts":
    case "printf":
      for (const { text } of rest) if (/^[A-Za-z_]\w*$/.test(text)) noteAssigned(walk, text, false);
      return staying(scene.directories);
    default:
      return staying(scene.directories);
  }
}

function movedTo(rest: readonly Word[], scene: Scene): readonly string[] {
  const scanned = scanOptions(rest, optionTable("L e n"));
  if (scanned.strange !== undefined || scanned.operands.length > 1) return ["unknown"];
  return enter(scene.directories, scanned.operands[0]);
}

/** The text of a trap runs later, wherever the shell is then. */
function runTrap(walk: Walk, rest: readonly Word[], words: readonly Word[], scene: Scene): Flow {
  const [text] = rest.filter(({ text: word }, at) => at > 0 || !/^-[lp]*$|^--$/.test(word));
  if (text !== undefined && rest.length > 1)
    runText(walk, [text], words, deeper(scene, words, { directories: ["unknown"] }));
  return staying(scene.directories);
}

/** Shell text that is certain is walked as a script of its own. */
function runText(walk: Walk, parts: readonly Word[], words: readonly Word[], scene: Scene): Flow {
  if (parts.some(({ literal }) => !literal)) {
    // What is known of it is walked all the same, for the rules that restrict.
    markOpaque(walk, `the text that ${words[0]?.text} runs is only known when it runs`);
  }
  if (scene.depth > 40) {
    markOpaque(walk, "it is nested too deeply");
    return staying(["unknown"]);
  }
  const text = parts.map((part) => part.text).join(" ");
  return walk.walkScript(walk, walk.grammar.parse(text), { ...scene, depth: scene.depth + 1 });
}

function runInner(walk: Walk, words: readonly Word[], unwrapped: Unwrapped, context: RunContext): Flow {
  const { scene } = context;
  const reason = unwrapped.reason ?? slashReason(words);
  if (reason !== undefined) pushUnit(walk, words, scene, { exactOnly: reason, paths: unwrapped.paths });
  else walk.redirects.push(...toOperands(unwrapped.paths, scene.directories));
  const unsafe = unwrapped.variables.find((name) => !isSafeVariable(name));
  const because =
    scene.because ??
    (unsafe === undefined ? undefined : `the variable ${unsafe} may change what the command does`);
  const directories =
    unwrapped.directory === undefined ? scene.directories : enter(scene.directories, unwrapped.directory);
  const inside = deeper(scene, words, { directories, because });
  if (unwrapped.isText) runText(walk, unwrapped.inner, words, { ...inside, dialect: "sh" });
  else {
    const flow = runWords(walk, unwrapped.inner, { scene: inside, input: context.input });
    if (/^(?:command|builtin)$/.test(words[0]?.text ?? "")) return flow;
  }
  return staying(scene.directories);
}

const shellOptions = optionTable(
  "c e u x f n v h B E T P i! l! s! a! k! m! r! p! t! C o: O:! norc noprofile posix login! rcfile:! init-file:! " +
    "restricted! verbose debugger! dump-strings dump-po-strings help version noediting wordexp! rpm-requires!",
);

function runShell(
  walk: Walk,
  words: readonly Word[],
  context: RunContext,
  dialect: "bash" | "sh" | "other",
): Flow {
  const { scene, input } = context;
  const scanned = scanOptions(words.slice(1), shellOptions, true);
  const [first] = words.slice(1 + scanned.taken);
  const name = words[0]?.text ?? "";
  const risk = scanned.options.find(
    ({ signs, name: option, value }) =>
      signs.includes("!") ||
      (option === "o" && !/^(?:pipefail|errexit|nounset|xtrace)$/.test(value?.text ?? "")),
  );
  const unclear = scanned.strange !== undefined || scanned.loose || first?.text.startsWith("+") === true;
  const hasText = scanned.options.some((option) => option.name === "c");
  const plain = hasText && risk === undefined && !unclear && dialect !== "other" && first?.literal === true;
  if (words.length === 2 && words[1]?.source === "--version") {
    pushUnit(walk, words, scene);
    return staying(scene.directories);
  }
  if (!plain || slashReason(words) !== undefined) {
    const exactOnly = `${name} runs any program it is given`;
    const paths = first === undefined || hasText ? [] : [{ word: first, use: "read" as const }];
    const named = first?.literal === true && !hasText && risk === undefined && !unclear;
    const wildcardHead = named ? `${name} ${first.text}` : undefined;
    pushUnit(walk, words, scene, { exactOnly, paths, wildcardHead });
  }
  if (unclear) markOpaque(walk, `what ${name} runs is not clear`);
  if (dialect === "other") markOpaque(walk, `${name} does not read text as bash does`);
  const inside = deeper(scene, words, { dialect: dialect === "bash" ? "bash" : "sh" });
  if (hasText && first !== undefined) runText(walk, [first], words, inside);
  else if (first === undefined || first.text === "-") runInput(walk, input, inside, name);
  return staying(scene.directories);
}

/** A shell without a script reads its commands from its input. */
function runInput(walk: Walk, input: readonly string[], scene: Scene, name: string): void {
  if (input.length === 0) markOpaque(walk, `what ${name} runs comes from its input`);
  for (const text of input) walk.walkScript(walk, walk.grammar.parse(text), scene);
}

/** A wrapper that is named by a path may be another program. */
function slashReason(words: readonly Word[]): string | undefined {
  const name = words[0]?.text ?? "";
  return name.includes("/") ? `${name} starts the program it is given` : undefined;
}

function withText({ outer }: Scene, words: readonly Word[]): readonly string[] {
  const base = baseName(words[0]?.text ?? "");
  const text = words.map((word) => word.text).join(" ");
  const rest = words.slice(1).map((word) => word.text);
  return [...outer, text, words.map(({ source }) => source).join(" "), [base, ...rest].join(" ")];
}

function deeper(scene: Scene, words: readonly Word[], change: Partial<Scene>): Scene {
  return { ...scene, outer: withText(scene, words), depth: scene.depth + 1, ...change };
}

function pushUnit(walk: Walk, words: readonly Word[], scene: Scene, extra: Partial<UnitInput> = {}): void {
  const setting = /^(?:export|declare|typeset|readonly|local|read|unset|getopts)$/.test(words[0]?.text ?? "")
    ? steeringReason(words.slice(1).map(({ text }) => /^[A-Za-z_]\w*/.exec(text)?.[0] ?? ""))
    : undefined;
  const { directories, outer } = scene;
  walk.units.push(createUnit({ words, directories, outer, because: scene.because ?? setting, ...extra }));
}
