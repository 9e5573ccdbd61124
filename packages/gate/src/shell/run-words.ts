import { baseName, createUnit, toOperands, type UnitInput, writtenText } from "./create-unit.ts";
import type { Scene, State, Step, UsedPath, Walk, Word } from "./model.ts";
import { isSafeVariable, privateName } from "./private-name.ts";
import { isHarmlessFormat, isPlainPush } from "./programs/judge-builtin.ts";
import { findActions } from "./programs/judge-find.ts";
import { optionPaths } from "./programs/judgement.ts";
import { assign, enter, lost, markOpaque, parse, popped, pushed, spend, staying } from "./walk.ts";
import { optionTable, quoteName, quoteWord, type ScannedWords, scanOptions, unknownWord } from "./word.ts";
import { shells, type WrapperSpec, wrapperSpecs } from "./wrapper-specs.ts";

export interface RunContext {
  readonly scene: Scene;
  /** Text that comes in by here-documents. */
  readonly input: readonly string[];
}

const maxDepth = 40;

/** Notes what a list of words runs: itself, and what it starts. */
export function runWords(walk: Walk, words: readonly Word[], context: RunContext): Step {
  const { scene } = context;
  const name = words[0];
  if (name === undefined) return { flow: staying(scene.state), text: "" };
  // The words are joined and compared in several ways, for this command and for every wrapper around it.
  spend(walk, words.reduce((sum, { text }) => sum + text.length + 20, 20) + 10 * scene.outer.length);
  if (!name.literal || name.text === "" || scene.depth > maxDepth) {
    markOpaque(
      walk,
      name.literal ? "it is nested too deeply" : "which program runs is only known when it runs",
    );
    return { flow: staying(lost(scene.state)), text: pushUnit(walk, words, scene) };
  }
  if (name.source === "time") markOpaque(walk, "time is only understood at the start of a pipeline");
  const base = baseName(name.text);
  const dialect = shells.get(base);
  if (dialect !== undefined) return runShell(walk, words, context, dialect);
  const unwrapping = unwrap(words, base);
  if (unwrapping.type === "inner") return runInner(walk, words, unwrapping.unwrapped, context);
  if (unwrapping.type === "unclear") {
    markOpaque(walk, unwrapping.reason);
    return {
      flow: staying(scene.state),
      text: pushUnit(walk, words, scene, { exactOnly: unwrapping.reason }),
    };
  }
  return runPlain(walk, words, base, context);
}

const movers = new Set(["cd", "pushd", "popd", "source", "."]);

function runPlain(walk: Walk, words: readonly Word[], base: string, { scene, input }: RunContext): Step {
  const text = pushUnit(walk, words, scene, { input });
  const [, ...rest] = words;
  const stays = { flow: staying(scene.state), text };
  if (scene.settled === true && movers.has(base))
    markOpaque(walk, "a loop changes the directory in a way that is not followed");
  switch (base) {
    case "cd":
      return { flow: { success: movedTo(rest, scene), failure: scene.state }, text };
    case "pushd": {
      const to = isPlainPush(rest) ? pushed(scene.state, movedTo(rest, scene)) : lost(scene.state);
      return { flow: { success: to, failure: scene.state }, text };
    }
    case "popd": {
      const to = rest.length === 0 ? popped(scene.state) : lost(scene.state);
      return { flow: { success: to, failure: scene.state }, text };
    }
    case "eval":
      return runEval(walk, rest, words, scene);
    case "trap":
      readsVariables(walk, scene);
      runTrap(walk, rest, words, scene);
      return stays;
    case "find":
      for (const { words: inner, elsewhere } of findActions(words)) {
        const state = elsewhere ? lost(scene.state) : scene.state;
        runWords(walk, inner, { scene: deeper(scene, words, { state, asWritten: true }), input: [] });
      }
      return stays;
    case "source":
    case ".":
      noteSourced(walk, rest, base);
      return { flow: staying(lost(scene.state)), text };
    case "read":
      return runRead(walk, rest, scene);
    case "mapfile":
    case "readarray":
    case "getopts":
    case "declare":
    case "typeset":
    case "local":
    case "readonly":
    case "unset":
    case "let":
      markOpaque(walk, `${base} changes variables in a way that is not followed`);
      return stays;
    case "export":
      return { flow: staying(exported(walk, rest, scene)), text };
    case "printf":
      if (!isHarmlessFormat(rest)) markOpaque(walk, "printf may set a variable");
      return stays;
    default:
      return stays;
  }
}

