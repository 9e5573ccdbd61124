import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Decision, decide, type PermissionPolicy, type PolicyRule } from "@retinue/gate/decide.ts";
import { type CallToJudge, gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { sealCall } from "@retinue/gate/seal-call.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";

export interface LongJudgement {
  readonly decision: Decision;
  /** Milliseconds of this process's own work. */
  readonly cpuMs: number;
}

/** Judges calls as a session does, in a folder with links and many files, with no rules, usual ones, many and very many. */
export interface LongJudge extends Disposable {
  readonly policies: readonly string[];
  judge(call: Pick<CallToJudge, "tool" | "effect" | "input">, policy: string): Promise<LongJudgement>;
}

export function openLongJudge(): LongJudge {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "long-")));
  execFileSync("git", ["init", "-q", directory]);
  mkdirSync(join(directory, "src"));
  symlinkSync(".", join(directory, "loop"));
  for (let at = 0; at < 150; at += 1) writeFileSync(join(directory, `src/f${at}.ts`), "");
  const policies = policiesFor(directory);
  return {
    policies: [...policies.keys()],
    async judge(call, name) {
      const policy = policies.get(name);
      if (policy === undefined) throw new Error(`There is no policy ${name}.`);
      const before = process.cpuUsage();
      const request = await gatherCallFacts(call, { policy, directory });
      const decision = decide(request, policy);
      suggestRules(request, policy, { anchor: directory });
      await sealCall(request, { directory, home: policy.home });
      const { user, system } = process.cpuUsage(before);
      return { decision, cpuMs: (user + system) / 1000 };
    },
    [Symbol.dispose]: () => rmSync(directory, { recursive: true, force: true }),
  };
}

function policiesFor(anchor: string): ReadonlyMap<string, PermissionPolicy> {
  const rules = (list: "allow" | "ask" | "deny", texts: readonly string[]): readonly PolicyRule[] =>
    texts.map((text) => {
      const reading = parseRule(text, { list });
      if (reading.type !== "rule") throw new Error(`${text} is no rule.`);
      return { rule: reading.rule, anchor };
    });
  const none: PermissionPolicy = {
    mode: "default",
    allow: [],
    ask: [],
    deny: [],
    workingDirectories: [anchor],
    home: "/home/ada",
    platform: "linux",
  };
  const usual: PermissionPolicy = {
    ...none,
    allow: rules("allow", ["Bash(git *)", "Bash(npm test *)", "Read(src/**)"]),
    ask: rules("ask", ["Bash(npm publish *)"]),
    deny: rules("deny", [
      "Bash(rm -rf *)",
      "Bash(git push --force *)",
      "Bash(curl * | sh)",
      "Read(.env)",
      "Edit(*.lock)",
    ]),
  };
  return new Map([
    ["none", none],
    ["usual", usual],
    ["many", { ...none, mode: "bypassPermissions", ...manyRules(rules, 20) }],
    ["very many", { ...none, mode: "bypassPermissions", ...manyRules(rules, 100) }],
  ]);
}

/** Five times as many rules as `count`, of the kinds that take the most work. */
function manyRules(
  rules: (list: "allow" | "ask" | "deny", texts: readonly string[]) => readonly PolicyRule[],
  count: number,
): Pick<PermissionPolicy, "allow" | "ask" | "deny"> {
  const each = (write: (at: number) => string): readonly string[] =>
    Array.from({ length: count }, (_, at) => write(at));
  return {
    allow: rules(
      "allow",
      each((at) => `Bash(tool${at} *)`),
    ),
    ask: rules("ask", [...each((at) => `Bash(*x${at}*)`), ...each((at) => `Edit(**/*${at}.lock)`)]),
    deny: rules("deny", [
      ...each((at) => `Bash(git cmd${at} --option-${at} *)`),
      ...each((at) => `Read(**/secret${at}*/*.pem)`),
      "Bash(*a*b*c*d*e*)",
    ]),
  };
}
