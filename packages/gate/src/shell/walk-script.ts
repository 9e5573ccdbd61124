import type {
  AndOr,
  CommandNode,
  CompoundList,
  For,
  If,
  ParsedScript,
  Pipeline,
  PipelineNode,
  Statement,
  SyntaxNode,
  While,
} from "unbash";
import { expandSingle, expandWord } from "./expand-word.ts";
import type { Flow, Scene, ShellUnit, State, Step, Walk, Word } from "./model.ts";
import { privateName } from "./private-name.ts";
import { namesOf } from "./programs/judge-find.ts";
import { arithmeticText, renderArithmetic, renderPart } from "./render-arithmetic.ts";
import {
  assign,
  assignedNames,
  either,
  isNumber,
  lost,
  markOpaque,
  spend,
  staying,
  visitNested,
} from "./walk.ts";
import { walkCommand, walkRedirections } from "./walk-command.ts";
import { walkTest } from "./walk-test.ts";
import { quoteWord } from "./word.ts";

/** Walks all commands of a script in their order; where the shell is afterwards matters only for `eval`. */
export function walkScript(walk: Walk, script: ParsedScript, scene: Scene): Step {
  if (script.errors !== undefined && script.errors.length > 0)
    markOpaque(walk, "it is not valid shell syntax");
  return walkStatements(walk, script.commands, scene);
}

function walkList(walk: Walk, list: CompoundList, scene: Scene): Step {
  return walkStatements(walk, list.commands, scene);
}

function walkStatements(walk: Walk, statements: readonly Statement[], scene: Scene): Step {
  let flow = staying(scene.state);
  const texts: string[] = [];
  for (const { command, background } of statements) {
    spend(walk, 1 + scene.state.variables.size);
    const state = either(flow.success, flow.failure);
    const step = walkNode(walk, command, { ...scene, state });
    spend(walk, step.text.length);
    texts.push(background === true ? `${step.text} &` : step.text);
    flow = background === true ? staying(state) : step.flow;
  }
  return { flow, text: texts.join("\n") };
}

function walkNode(walk: Walk, node: PipelineNode | AndOr, scene: Scene): Step {
  switch (node.type) {
    case "AndOr":
      return walkAndOr(walk, node, scene);
    case "Pipeline":
      return walkPipeline(walk, node, scene);
    default:
      return walkAny(walk, node, scene);
  }
}

function walkAndOr(walk: Walk, { commands, operators }: AndOr, scene: Scene): Step {
  let flow = staying(scene.state);
  let text = "";
  commands.forEach((command, at) => {
    const operator = operators[at - 1];
    const state = operator === "||" ? flow.failure : flow.success;
    const step = walkNode(walk, command, { ...scene, state });
    spend(walk, 1 + state.variables.size);
    text += operator === undefined ? step.text : ` ${operator} ${step.text}`;
    if (operator === undefined) flow = step.flow;
    else if (operator === "&&")
      flow = { success: step.flow.success, failure: either(flow.failure, step.flow.failure) };
    else flow = { success: either(flow.success, step.flow.success), failure: step.flow.failure };
  });
  return { flow, text };
}

function walkPipeline(walk: Walk, { prefixes, commands, operators }: Pipeline, scene: Scene): Step {
  let found: Scene["found"];
  const steps = commands.map((command, at) => {
    const before = walk.units.length;
    const step = walkAny(walk, command, { ...scene, found });
    found = operators[at] === "|" ? foundNames(walk.units.slice(before)) : undefined;
    return step;
  });
  const before = prefixes.map((prefix) => {
    if (prefix.type === "Negation") return "! ";
    return prefix.posix === undefined ? "time " : "time -p ";
  });
  const text =
    before.join("") +
    steps.map((step, at) => (at === 0 ? step.text : ` ${operators[at - 1]} ${step.text}`)).join("");
  const only = steps.length === 1 ? steps[0]?.flow : undefined;
  if (only === undefined) return { flow: staying(scene.state), text };
  const negated = prefixes.filter(({ type }) => type === "Negation").length % 2 === 1;
  return { flow: negated ? { success: only.failure, failure: only.success } : only, text };
}

