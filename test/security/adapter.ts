import { texts } from "./case-policy.ts";
import { judgeCall } from "./judge-call.ts";
import { judgeCommandLine } from "./judge-cli.ts";
import { judgeExecEnvironment } from "./judge-environment.ts";
import { judgeHookExec } from "./judge-hook-exec.ts";
import { judgeHttp } from "./judge-http.ts";
import { judgeInclude } from "./judge-include.ts";
import { loadingJudges } from "./judge-loading.ts";
import { judgeAgentMessage, judgeAgentOutput } from "./judge-message.ts";
import { judgeOutputFile } from "./judge-output-file.ts";
import { judgeRender } from "./judge-render.ts";
import { skillJudges } from "./judge-skill.ts";
import { judgeStartup } from "./judge-startup.ts";
import { judgeSwap } from "./judge-swap.ts";
import { judgeWorktree } from "./judge-worktree.ts";
import { fillTokens, isFields, type Roots, type SecurityCase, type Verdict } from "./security-case.ts";

type Judge = (testCase: SecurityCase, roots: Roots) => Verdict | Promise<Verdict>;

/** Puts a case to the parts of the product that decide or act. What nothing decides is skipped, each with its reason. */
export async function evaluateCase(written: SecurityCase, roots: Roots): Promise<Verdict> {
  const testCase = fillTokens(written, roots);
  const judge = judges.get(testCase.surface);
  if (judge !== undefined) return judge(testCase, roots);
  return { skipped: unbuilt.get(testCase.surface) ?? `nothing here decides about ${testCase.surface}` };
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

const judges: ReadonlyMap<string, Judge> = new Map<string, Judge>([
  ...loadingJudges,
  ...skillJudges,
  ["tool_call", (testCase, roots) => judgeCall(testCase, roots)],
  ["subagent_tool_call", (testCase, roots) => judgeCall(testCase, roots)],
  ["redirect", judgeRedirect],
  [
    "resolve",
    (testCase, roots) => judgeCall(testCase, roots, { addresses: texts(testCase.context?.["resolvesTo"]) }),
  ],
  ["http_api", judgeHttp],
  ["include", judgeInclude],
  ["hook_exec", judgeHookExec],
  ["startup_exec", judgeStartup],
  ["cli_args", judgeCommandLine],
  ["worktree", judgeWorktree],
  ["output_file", judgeOutputFile],
  ["agent_output", judgeAgentOutput],
  ["agent_message", judgeAgentMessage],
  ["toctou", judgeSwap],
  ["exec_env", judgeExecEnvironment],
  ["render", judgeRender],
]);

const unbuilt: ReadonlyMap<string, string> = new Map([
  ["sandbox_fs", "needs the sandbox itself"],
  ["sandbox_net", "needs the sandbox itself"],
]);
