import { texts } from "./case-policy.ts";
import { judgeCall } from "./judge-call.ts";
import { judgeHttp } from "./judge-http.ts";
import { loadingJudges } from "./judge-loading.ts";
import { skillJudges } from "./judge-skill.ts";
import { fillTokens, isFields, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

/** Puts a case to the engine. Surfaces that are not built yet are skipped, each with its reason. */
export async function evaluateCase(written: SecurityCase, roots: Roots): Promise<Verdict> {
  const testCase = fillTokens(written, roots);
  const judge = loadingJudges.get(testCase.surface) ?? skillJudges.get(testCase.surface);
  if (judge !== undefined) return judge(testCase, roots);
  switch (testCase.surface) {
    case "tool_call":
    case "subagent_tool_call":
      return judgeCall(testCase, roots);
    case "redirect":
      return judgeRedirect(testCase, roots);
    case "resolve":
      return judgeCall(testCase, roots, { addresses: texts(testCase.context?.["resolvesTo"]) });
    case "http_api":
      return judgeHttp(testCase);
    default:
      return { skipped: unbuilt.get(testCase.surface) ?? `nothing here decides about ${testCase.surface}` };
  }
}

/** Each hop is a call of its own. */
async function judgeRedirect(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const first = await judgeCall(testCase, roots);
  if (first !== "allow") return first;
  const fields = isFields(testCase.input) ? testCase.input : {};
  const hops = [testCase.context?.["redirectTo"]].flat();
  for (const url of hops) {
    const verdict = await judgeCall(testCase, roots, { input: { ...fields, url } });
    if (verdict !== "allow") return verdict;
  }
  return "allow";
}

const unbuilt: ReadonlyMap<string, string> = new Map([
  ["include", "instruction files with rules for what they include are not built yet"],
  ["worktree", "worktrees are not built yet"],
  ["output_file", "background tasks are not built yet"],
  ["hook_exec", "needs the runner of hooks inside a session"],
  ["startup_exec", "needs a whole start to be watched"],
  ["cli_args", "needs the command line as a process"],
  ["agent_output", "results of children are not built yet"],
  ["agent_message", "messages between agents are not built yet"],
  ["toctou", "needs the tools that act, not the decision"],
  ["sandbox_fs", "needs the sandbox itself"],
  ["sandbox_net", "needs the sandbox itself"],
  ["exec_env", "needs the process that runs commands"],
  ["render", "needs the terminal"],
]);
