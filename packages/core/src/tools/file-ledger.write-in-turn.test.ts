import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { takeOwnerLock } from "@retinue/base/storage/owner-lock.ts";
import { createWorkspace, type Workspace } from "@retinue/testing/sample-runtime.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { editTool, writeTool } from "./builtin/edit-tool.ts";
import { readTool } from "./builtin/read-tool.ts";
import { createSessionFiles, createWriteInTurn, locksFolder } from "./file-ledger.ts";
import type { ToolContext } from "./tool.ts";

let space: Workspace;
let root: string;
let file: string;
beforeEach(async () => {
  space = await createWorkspace();
  root = space.path(".claude/agent-memory");
  file = join(root, "rev", "MEMORY.md");
});
afterEach(() => space[Symbol.asyncDispose]());

const [read, edit, write] = [readTool, editTool, writeTool];
const signal = new AbortController().signal;
const agent = (name: string, changes: Partial<ToolContext> = {}) =>
  space.context(name, { writeInTurn: createWriteInTurn({ roots: [root] }), ...changes });
const lines = async () => (await readFile(file, "utf8")).trim().split("\n").slice(1).sort();

/** What an agent does that finds its change refused: reads again and makes it on what is there now. */
async function append(line: string, context: ToolContext): Promise<number> {
  for (let refusals = 0; ; refusals += 1) {
    await space.call(read, { file_path: file }, context);
    const change = { file_path: file, old_string: "# Index", new_string: `# Index\n- ${line}` };
    const { isError, text: said } = await space.call(edit, change, context);
    if (!isError) return refusals;
    if (!/since|at the same moment/.test(said)) throw new Error(said);
  }
}

describe("[MEM-1] several agents that write the same memory lose nothing", () => {
  test("in one process, in one session and in several", async () => {
    await space.write(".claude/agent-memory/rev/MEMORY.md", "# Index\n");
    const shared = Array.from({ length: 4 }, (_, at) => agent(`shared-${at}`));
    const apart = Array.from({ length: 4 }, (_, at) =>
      agent(`apart-${at}`, { files: createSessionFiles().forAgent() }),
    );
    await Promise.all(
      [...shared, ...apart].map(async (context) => {
        for (let at = 0; at < 3; at += 1) await append(`${context.agent.name} ${at}`, context);
      }),
    );
    const expected = [...shared, ...apart].flatMap(({ agent: { name } }) =>
      [0, 1, 2].map((at) => `- ${name} ${at}`),
    );
    expect(await lines()).toEqual(expected.sort());
  });

  test("in many processes", { timeout: 60_000 }, async () => {
    await space.write(".claude/agent-memory/rev/MEMORY.md", "# Index\n");
    const [processes, each] = [3, 8];
    const children = Array.from({ length: processes }, (_, at) =>
      spawn(process.execPath, ["--input-type=module", "-e", appending(`p${at}`, each)], {
        stdio: ["pipe", "pipe", "pipe"],
      }),
    );
    try {
      await Promise.all(children.map(({ stdout }) => once(stdout, "data")));
      const ends = children.map(async (child) => {
        const errors = text(child.stderr);
        const [code] = await once(child, "exit");
        return { code, errors: await errors };
      });
      for (const { stdin } of children) stdin.end();
      for (const end of await Promise.all(ends)) expect(end).toEqual({ code: 0, errors: "" });
    } finally {
      for (const child of children) child.kill("SIGKILL");
    }
    const expected = children.flatMap((_, at) => Array.from({ length: each }, (__, n) => `- p${at} ${n}`));
    expect(await lines()).toEqual(expected.sort());
    expect(await readdir(join(root, "rev"))).toEqual(["MEMORY.md"]);
    expect(await readdir(join(root, locksFolder))).toEqual([".gitignore"]);
  });

  test("a file that another has made meanwhile is not replaced in silence", async () => {
    await space.call(write, { file_path: file, content: "# mine\n" }, agent("one"));
    const other = agent("other", { files: createSessionFiles().forAgent() });
    const answer = await space.call(write, { file_path: file, content: "# other\n" }, other);
    expect(answer).toMatchObject({ isError: true, text: expect.stringContaining("was not read yet") });
    expect(await readFile(file, "utf8")).toBe("# mine\n");
  });

  test("a change on an old base is refused and says why", async () => {
    await space.call(write, { file_path: file, content: "# a\n" }, agent("one"));
    await space.call(read, { file_path: file }, agent("two"));
    await space.call(write, { file_path: file, content: "# b\n" }, agent("one"));
    const answer = await space.call(write, { file_path: file, content: "# c\n" }, agent("two"));
    expect(answer.text).toContain("was changed by the agent one (one) since you read it");
  });
});

