/**
 * The engine compiles a function when it is first called, and the cache that Node keeps of a file holds only what was compiled together
 * with the file: what a start calls would be compiled anew at every start. A function in parentheses is compiled together with
 * its file. So the command is run once, and the functions that it called are put in parentheses.
 */
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startFakeProvider } from "@retinue/testing/fake-provider.ts";
import { type AnyNode, parse } from "acorn";

/** Changes the files of the command, in `dist/cli` of this folder. */
export async function compileEarly(root: string): Promise<void> {
  const called = await findCalled(root);
  if (called.size === 0)
    throw new Error("No function of dist/cli was called; correct scripts/compile-early.ts.");
  for (const [file, functions] of called)
    writeFileSync(
      file,
      parenthesize(readFileSync(file, "utf8"), (place) => functions.has(place)),
    );
}

/** What many folders have: reading it is part of every start in them. */
const sampleProject: Readonly<Record<string, string>> = {
  "file.txt": "Some text.\n",
  "CLAUDE.md": "# Notes\n\nRun the tests.\n",
  ".claude/settings.json": `{ "permissions": { "allow": ["Bash(npm test *)"], "deny": ["Read(./.env)"] } }\n`,
  ".claude/agents/plain.md":
    "---\nname: plain\ndescription: Reviews code. Use it often.\ntools: Read, Grep, Bash\nmodel: sonnet\n---\n\nYou review.\n",
  ".claude/agents/lists.md":
    '---\nname: lists\ndescription: "It is #1."\ntools:\n  - Read\n  - Edit\nmodel: opus\ncolor: blue\n---\n\nYou edit.\n',
  ".claude/agents/folded.md":
    '---\nname: folded\ndescription: >\n  Reads\n  and plans.\ntools: ["Read", "Grep"]\nmaxTurns: 20\n---\n\nYou plan.\n',
  ".claude/agents/colons.md":
    "---\nname: colons\ndescription: Tests. Triggers: test: now.\npermissionMode: plan\n---\n\nYou test.\n",
};

