import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCallMemory, decideCall } from "@retinue/gate/decide-call.ts";
import type { PermissionPolicy } from "@retinue/gate/permission-policy.ts";
import { parseRule, type RuleList } from "@retinue/gate/rules/parse-rule.ts";
import { median } from "./measure.ts";

/** The most that one decision about a shell call may take at the median, in milliseconds. */
const limit = 0.4;
const rounds = 400;

/** Deciding about shell calls as people make them, each with a text that was not seen before. */
export async function benchPermissionDecision(): Promise<boolean> {
  const project = realpathSync(mkdtempSync(join(tmpdir(), "retinue-bench-")));
  try {
    mkdirSync(join(project, "src"));
    mkdirSync(join(project, "home"));
    writeFileSync(join(project, "src/a.ts"), "");
    const policy = samplePolicy(project);
    const times = await measure(project, policy);
    const sorted = [...times].sort((a, b) => a - b);
    const middle = median(times);
    const slow = sorted[Math.floor(sorted.length * 0.95)] ?? Number.NaN;
    const verdict = middle <= limit ? "ok" : "TOO SLOW";
    console.log("\nDeciding about a shell call");
    console.log(`  median ${middle.toFixed(3)} ms  limit ${limit} ms  ${verdict}`);
    console.log(`  95th percentile ${slow.toFixed(3)} ms`);
    return middle <= limit;
  } finally {
    rmSync(project, { recursive: true, force: true });
  }
}

async function measure(project: string, policy: PermissionPolicy): Promise<readonly number[]> {
  const times: number[] = [];
  // As an agent has it, over all its calls.
  const memory = createCallMemory();
  for (let round = -50; round < rounds; round += 1) {
    for (const command of commands) {
      // Another number each time, so that no text is one that was analysed before.
      const input = { command: command.replaceAll("%", String(round + 100)) };
      const start = performance.now();
      await decideCall({ tool: "Bash", effect: "execute", input }, policy, { directory: project, memory });
      if (round >= 0) times.push(performance.now() - start);
    }
  }
  return times;
}

const commands = [
  "npm test -- --shard=%",
  "git diff HEAD~% -- src/a.ts",
  "grep -rn 'TODO %' src | head -20",
  "cd src && ls -la | wc -l && echo %",
  "rm -rf dist/% && mkdir -p dist/%",
  "git commit -m \"$(cat <<'EOF'\nMessage %\n\nBody\nEOF\n)\"",
  'for f in src/*.ts; do wc -l "$f"; done; echo %',
  "NODE_ENV=test timeout 30 npm run build:% 2>&1 | tail -50",
  "echo % > src/out.txt",
];

function samplePolicy(project: string): PermissionPolicy {
  const rules = (list: RuleList, texts: readonly string[]) =>
    texts.map((text) => {
      const reading = parseRule(text, { list });
      if (reading.type === "invalid") throw new Error(reading.reason);
      return { rule: reading.rule, anchor: project };
    });
  return {
    mode: "default",
    allow: rules("allow", [
      "Bash(npm test *)",
      "Bash(npm run *)",
      "Bash(git diff *)",
      "Bash(git commit *)",
      "Bash(wc *)",
      "Edit(src/**)",
      "WebFetch(domain:example.com)",
    ]),
    ask: rules("ask", ["Bash(git push *)", "Bash(npm publish *)"]),
    deny: rules("deny", [
      "Read(./.env)",
      "Read(~/.ssh/**)",
      "Bash(curl *)",
      "Bash(rm -rf /*)",
      "Edit(secrets/**)",
    ]),
    workingDirectories: [project],
    home: join(project, "home"),
  };
}