describe("the lock of a file in memory", () => {
  const run = (path: string, options = {}) =>
    createWriteInTurn({ roots: [root], ...options })(path, signal, async () => "done");
  /** Takes the lock that a change of the file takes, by looking which one that is. */
  async function holdLock() {
    let name = "";
    await createWriteInTurn({ roots: [root] })(file, signal, async () => {
      const found = await readdir(join(root, locksFolder));
      name = found.find((each) => each.endsWith(".lock")) ?? "";
    });
    const answer = takeOwnerLock(join(root, locksFolder, name.slice(0, -".lock".length)));
    if (answer.type !== "taken") throw new Error("the lock was left behind");
    return answer.lock;
  }

  test("is waited for no longer than requested, and then names who holds it", async () => {
    const lock = await holdLock();
    await expect(run(file, { timeoutMs: 0 })).rejects.toThrow(`the process ${process.pid}`);
    lock.release();
    expect(await run(file)).toBe("done");
  });

  test("is not waited for once the run is stopped", async () => {
    const lock = await holdLock();
    const stop = new AbortController();
    const waiting = createWriteInTurn({ roots: [root] })(file, stop.signal, async () => "done");
    stop.abort();
    await expect(waiting).rejects.toThrow();
    lock.release();
  });

  test("is one for each file, and none for files outside", async () => {
    const lock = await holdLock();
    expect(await run(join(root, "rev", "other.md"), { timeoutMs: 0 })).toBe("done");
    expect(await run(space.path("a.ts"), { timeoutMs: 0 })).toBe("done");
    lock.release();
  });

  test("is given back when the change fails", async () => {
    const turns = createWriteInTurn({ roots: [root], timeoutMs: 0 });
    const failing = turns(file, signal, () => Promise.reject(new Error("broken")));
    await expect(failing).rejects.toThrow("broken");
    expect(await run(file, { timeoutMs: 0 })).toBe("done");
  });

  test("lies in no place that a link chose", async () => {
    await mkdir(root, { recursive: true });
    await mkdir(space.path("elsewhere"));
    await symlink(space.path("elsewhere"), join(root, locksFolder));
    await expect(run(file)).rejects.toMatchObject({ code: "locks-elsewhere" });
    expect(await readdir(space.path("elsewhere"))).toEqual([]);
  });

  test("of a process that is gone is taken over", async () => {
    const lock = await holdLock();
    lock.release();
    await createWriteInTurn({ roots: [root] })(file, signal, async () => {
      const [name = ""] = (await readdir(join(root, locksFolder))).filter((each) => each.endsWith(".lock"));
      const held = JSON.parse(await readFile(join(root, locksFolder, name), "utf8"));
      await writeFile(join(root, locksFolder, name), JSON.stringify({ ...held, pid: 2 ** 30 }));
    });
    expect(await run(file, { timeoutMs: 0 })).toBe("done");
  });
});

/** A program that waits until its input ends, then appends its lines as an agent of a session of its own. */
function appending(name: string, count: number): string {
  const own = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  return `
    const { readTool } = await import(${own("./builtin/read-tool.ts")});
    const { editTool } = await import(${own("./builtin/edit-tool.ts")});
    const { createSessionFiles } = await import(${own("./file-ledger.ts")});
    const { createWriteInTurn } = await import(${own("./file-ledger.ts")});
    const file_path = ${JSON.stringify(file)};
    const context = {
      signal: new AbortController().signal, directory: "/", workingDirectories: [], callId: "c",
      agent: { id: "${name}", name: "${name}" }, files: createSessionFiles().forAgent(), host: {}, environment: {},
      outputDirectory: "/", progress() {}, writeInTurn: createWriteInTurn({ roots: [${JSON.stringify(root)}] }),
    };
    const [read, edit] = [readTool, editTool];
    console.log("ready");
    for await (const _ of process.stdin);
    for (let at = 0; at < ${count}; at += 1) {
      for (;;) {
        await read.call({ file_path }, context);
        const change = { file_path, old_string: "# Index", new_string: "# Index\\n- ${name} " + at };
        const { isError, content } = await edit.call(change, context);
        if (isError !== true) break;
        if (!/since|at the same moment/.test(content)) throw new Error(content);
      }
    }
  `;
}
