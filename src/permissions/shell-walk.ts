import type {
  AndOr,
  CommandNode,
  CompoundList,
  For,
  If,
  ParsedScript,
  Pipeline,
  PipelineNode,
  Select,
  Statement,
  While,
} from "unbash";
import { noteAssigned } from "./shell-assignments.ts";
import { type Directories, either, type Flow, staying } from "./shell-directory.ts";
import { visitArithmetic, visitWord } from "./shell-expansions.ts";
import { walkRedirections } from "./shell-redirections.ts";
import { walkSimple } from "./shell-simple.ts";
import { visitTest } from "./shell-tests.ts";
import { markOpaque, type Scene, type Walk } from "./shell-walk-state.ts";

/** Walks all commands of a script in their order; where the shell is afterwards matters only for `eval`. */
export function walkScript(walk: Walk, script: ParsedScript, scene: Scene): Flow {
  if (script.errors !== undefined && script.errors.length > 0)
    markOpaque(walk, "it is not valid shell syntax");
  return walkStatements(walk, script.commands, scene);
}

function walkList(walk: Walk, list: CompoundList, scene: Scene): Flow {
  return walkStatements(walk, list.commands, scene);
}

function walkStatements(walk: Walk, statements: readonly Statement[], scene: Scene): Flow {
  let flow = staying(scene.directories);
  for (const { command, background } of statements) {
    const directories = either(flow.success, flow.failure);
    const after = walkNode(walk, command, { ...scene, directories });
    flow = background === true ? staying(directories) : after;
  }
  return flow;
}

function walkNode(walk: Walk, node: PipelineNode | AndOr, scene: Scene): Flow {
  switch (node.type) {
    case "AndOr":
      return walkAndOr(walk, node, scene);
    case "Pipeline":
      return walkPipeline(walk, node, scene);
    default:
      return walkCommand(walk, node, scene);
  }
}

function walkAndOr(walk: Walk, { commands, operators }: AndOr, scene: Scene): Flow {
  let flow = staying(scene.directories);
  commands.forEach((command, at) => {
    const operator = operators[at - 1];
    if (operator === undefined) flow = walkNode(walk, command, scene);
    else if (operator === "&&") {
      const after = walkNode(walk, command, { ...scene, directories: flow.success });
      flow = { success: after.success, failure: either(flow.failure, after.failure) };
    } else {
      const after = walkNode(walk, command, { ...scene, directories: flow.failure });
      flow = { success: either(flow.success, after.success), failure: after.failure };
    }
  });
  return flow;
}

function walkPipeline(walk: Walk, { prefixes, commands }: Pipeline, scene: Scene): Flow {
  const flows = commands.map((command) => walkCommand(walk, command, scene));
  const only = flows.length === 1 ? flows[0] : undefined;
  if (only === undefined) return staying(scene.directories);
  const negated = prefixes.filter(({ type }) => type === "Negation").length % 2 === 1;
  return negated ? { success: only.failure, failure: only.success } : only;
}

function walkCommand(walk: Walk, node: CommandNode, scene: Scene): Flow {
  switch (node.type) {
    case "Command":
      return walkSimple(walk, node, scene);
    case "Redirected":
      walkRedirections(walk, node.redirects, scene);
      return walkCommand(walk, node.command, scene);
    case "Subshell":
      walkList(walk, node.body, scene);
      return staying(scene.directories);
    case "BraceGroup":
      return walkList(walk, node.body, scene);
    case "If":
      return walkIf(walk, node, scene);
    case "While":
      return walkWhile(walk, node, scene);
    case "For":
    case "Select":
      return walkFor(walk, node, scene);
    case "ArithmeticFor":
      return walkArithmeticFor(walk, node, scene);
    case "Case":
      return walkCase(walk, node, scene);
    case "TestCommand":
      onlyInBash(walk, scene);
      visitTest(walk, node.expression, scene);
      return staying(scene.directories);
    case "ArithmeticCommand":
      onlyInBash(walk, scene);
      if (node.expression !== undefined) visitArithmetic(walk, node.expression, scene);
      else markOpaque(walk, "an arithmetic expression cannot be read");
      return staying(scene.directories);
    case "Function":
      markOpaque(walk, "it defines a function");
      walkBody(walk, node.body, { ...scene, directories: ["unknown"] });
      return staying(scene.directories);
    case "Coproc":
      onlyInBash(walk, scene);
      walkBody(walk, node.body, scene);
      return staying(scene.directories);
    default:
      markOpaque(walk, "it has a kind of command that is not understood");
      return staying(["unknown"]);
  }
}