/** What a search prints that runs alone and prints names only. */
function foundNames(units: readonly ShellUnit[]): Scene["found"] {
  const [unit] = units;
  const program = unit?.words[0]?.text ?? "";
  if (unit === undefined || units.length !== 1 || !unit.readOnly) return undefined;
  const options = unit.words.slice(1).map(({ text }) => text);
  const isSearch =
    program === "find"
      ? !options.some((text) => /^-(?:printf|ls|exec.*|ok.*|.?newer.*|samefile|files0-from)$/.test(text))
      : /^(?:grep|rg)$/.test(program) &&
        options.some((text) => /^-[a-zA-Z]*l$|^--files(?:-with-matches)?$/.test(text));
  const places = unit.operands.filter(({ use }) => use === "read");
  if (!isSearch || places.length === 0 || places.some(({ literal }) => !literal)) return undefined;
  const names = program === "find" ? namesOf(unit.words.slice(1)) : {};
  return {
    places: places.map((place) => ({ ...place, ...names })),
    isExact: program === "find" && options.includes("-print0"),
  };
}

function walkAny(walk: Walk, node: CommandNode, scene: Scene): Step {
  spend(walk, 1);
  switch (node.type) {
    case "Command":
      return walkCommand(walk, node, scene);
    case "Redirected": {
      const { text } = walkRedirections(walk, node.redirects, scene);
      const { flow, text: command } = walkAny(walk, node.command, { ...scene, found: undefined });
      // Where a file cannot be opened, nothing runs.
      const failure = either(flow.failure, scene.state);
      return { flow: { success: flow.success, failure }, text: `${command}${text}` };
    }
    case "Subshell":
      return { flow: staying(scene.state), text: `( ${walkList(walk, node.body, scene).text}\n)` };
    case "BraceGroup": {
      const step = walkList(walk, node.body, scene);
      return { flow: step.flow, text: `{ ${step.text}\n}` };
    }
    case "If":
      return walkIf(walk, node, scene);
    case "While":
      return walkWhile(walk, node, scene);
    case "For":
      return walkFor(walk, node, scene);
    case "Case":
      return walkCase(walk, node, scene);
    case "TestCommand":
      onlyInBash(walk, scene);
      return { flow: staying(scene.state), text: walkTest(walk, node.expression, scene) };
    case "ArithmeticCommand":
      return walkArithmetic(walk, node, scene);
    case "ArithmeticFor":
      return walkCountingFor(walk, node, scene);
    default:
      return walkUnknown(walk, node, scene);
  }
}

const unknownKinds: ReadonlyMap<string, string> = new Map([
  ["Function", "it defines a function"],
  ["Coproc", "it starts a coprocess"],
  ["Select", "it asks for a choice"],
]);

/** Commands in what is not understood are still seen by deny rules. */
function walkUnknown(walk: Walk, node: CommandNode, scene: Scene): Step {
  markOpaque(walk, unknownKinds.get(node.type) ?? "it has a kind of command that is not understood");
  const inside = { ...scene, state: lost(scene.state) };
  if (node.type === "Select") for (const word of node.wordlist ?? []) expandWord(walk, word, scene);
  if (node.type === "Function" || node.type === "Coproc" || node.type === "Select") {
    if (node.body.type === "CompoundList") walkList(walk, node.body, inside);
    else walkAny(walk, node.body, inside);
  }
  return { flow: staying(inside.state), text: "" };
}