/** Text that runs later knows variables by the names they were given, not by their private ones. */
function readsVariables(walk: Walk, { state }: Scene): void {
  if (state.variables.size > 0)
    markOpaque(walk, "the text that it runs may use variables that were set before");
}

function runEval(walk: Walk, rest: readonly Word[], words: readonly Word[], scene: Scene): Step {
  readsVariables(walk, scene);
  const inner = runText(walk, rest, words, { ...scene, outer: withText(scene, words) });
  const { flow } = inner;
  spend(walk, inner.text.length);
  if ([flow.success, flow.failure].some(({ variables }) => variables !== scene.state.variables))
    markOpaque(walk, "eval sets a variable");
  return { flow, text: `eval ${quoteWord(inner.text || ":")}` };
}

function noteSourced(walk: Walk, [file]: readonly Word[], base: string): void {
  if (/^\/(?:dev|proc)\//.test(file?.text ?? "")) markOpaque(walk, `what ${base} runs comes from its input`);
}

/** The variables that `read` sets get their private names. */
function runRead(walk: Walk, rest: readonly Word[], scene: Scene): Step {
  let state: State = scene.state;
  const texts = ["read"];
  for (const word of rest) {
    const isName = word.literal && /^[A-Za-z_]\w*$/.test(word.text);
    if (isName) state = assign(walk, word.text, { type: "unknown" }, { ...scene, state });
    else if (!word.literal || !/^-[rs]+$/.test(word.text))
      markOpaque(walk, "read sets variables in a way that is not followed");
    texts.push(isName ? privateName(word.text) : word.rendered);
  }
  return { flow: staying(state), text: texts.join(" ") };
}

function exported(walk: Walk, rest: readonly Word[], scene: Scene): State {
  let state: State = scene.state;
  for (const { text, literal } of rest) {
    const [, name, value] = /^([A-Za-z_]\w*)(?:=([\s\S]*))?$/.exec(text) ?? [];
    if (name === undefined || !literal) {
      if (!text.startsWith("-")) markOpaque(walk, "export sets a variable that is not known");
      continue;
    }
    if (!isSafeVariable(name)) markOpaque(walk, `the variable ${name} may change what later commands do`);
    else if (value !== undefined)
      state = assign(walk, name, { type: "text", text: value }, { ...scene, state });
  }
  return state;
}

function movedTo(rest: readonly Word[], scene: Scene): State {
  const scanned = scanOptions(rest, optionTable("L e n"));
  if (scanned.unclear !== undefined || scanned.operands.length > 1) return lost(scene.state);
  return enter(scene.state, scanned.operands[0]);
}

/** The text of a trap runs later, wherever the shell is then. */
function runTrap(walk: Walk, rest: readonly Word[], words: readonly Word[], scene: Scene): void {
  const [text] = rest.filter(({ text: word }, at) => at > 0 || !/^-[lp]*$|^--$/.test(word));
  if (text !== undefined && rest.length > 1)
    runText(walk, [text], words, deeper(scene, words, { state: lost(scene.state) }));
}

/** Shell text that is certain is walked as a script of its own. */
function runText(walk: Walk, parts: readonly Word[], words: readonly Word[], scene: Scene): Step {
  if (parts.some(({ literal }) => !literal)) {
    // What is known of it is walked all the same, for the rules that restrict.
    markOpaque(walk, `the text that ${words[0]?.text} runs is only known when it runs`);
  }
  if (scene.depth > maxDepth) {
    markOpaque(walk, "it is nested too deeply");
    return { flow: staying(lost(scene.state)), text: "" };
  }
  const text = parts.map((part) => part.text).join(" ");
  return walk.walkScript(walk, parse(walk, text), { ...scene, depth: scene.depth + 1 });
}

function runInner(walk: Walk, words: readonly Word[], unwrapped: Unwrapped, context: RunContext): Step {
  const { scene } = context;
  const reason = unwrapped.reason ?? slashReason(words);
  if (reason !== undefined) pushUnit(walk, words, scene, { exactOnly: reason, paths: unwrapped.paths });
  else walk.redirects.push(...toOperands(unwrapped.paths, scene.state.directories));
  const unsafe = unwrapped.variables.find((name) => !isSafeVariable(name));
  const blocked =
    scene.reason ??
    (unsafe === undefined ? undefined : `the variable ${unsafe} may change what the command does`);
  const state = unwrapped.directory === undefined ? scene.state : enter(scene.state, unwrapped.directory);
  const inside = deeper(scene, words, { state, reason: blocked });
  if (unwrapped.isText) {
    runText(walk, unwrapped.inner, words, { ...inside, dialect: "sh" });
    return { flow: staying(scene.state), text: renderWords(words) };
  }
  const inner = withFound(unwrapped, inside) ?? unwrapped.inner;
  const ran = runWords(walk, inner, { scene: inside, input: context.input });
  const text = `${renderWords(words.slice(0, unwrapped.before))} ${ran.text}`;
  const isBuiltin = /^(?:command|builtin)$/.test(words[0]?.text ?? "");
  return { flow: isBuiltin ? ran.flow : staying(scene.state), text };
}

/** The words of a command that only reads, where `xargs` gives it names that a search has found. */
function withFound({ taken, inner }: Unwrapped, { found, state }: Scene): readonly Word[] | undefined {
  const last = inner.at(-1);
  if (found === undefined || taken === undefined || last === undefined || last.source !== "")
    return undefined;
  if (taken === "whole" && !found.isExact) return undefined;
  const named = [...found.places, ...found.places.slice(-1)].map(
    ({ path, names }, at): Word => ({
      ...last,
      path,
      ...(names !== undefined && { names }),
      pathKnown: true,
      loose: false,
      isBelow: true,
      printed: taken,
      ...(at > 0 && { continued: true, repeated: true }),
    }),
  );
  const words = [...inner.slice(0, -1), ...named];
  const [directory, ...others] = state.directories;
  const isSame = others.length === 0 && found.places.every((place) => place.directory === directory);
  const isPlain = taken === "whole" || found.places.every(({ path }) => !/[\s'"\\]/.test(path));
  const { unit } = createUnit({ words, directories: state.directories, outer: [] });
  return isSame && isPlain && unit.readOnly ? words : undefined;
}

const shellOptions = optionTable(
  "c e u x f n v h B E T P i! l! s! a! k! m! r! p! t! C o: O:! norc noprofile posix! login! rcfile:! init-file:! " +
    "restricted! verbose debugger! dump-strings dump-po-strings help version noediting wordexp! rpm-requires!",
);

function runShell(
  walk: Walk,
  words: readonly Word[],
  context: RunContext,
  dialect: "bash" | "sh" | "other",
): Step {
  const { scene, input } = context;
  const scanned = scanOptions(words.slice(1), shellOptions, { stopAtOperand: true });
  const first = words[1 + scanned.taken];
  const name = words[0]?.text ?? "";
  const risk = scanned.options.find(
    ({ signs, name: option, value }) =>
      signs.includes("!") ||
      (option === "o" && !/^(?:pipefail|errexit|nounset|xtrace)$/.test(value?.text ?? "")),
  );
  const unclear = scanned.unclear !== undefined || first?.text.startsWith("+") === true;
  const hasText = scanned.options.some((option) => option.name === "c");
  const plain = hasText && risk === undefined && !unclear && dialect !== "other" && first?.literal === true;
  const stays = staying(scene.state);
  if (words.length === 2 && words[1]?.source === "--version")
    return { flow: stays, text: pushUnit(walk, words, scene) };
  if (!plain || slashReason(words) !== undefined) {
    const exactOnly = `${name} runs any program it is given`;
    const paths = first === undefined || hasText ? [] : [{ word: first, use: "read" as const }];
    const named = first?.literal === true && !hasText && risk === undefined && !unclear;
    const wildcardHead = named ? `${name} ${first.text}` : undefined;
    pushUnit(walk, words, scene, { exactOnly, paths, wildcardHead });
  }
  if (unclear) markOpaque(walk, `what ${name} runs is not clear`);
  if (dialect === "other") markOpaque(walk, `${name} does not read text as bash does`);
  // Another shell has its own variables.
  const state: State = { ...scene.state, variables: new Map() };
  const inside = deeper(scene, words, {
    dialect: dialect === "bash" ? "bash" : "sh",
    state,
    settled: false,
  });
  if (hasText && first !== undefined) {
    const inner = runText(walk, [first], words, inside);
    spend(walk, inner.text.length);
    const at = 1 + scanned.taken;
    // File patterns were expanded here; what variables hold is not to be taken for one.
    const text = [
      renderWords(words.slice(0, 1)),
      "-f",
      renderArguments(words.slice(1, at)),
      quoteWord(inner.text || ":"),
      renderArguments(words.slice(at + 1)),
    ];
    return { flow: stays, text: text.filter((part) => part !== "").join(" ") };
  }
  if (first === undefined || first.text === "-") runInput(walk, input, inside, name);
  return { flow: stays, text: renderWords(words) };
}

/** A shell without a script reads its commands from its input. */
function runInput(walk: Walk, input: readonly string[], scene: Scene, name: string): void {
  if (input.length === 0) markOpaque(walk, `what ${name} runs comes from its input`);
  for (const text of input) walk.walkScript(walk, parse(walk, text), scene);
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
  return [...outer, text, writtenText(words), [base, ...rest].join(" ")];
}

function deeper(scene: Scene, words: readonly Word[], change: Partial<Scene>): Scene {
  return { ...scene, outer: withText(scene, words), depth: scene.depth + 1, ...change };
}

/** Notes a command and returns what runs for it. */
function pushUnit(walk: Walk, words: readonly Word[], scene: Scene, extra: Partial<UnitInput> = {}): string {
  const { state, outer } = scene;
  const { unit, rendered, note } = createUnit({
    words,
    directories: state.directories,
    outer,
    reason: scene.reason,
    asWritten: scene.asWritten,
    surroundings: walk.surroundings,
    ...extra,
  });
  walk.units.push(unit);
  if (note !== undefined) walk.notes.add(note);
  return rendered === undefined ? renderWords(words) : rendered.join(" ");
}

function renderWords(words: readonly Word[]): string {
  const [name, ...rest] = words;
  if (name === undefined) return "";
  const first = name.literal ? quoteName(name.value) : name.rendered;
  return [first, renderArguments(rest)].filter((text) => text !== "").join(" ");
}

function renderArguments(words: readonly Word[]): string {
  return words
    .map(({ rendered }) => rendered)
    .filter((text) => text !== "")
    .join(" ");
}

/** What a command that starts another one starts. */
interface Unwrapped {
  /** How `xargs` takes the names that come in; its further words are then files of them. */
  readonly taken?: "whole" | "split" | undefined;
  /** The inner command, or shell text. */
  readonly inner: readonly Word[];
  /** So many words are before the inner command. */
  readonly before: number;
  readonly isText: boolean;
  /** Why the wrapper itself needs an exact rule; without it only the inner command counts. */
  readonly reason?: string;
  readonly variables: readonly string[];
  /** The directory the inner command runs in. */
  readonly directory?: Word;
  readonly paths: readonly UsedPath[];
}

type Unwrapping =
  | { readonly type: "none" }
  | { readonly type: "unclear"; readonly reason: string }
  | { readonly type: "inner"; readonly unwrapped: Unwrapped };

/** Takes a wrapper off, with the real number of values of its options. */
function unwrap(words: readonly Word[], name: string): Unwrapping {
  const spec = wrapperSpecs.get(name);
  if (spec === undefined || isLookup(words, name)) return { type: "none" };
  const skipped = spec.numeric === true && /^--?\d+$/.test(words[1]?.text ?? "") ? 2 : 1;
  const scanned = scanOptions(words.slice(skipped), tables.get(name) ?? new Map(), { stopAtOperand: true });
  const unclear = { type: "unclear", reason: `what ${name} starts is not clear` } as const;
  if (scanned.unclear !== undefined || isRepeated(scanned, spec)) return unclear;
  let at = skipped + scanned.taken;
  const before = words.slice(at, at + (spec.before ?? 0));
  if (before.some(({ loose }) => loose)) return unclear;
  at += before.length;
  if (name === "env" && words[at]?.text === "-") at += 1;
  const assigned = spec.assignments === true ? countAssignments(words.slice(at)) : 0;
  const variables = words.slice(at, at + assigned).map(({ text }) => text.slice(0, text.indexOf("=")));
  at += assigned;
  const inner = words.slice(at);
  const text = findOption(scanned, spec.textOptions)?.value;
  if (text === undefined && inner.length === 0) return { type: "none" };
  if (inner[0]?.loose === true) return unclear;
  return { type: "inner", unwrapped: describe({ name, spec, scanned, inner, at, text, before, variables }) };
}

/** Of options that name a directory or bring text, the last counts for one program and the first for another. */
function isRepeated({ options }: ScannedWords, { directory = "", textOptions = "" }: WrapperSpec): boolean {
  return [directory, textOptions].some((names) => {
    const list = names.split(" ");
    return options.filter(({ name }) => list.includes(name)).length > 1;
  });
}

interface Parts {
  readonly name: string;
  readonly spec: WrapperSpec;
  readonly scanned: ScannedWords;
  readonly inner: readonly Word[];
  readonly at: number;
  readonly text: Word | undefined;
  readonly before: readonly Word[];
  readonly variables: readonly string[];
}

function describe({ name, spec, scanned, inner, at, text, before, variables }: Parts): Unwrapped {
  const all = text === undefined ? inner : [text, ...inner];
  const directory = findOption(scanned, spec.directory)?.value;
  const risky = scanned.options.find(({ signs }) => /[!>]/.test(signs));
  const reason =
    spec.reason ?? (risky === undefined ? undefined : `the option ${risky.name} of ${name} does more`);
  const isText =
    (spec.text === true && findOption(scanned, "x exec") === undefined) ||
    text !== undefined ||
    (spec.textAfterC === true && all[0]?.text === "-c");
  const arguments_ = isText && all[0]?.text === "-c" ? all.slice(1) : all;
  // Without arguments of its own, `parallel` takes them from its input or from files.
  const isFed = name === "parallel" && !arguments_.some(({ text: word }) => word === ":::");
  return {
    inner:
      name === "xargs"
        ? withArguments(arguments_, scanned)
        : [...arguments_, ...(isFed ? [unknownWord("$FED")] : [])],
    ...(name === "xargs" && { taken: takenNames(scanned) }),
    before: at,
    isText,
    variables,
    paths: [...optionPaths(scanned.options), ...(spec.writesBefore === true ? written(before) : [])],
    reason,
    directory,
  };
}

function findOption({ options }: ScannedWords, names = ""): ScannedWords["options"][number] | undefined {
  const list = names.split(" ");
  return options.find(({ name }) => list.includes(name));
}

const tables = new Map([...wrapperSpecs].map(([name, { options }]) => [name, optionTable(options ?? "")]));

/** `command -v x` looks a name up and starts nothing. */
function isLookup(words: readonly Word[], name: string): boolean {
  return name === "command" && /^-[pvV]*[vV]/.test(words[1]?.text ?? "");
}

function countAssignments(words: readonly Word[]): number {
  const end = words.findIndex(({ text, loose }) => loose || !text.includes("="));
  return end === -1 ? words.length : end;
}

/**
 * `xargs` puts words from its input at the end, or in the place of a mark. The last of several marks counts, and an
 * option that counts words or lines takes a mark back.
 */
function withArguments(words: readonly Word[], { options }: ScannedWords): readonly Word[] {
  const marks = options.flatMap(({ name, value }) =>
    /^(?:I|i|replace)$/.test(name) ? [value?.text ?? "{}"] : [],
  );
  const counts = options.some(({ name }) => /^(?:n|max-args|L|l|max-lines)$/.test(name));
  const marked = words.map((word) => {
    const mark = marks.find((place) => word.text.includes(place));
    if (mark === undefined) return word;
    const isFirst = marks.some((place) => word.text.startsWith(place));
    return { ...word, literal: false, pathKnown: false, loose: word.loose || isFirst };
  });
  if (marks.length > 0 && !counts) return marked;
  return [...marked, { ...unknownWord(""), source: "", rendered: "" }];
}

/** Whether `xargs` takes each name for itself, splits its input at spaces and quotes, or neither is clear. */
function takenNames({ options }: ScannedWords): "whole" | "split" | undefined {
  const names = options.map(({ name }) => name);
  if (names.every((name) => splitting.has(name)))
    return names.some((name) => /^(?:0|null)$/.test(name)) ? "whole" : "split";
  return undefined;
}

const splitting = new Set("0 null n max-args P max-procs r no-run-if-empty t verbose x exit".split(" "));

function written(words: readonly Word[]): UsedPath[] {
  return words.filter(({ text }) => !/^\d+$/.test(text)).map((word) => ({ word, use: "write" }));
}