/** The functions that the first runs of the command call, by their file: `start-end`. */
async function findCalled(root: string): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const home = mkdtempSync(join(tmpdir(), "retinue-build-"));
  const folder = join(home, "calls");
  const project = join(home, "project");
  const file = join(project, "file.txt");
  for (const [name, text] of Object.entries(sampleProject)) {
    mkdirSync(dirname(join(project, name)), { recursive: true });
    writeFileSync(join(project, name), text);
  }
  const work = { description: "Read", prompt: "Read the file.", subagent_type: "general-purpose" };
  const script = [
    { calls: [{ name: "Agent", input: work }] },
    { calls: [{ name: "Read", input: { file_path: file } }] },
    { text: "It was read." },
    { text: "It was read." },
  ];
  try {
    await using provider = await startFakeProvider({ script });
    const run = (...words: readonly string[]): Promise<void> =>
      new Promise((resolve, reject) => {
        const environment = {
          PATH: process.env["PATH"],
          HOME: home,
          USERPROFILE: home,
          NODE_V8_COVERAGE: folder,
          ANTHROPIC_BASE_URL: provider.url,
          ANTHROPIC_API_KEY: "none",
        };
        const command = [join(root, "bin/retinue.js"), ...words];
        const child = spawn(process.execPath, command, { cwd: project, env: environment, stdio: "ignore" });
        child.once("error", reject);
        child.once("close", (code) =>
          code === 0 ? resolve() : reject(new Error(`retinue ${words.join(" ")} ended with ${code}`)),
        );
      });
    await run("-p", "Hand it on.", "--model", "claude-sonnet-4-5", "--dangerously-skip-permissions");
    await run("agents");
    provider.finish();
    return readCalls(folder, join(root, "dist/cli"));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

interface Coverage {
  readonly result: readonly {
    readonly url: string;
    readonly functions: readonly {
      readonly ranges: readonly {
        readonly startOffset: number;
        readonly endOffset: number;
        readonly count: number;
      }[];
    }[];
  }[];
}

function readCalls(folder: string, own: string): ReadonlyMap<string, ReadonlySet<string>> {
  const called = new Map<string, Set<string>>();
  for (const name of readdirSync(folder)) {
    // Written by Node in this shape.
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as Coverage;
    for (const { url, functions } of result) {
      const file = url.startsWith("file:") ? fileURLToPath(url) : "";
      if (!file.startsWith(own)) continue;
      const places = called.get(file) ?? new Set();
      called.set(file, places);
      for (const { ranges } of functions)
        if (ranges[0] !== undefined && ranges[0].count > 0)
          places.add(`${ranges[0].startOffset}-${ranges[0].endOffset}`);
    }
  }
  return called;
}

/** A function, or the whole text, with the called ones in it. */
interface Piece {
  /** A declaration becomes a variable at the beginning of what it is declared in; an expression stays where it is. */
  readonly way: "move" | "wrap" | "keep";
  readonly name: string;
  readonly start: number;
  readonly end: number;
  /** Where the variables for the declarations in it go. */
  readonly body: number;
  readonly inside: Piece[];
}

/** Puts the called functions of a module into parentheses. What it does stays the same: declarations are there from the beginning. */
export function parenthesize(text: string, isCalled: (place: string) => boolean): string {
  const tree = parse(text, { ecmaVersion: "latest", sourceType: "module" });
  const whole: Piece = { way: "keep", name: "", start: 0, end: text.length, body: 0, inside: [] };
  gather(tree, { parent: undefined, owner: whole, body: tree, isCalled });
  return render(whole, text);
}

interface Around {
  readonly parent: AnyNode | undefined;
  readonly owner: Piece;
  /** The block whose declarations are the owner's. */
  readonly body: AnyNode;
  readonly isCalled: (place: string) => boolean;
}

function gather(node: AnyNode, { parent, owner, body, isCalled }: Around): void {
  const isFunction =
    node.type === "FunctionDeclaration" ||
    node.type === "FunctionExpression" ||
    node.type === "ArrowFunctionExpression";
  if (!isFunction) {
    for (const child of childrenOf(node)) gather(child, { parent: node, owner, body, isCalled });
    return;
  }
  const isMethod =
    parent?.type === "MethodDefinition" ||
    (parent?.type === "Property" && (parent.method || parent.kind !== "init"));
  const isFound = !isMethod && isCalled(`${node.start}-${node.end}`);
  const isDeclaration = node.type === "FunctionDeclaration";
  // Parentheses change nothing for an asynchronous arrow function, and what is declared in another block stays in it.
  const way = () => {
    if (!isFound) return "keep";
    if (isDeclaration) return parent === body ? "move" : "keep";
    return node.type === "ArrowFunctionExpression" && node.async ? "keep" : "wrap";
  };
  const piece: Piece = {
    way: way(),
    name: isDeclaration ? (node.id?.name ?? "") : "",
    start: node.start,
    end: node.end,
    body: node.body.start + 1,
    inside: [],
  };
  owner.inside.push(piece);
  for (const child of childrenOf(node))
    gather(child, { parent: node, owner: piece, body: node.body, isCalled });
}

function childrenOf(node: AnyNode): readonly AnyNode[] {
  return Object.values(node).flat().filter(isNode);
}

function isNode(value: unknown): value is AnyNode {
  return typeof value === "object" && value !== null && "type" in value && typeof value.type === "string";
}

function render(piece: Piece, text: string): string {
  const inside = piece.inside.toSorted((left, right) => left.start - right.start);
  const moved = inside.filter(({ way }) => way === "move");
  const variables = moved
    .map((each) => {
      // The variable gives the function its name.
      const named = /^(async\s+)?function\s*(\*?)\s*[\p{ID_Continue}$]+/u;
      const unnamed = render(each, text).replace(named, "$1function$2");
      return `var ${each.name}=(${unnamed});`;
    })
    .join("");
  let at = piece.start;
  let written = "";
  const upTo = (end: number): void => {
    if (variables !== "" && at <= piece.body && piece.body <= end) {
      written += text.slice(at, piece.body) + variables;
      at = piece.body;
    }
    written += text.slice(at, end);
    at = end;
  };
  for (const each of inside) {
    upTo(each.start);
    if (each.way === "move") written += ";";
    else written += each.way === "wrap" ? `(${render(each, text)})` : render(each, text);
    at = each.end;
  }
  upTo(piece.end);
  return written;
}
