import { defineTool } from "@retinue/core/tools/tool.ts";
import * as z from "zod";
import { operate } from "./fixture.ts";
import { runCaseSession, writeCaseSettings } from "./run-case-session.ts";
import {
  type Fields,
  type FileOperation,
  isFields,
  NotHonoured,
  type Roots,
  type SecurityCase,
  type Verdict,
} from "./security-case.ts";

/** Allowed is a call that does its work although its file became another after it was decided about. */
export async function judgeSwap(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, tool, input } = testCase;
  const operations = operationsOf(context);
  if (tool === null || operations.length === 0)
    throw new NotHonoured("the case does not say what is swapped after the decision");
  // All calls of an answer are decided before the first one runs.
  const swap = defineTool({
    name: "Swap",
    description: "Puts other files in the place of some.",
    effect: "execute",
    input: z.object({}),
    async call() {
      for (const operation of operations) await operate(operation, roots);
      return { content: "Done." };
    },
  });
  await writeCaseSettings(testCase, roots);
  const { calls } = await runCaseSession(testCase, roots, {
    calls: [
      { name: "Swap", input: {} },
      { name: tool, input },
    ],
    tools: ["default", swap],
    session: { allowedTools: ["Swap"] },
  });
  const [, acted] = calls;
  return acted === undefined || acted.isError ? "deny" : "allow";
}

/** Operations as in `fs`, wherever the case has them; a path with a target is a link. */
function operationsOf(context: Fields): readonly FileOperation[] {
  const listed = Object.values(context).flat().filter(isFields).filter(isOperation);
  if (listed.length > 0) return listed;
  const path = context["path"] ?? context["swapPath"];
  const target = context["target"] ?? context["swapTo"] ?? context["becomes"] ?? context["nowSymlinkTo"];
  return typeof path === "string" && typeof target === "string" ? [{ op: "symlink", path, target }] : [];
}

function isOperation(value: Fields): value is Fields & FileOperation {
  return typeof value["op"] === "string" && typeof value["path"] === "string";
}
