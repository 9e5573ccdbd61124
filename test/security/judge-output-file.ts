import { lstat, mkdir, readFile, rm, stat, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { sessionFiles } from "@retinue/core/journal/session-files.ts";
import { openAgentOutput } from "@retinue/core/tasks/open-agent-output.ts";
import { fieldsOf } from "./case-settings.ts";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import { firstText, NotHonoured, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

const sessionId = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

/** Allowed is an id whose output is given, or a file that a child's words reach. */
export async function judgeOutputFile(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, input, tool } = testCase;
  const id = firstText({ ...context, ...fieldsOf(input) }, ["task_id", "taskId", "agentId", "id", "name"]);
  if (tool !== null && id !== undefined) return judgeCall(testCase, roots, { name: tool, id });
  const target = firstText(context, ["target", "symlinkTo", "linkTo", "symlink"]);
  const path = firstText(context, ["path", "file", "outputFile"]);
  if (id === undefined && path === undefined && target === undefined)
    throw new NotHonoured("the case names no output file");
  const file = path ?? outputOf(id ?? "a1b2c3", roots);
  if (file === undefined) return "deny";
  if (target !== undefined) {
    await mkdir(dirname(file), { recursive: true });
    await rm(file, { recursive: true, force: true });
    await symlink(target, file);
  }
  return write(file);
}

async function judgeCall(
  testCase: SecurityCase,
  roots: Roots,
  { name, id }: { readonly name: string; readonly id: string },
): Promise<Verdict> {
  await writeCaseSettings(testCase, roots);
  const input = fieldsOf(testCase.input);
  const given = Object.keys(input).length === 0 ? { task_id: id, block: false } : input;
  const { calls } = await runCaseSession(testCase, roots, { calls: [{ name, input: given }] });
  return calls.some(({ isError }) => !isError) ? "allow" : "deny";
}

/** As for a child: its transcript comes first and takes no other id than one it could have made. */
function outputOf(id: string, { H }: Roots): string | undefined {
  const files = sessionFiles(join(H, ".claude/projects/app"), sessionId);
  try {
    files.agent(id);
    return files.agent(id).output;
  } catch {
    return undefined;
  }
}

async function write(file: string): Promise<Verdict> {
  const wasLink = await lstat(file).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
  const before = await contentOf(file);
  try {
    const output = openAgentOutput(file);
    const message = { role: "assistant", content: [{ type: "text", text: "What the child says." }] } as const;
    output.take({ type: "assistant-answered", message } as never);
    output.close();
  } catch {
    return "deny";
  }
  const isOpenToOthers = !wasLink && ((await stat(file)).mode & 0o077) !== 0;
  return (await contentOf(file)) === before || isOpenToOthers ? "deny" : "allow";
}

function contentOf(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch(() => undefined);
}
