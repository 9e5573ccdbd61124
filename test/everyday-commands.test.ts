import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { decide, type PermissionPolicy } from "@retinue/gate/decide.ts";
import { gatherCallFacts } from "@retinue/gate/gather-call-facts.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { suggestRules } from "@retinue/gate/suggest-rules.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { asks, denies, everydaySettings, runs } from "./everyday-commands.ts";

const root = realpathSync(mkdtempSync(join(tmpdir(), "everyday-")));
const work = join(root, "work");

const files = `package.json src/index.ts src/a.ts src/a.test.ts README.md app.log words.txt data.csv .env secrets/key.pem
  packages/api/package.json packages/api/tsconfig.json packages/api/Makefile packages/api/src/index.ts
  packages/web/package.json tsconfig.json script.py script.js script.sh script.rb requirements.txt eslint.config.js
  .prettierrc jest.config.js scripts/run.sh Makefile tests/test_a.py test/a.js spec/a_spec.rb cmd/app/main.go pkg/a.go
  dist/index.js .hidden/package.json node_modules/x/package.json .claude/settings.json`;

beforeAll(() => {
  for (const file of files.split(/\s+/)) {
    mkdirSync(dirname(join(work, file)), { recursive: true });
    writeFileSync(join(work, file), "{}\n");
  }
  writeFileSync(join(work, "package.json"), '{ "workspaces": ["packages/*"] }\n');
  mkdirSync(join(root, "home"));
  const git = (...words: string[]) =>
    execFileSync("git", ["-C", work, "-c", "user.name=a", "-c", "user.email=a@example.com", ...words]);
  git("init", "-q", "-b", "main");
  git("add", "-A");
  git("commit", "-q", "-m", "Begin");
  git("remote", "add", "origin", "https://example.com/a.git");
});
afterAll(() => rmSync(root, { recursive: true, force: true }));

const rulesOf = (texts: readonly string[], list: "allow" | "deny") =>
  texts.map((text) => {
    const reading = parseRule(text, { list });
    if (reading.type === "invalid") throw new Error(`${text}: ${reading.reason}`);
    return { rule: reading.rule, anchor: work };
  });

function policyWith(more: readonly string[] = []): PermissionPolicy {
  return {
    mode: "default",
    allow: rulesOf([...everydaySettings.allow, ...more], "allow"),
    ask: [],
    deny: rulesOf(everydaySettings.deny, "deny"),
    workingDirectories: [work],
    home: join(root, "home"),
    platform: "linux",
    trusted: true,
  };
}

async function judge(command: string, policy = policyWith()) {
  const call = { tool: "Bash", effect: "execute", input: { command } };
  const request = await gatherCallFacts(call, { policy, directory: work });
  return { request, decision: decide(request, policy) };
}

describe("commands of every day under a usual settings file", () => {
  test.each(runs)("runs [PRM-8]: %s", async (command) => {
    const { decision } = await judge(command);
    expect(decision, decision.reason).toMatchObject({ type: "allow" });
  });

  test.each(asks)("asks, and what is suggested works when it is taken [PRM-8]: %s", async (command) => {
    const { request, decision } = await judge(command);
    expect(decision, decision.reason).toMatchObject({ type: "ask" });
    const suggested = suggestRules(request, policyWith(), { anchor: work });
    if (suggested.length === 0) expect(decision.reason).toMatch(noRuleHelps);
    else expect((await judge(command, policyWith(suggested))).decision.type).toBe("allow");
  });

  test.each(denies)("denies [PRM-8]: %s", async (command) => {
    expect((await judge(command)).decision.type).toBe("deny");
  });

  test("there are more than 200 that run [PRM-8]", () => expect(runs.length).toBeGreaterThan(200));
});

/** What is asked about whatever rules allow. */
const noRuleHelps = /is protected|is not fully understood|would remove|it is not known which file/;