function onlyInBash(walk: Walk, { dialect }: Scene): void {
  if (dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
}

function walkArithmetic(
  walk: Walk,
  node: Extract<CommandNode, { type: "ArithmeticCommand" }>,
  scene: Scene,
): Step {
  onlyInBash(walk, scene);
  visitNested(walk, node, scene);
  const rendered = renderArithmetic(node.body, scene.state);
  if (rendered === undefined) markOpaque(walk, "an arithmetic expression evaluates text");
  return { flow: staying(withNumbers(scene.state, rendered?.assigned)), text: rendered?.text ?? "" };
}

function withNumbers(state: State, names: readonly string[] = []): State {
  if (names.length === 0) return state;
  const variables = new Map(state.variables);
  for (const name of names) variables.set(name, { type: "number" });
  return { ...state, variables };
}

function walkIf(walk: Walk, node: If, scene: Scene): Step {
  let left: State | undefined;
  let text = "";
  let test: Flow = staying(scene.state);
  const branch = (clause: CompoundList, body: CompoundList, word: string): void => {
    const tested = walkList(walk, clause, { ...scene, state: test.failure });
    test = tested.flow;
    const step = walkList(walk, body, { ...scene, state: test.success });
    const after = either(step.flow.success, step.flow.failure);
    left = left === undefined ? after : either(left, after);
    text += `${word} ${tested.text}\nthen ${step.text}\n`;
  };
  branch(node.clause, node.then, "if");
  for (const { clause, then: body } of node.elif) branch(clause, body, "elif");
  const last =
    node.else === undefined ? undefined : walkList(walk, node.else, { ...scene, state: test.failure });
  if (last !== undefined) text += `else ${last.text}\n`;
  const end = last === undefined ? test.failure : either(last.flow.success, last.flow.failure);
  return { flow: staying(either(left ?? scene.state, end)), text: `${text}fi` };
}

/** The scene at the start of any iteration: what the body sets is not known, and it may have moved. */
function loopScene(walk: Walk, scene: Scene, body: readonly SyntaxNode[]): Scene {
  const { names, moves } = assignedNames(walk, body, scene.state);
  const variables = new Map(scene.state.variables);
  for (const [name, value] of names) variables.set(name, value);
  const { directories } = scene.state;
  if (!moves) return { ...scene, state: { ...scene.state, variables }, settled: true };
  return { ...scene, state: { directories: [...new Set([...directories, "unknown"])], variables } };
}

function walkWhile(walk: Walk, { kind, clause, body }: While, scene: Scene): Step {
  const inside = loopScene(walk, scene, [clause, body]);
  const test = walkList(walk, clause, inside);
  const tested = either(test.flow.success, test.flow.failure);
  const step = walkList(walk, body, { ...inside, state: tested });
  const after = either(tested, either(step.flow.success, step.flow.failure));
  return { flow: staying(after), text: `${kind} ${test.text}\ndo ${step.text}\ndone` };
}

const maxIterations = 100;
const maxCommands = 400;

/** A loop over words that are known is the sequence of its iterations. */
function walkFor(walk: Walk, node: For, scene: Scene): Step {
  const words = (node.wordlist ?? []).flatMap((word) => expandWord(walk, word, scene));
  if (node.wordlist === undefined) markOpaque(walk, "a loop goes over arguments that are not known");
  const name = node.name.value;
  const isKnown = words.every(({ literal }) => literal) && words.length <= maxIterations;
  if (!isKnown || leavesLoop(walk, node.body) || readsStatus(walk, node.body.commands[0]))
    return walkUnknownFor(walk, node, words, scene);
  let state = scene.state;
  const texts: string[] = [];
  for (const { value } of words) {
    if (walk.size > maxCommands) {
      markOpaque(walk, "its loops run too many commands");
      break;
    }
    const set = assign(walk, name, { type: "text", text: value }, { ...scene, state });
    const step = walkList(walk, node.body, { ...scene, state: set });
    state = either(step.flow.success, step.flow.failure);
    texts.push(`${privateName(name)}=${quoteWord(value)}\n${step.text}`);
  }
  return { flow: staying(state), text: texts.length === 0 ? ":" : `{ ${texts.join("\n")}\n}` };
}

/** `for ((i=0; i<3; i++))`: its variables are numbers before it, and nothing in it makes them anything else. */
function walkCountingFor(
  walk: Walk,
  node: Extract<CommandNode, { type: "ArithmeticFor" }>,
  scene: Scene,
): Step {
  onlyInBash(walk, scene);
  for (const part of [node.initialize, node.test, node.update])
    if (part !== undefined) visitNested(walk, part, scene);
  const read = (part: typeof node.test, state: State) => {
    const text = part === undefined ? "" : arithmeticText(part);
    return text === undefined ? undefined : renderPart(text, state);
  };
  const first = read(node.initialize, scene.state);
  const state = withNumbers(scene.state, first?.assigned);
  const inside = loopScene(walk, { ...scene, state }, [node]);
  const test = read(node.test, inside.state);
  const update = read(node.update, inside.state);
  const step = walkList(walk, node.body, inside);
  if (first === undefined || test === undefined || update === undefined)
    markOpaque(walk, "a loop that counts evaluates text");
  const header = [first, test, update].map((part) => part?.expression ?? "").join("; ");
  const after = either(inside.state, either(step.flow.success, step.flow.failure));
  return { flow: staying(after), text: `for ((${header}))\ndo ${step.text}\ndone` };
}

function walkUnknownFor(walk: Walk, node: For, words: readonly Word[], scene: Scene): Step {
  const name = node.name.value;
  const value = words.every(
    ({ literal, numeric, text }) => numeric === true || (literal && isNumber({ type: "text", text })),
  );
  const before = assign(walk, name, { type: value ? "number" : "unknown" }, scene);
  const inside = loopScene(walk, { ...scene, state: before }, [node.body]);
  const step = walkList(walk, node.body, inside);
  const list = words.map(({ rendered }) => ` ${rendered}`).join("");
  // `break` leaves it in the middle of an iteration.
  const after = either(inside.state, either(step.flow.success, step.flow.failure));
  return {
    flow: staying(either(before, after)),
    text: `for ${privateName(name)} in${list}\ndo ${step.text}\ndone`,
  };
}

/** Whether `break` or `continue` is in the body, which a sequence cannot do. */
function leavesLoop(walk: Walk, node: SyntaxNode): boolean {
  spend(walk, 1);
  if (node.type === "Command") return /^(?:break|continue|return|exit)$/.test(node.name?.value ?? "");
  let found = false;
  walk.grammar.forEachChild(node, (child) => {
    found ||= leavesLoop(walk, child);
  });
  return found;
}

/** Whether `$?` is read, which the assignment before an iteration in a sequence would change. */
function readsStatus(walk: Walk, node: SyntaxNode | undefined): boolean {
  if (node === undefined) return false;
  spend(walk, 1);
  if ("text" in node && /^\$\{?[#!]?\?/.test(node.text)) return true;
  let found = false;
  walk.grammar.forEachChild(node, (child) => {
    found ||= readsStatus(walk, child);
  });
  return found;
}

function walkCase(walk: Walk, { word, items }: Extract<CommandNode, { type: "Case" }>, scene: Scene): Step {
  const subject = expandSingle(walk, word, scene);
  let left = scene.state;
  let text = `case ${subject.rendered} in\n`;
  for (const { pattern, body, terminator } of items) {
    const patterns = pattern.map((choice) =>
      casePattern(walk, choice.text, expandSingle(walk, choice, scene)),
    );
    const step = walkList(walk, body, { ...scene, state: left });
    left = either(left, either(step.flow.success, step.flow.failure));
    text += `(${patterns.join("|")}) ${step.text}\n${terminator ?? ";;"}\n`;
  }
  return { flow: staying(left), text: `${text}esac` };
}

/** A pattern that bash reads as written, or a word. */
export function casePattern(walk: Walk, source: string, word: Word): string {
  if (/^[\w./*?@%+:,-]+$/.test(source)) return source;
  if (/[*?[\]]/.test(source.replace(/\\[\s\S]|'[^']*'|"[^"]*"/g, "")))
    markOpaque(walk, "a pattern is not understood");
  return word.literal ? quoteWord(word.value) : word.rendered;
}