function walkBody(walk: Walk, body: CommandNode | CompoundList, scene: Scene): void {
  if (body.type === "CompoundList") walkList(walk, body, scene);
  else walkCommand(walk, body, scene);
}

function onlyInBash(walk: Walk, { dialect }: Scene): void {
  if (dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
}

function walkIf(walk: Walk, node: If, scene: Scene): Flow {
  let left: Directories | undefined;
  let test = walkList(walk, node.clause, scene);
  const branch = (list: CompoundList): void => {
    const { success, failure } = walkList(walk, list, { ...scene, directories: test.success });
    const after = either(success, failure);
    left = left === undefined ? after : either(left, after);
  };
  branch(node.then);
  for (const { clause, then: body } of node.elif) {
    test = walkList(walk, clause, { ...scene, directories: test.failure });
    branch(body);
  }
  const last =
    node.else === undefined
      ? staying(test.failure)
      : walkList(walk, node.else, { ...scene, directories: test.failure });
  return staying(either(left ?? scene.directories, either(last.success, last.failure)));
}

/** A body that ends elsewhere begins elsewhere the next time. */
function walkLoop(walk: Walk, scene: Scene, body: (scene: Scene) => Flow): Flow {
  const directories = walk.loopsMove ? either(scene.directories, ["unknown"]) : scene.directories;
  const flow = body({ ...scene, directories });
  const after = either(flow.success, flow.failure);
  if (after.some((directory) => !directories.includes(directory))) walk.moved = true;
  return staying(either(scene.directories, after));
}

function walkWhile(walk: Walk, { clause, body }: While, scene: Scene): Flow {
  return walkLoop(walk, scene, (inside) => {
    const test = walkList(walk, clause, inside);
    const after = walkList(walk, body, { ...inside, directories: either(test.success, test.failure) });
    return { success: either(test.success, after.success), failure: either(test.failure, after.failure) };
  });
}

function walkFor(walk: Walk, { name, wordlist, body }: For | Select, scene: Scene): Flow {
  for (const word of wordlist ?? []) visitWord(walk, word, scene);
  noteAssigned(
    walk,
    name.value,
    (wordlist ?? []).every(({ text }) => /^-?\d+$/.test(text)),
  );
  return walkLoop(walk, scene, (inside) => walkList(walk, body, inside));
}

function walkArithmeticFor(
  walk: Walk,
  node: Extract<CommandNode, { type: "ArithmeticFor" }>,
  scene: Scene,
): Flow {
  onlyInBash(walk, scene);
  for (const expression of [node.initialize, node.test, node.update])
    if (expression !== undefined) visitArithmetic(walk, expression, scene);
  return walkLoop(walk, scene, (inside) => walkList(walk, node.body, inside));
}

function walkCase(walk: Walk, { word, items }: Extract<CommandNode, { type: "Case" }>, scene: Scene): Flow {
  visitWord(walk, word, scene);
  let left = scene.directories;
  for (const { pattern, body } of items) {
    for (const choice of pattern) visitWord(walk, choice, scene);
    const { success, failure } = walkList(walk, body, { ...scene, directories: left });
    left = either(left, either(success, failure));
  }
  return staying(left);
}
