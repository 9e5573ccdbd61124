import { withKnownNames } from "./case-aliases.ts";
import { complaintsAbout, isKnownFact } from "./case-schema.ts";
import { texts } from "./case-settings.ts";
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
import { judgeSandboxFiles, judgeSandboxNetwork } from "./judge-sandbox.ts";
import { skillJudges } from "./judge-skill.ts";
import { judgeStartup } from "./judge-startup.ts";
import { judgeSwap } from "./judge-swap.ts";
import { judgeWorktree } from "./judge-worktree.ts";
import {
  fillTokens,
  isFields,
  NotHonoured,
  type Roots,
  type SecurityCase,
  type Verdict,
} from "./security-case.ts";

type Judge = (testCase: SecurityCase, roots: Roots) => Verdict | Promise<Verdict>;

/**
 * Puts a case to the parts of the product that decide or act. A field, a value, an operation or a surface that is not
 * known here is a failure: a case that was put otherwise than written says nothing about the product.
 */
export async function evaluateCase(given: SecurityCase, roots: Roots): Promise<Verdict> {
  const written = withKnownNames(given, isKnownFact);
  refuseUnknown(written);
  const testCase = fillTokens(written, roots);
  const judge = judges.get(testCase.surface);
  if (judge === undefined) throw new NotHonoured(`nothing here judges the surface ${testCase.surface}`);
  return judge(testCase, roots);
}

/** Fails where a case says something that would not be honoured. */
export function refuseUnknown(given: unknown): void {
  const written = isFields(given) ? withKnownNames(given as unknown as SecurityCase, isKnownFact) : given;
  const complaints = complaintsAbout(written);
  if (complaints.length > 0) throw new NotHonoured(`${complaints.join("; ")}.`);
}

/** Each hop is a call of its own. */
async function judgeRedirect(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {} } = testCase;
  const hops = [context["redirectTo"] ?? [], context["redirects"] ?? []].flat(2);
  if (hops.length === 0) throw new NotHonoured("the case names no redirect");
  const first = await judgeCall(testCase, roots);
  if (first !== "allow") return first;
  const fields = isFields(testCase.input) ? testCase.input : {};
  for (const url of hops) {
    const verdict = await judgeCall(testCase, roots, { input: { ...fields, url } });
    if (verdict !== "allow") return verdict;
  }
  return "allow";
}

/** A name may be found at other addresses the next time it is looked up; each time is decided. */
async function judgeResolve(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { resolvesTo, thenResolvesTo, dialledAddress } = testCase.context ?? {};
  const times = [resolvesTo, thenResolvesTo, [dialledAddress].flat()]
    .map(texts)
    .filter((addresses) => addresses.length > 0);
  if (times.length === 0) throw new NotHonoured("the case names no address");
  for (const addresses of times) {
    const verdict = await judgeCall(testCase, roots, { addresses });
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
  ["resolve", judgeResolve],
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
  ["sandbox_fs", judgeSandboxFiles],
  ["sandbox_net", judgeSandboxNetwork],
]);

export const judgedSurfaces: readonly string[] = [...judges.keys()];
