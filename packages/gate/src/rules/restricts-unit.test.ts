import { describe, expect, test } from "vitest";
import { decide, type PermissionPolicy } from "../decide.ts";
import { gatherCallFacts } from "../gather-call-facts.ts";
import { parseRule } from "./parse-rule.ts";
import { indexStarted, restrictsLine, restrictsUnit } from "./restricts-unit.ts";

async function judge(rule: string, command: string) {
  const reading = parseRule(`Bash(${rule})`, { list: "deny" });
  if (reading.type === "invalid") throw new Error(reading.reason);
  const policy: PermissionPolicy = {
    mode: "bypassPermissions",
    allow: [],
    ask: [],
    deny: [{ rule: reading.rule, anchor: "/p" }],
    workingDirectories: ["/p"],
    home: "/h",
  };
  const call = { tool: "Bash", effect: "execute", input: { command } };
  return decide(await gatherCallFacts(call, { policy, directory: "/p" }), policy).type;
}

describe("[PRM-9] deny rules see through options before a subcommand, and other names of it", () => {
  test.each([
    ["kubectl delete:*", "kubectl -n a delete x"],
    ["kubectl delete:*", "kubectl --context=c delete x"],
    ["kubectl delete --all*", "kubectl -n a delete --al"],
    ["docker run:*", "docker --context c run x"],
    ["docker run:*", "docker container run x"],
    ["docker container run:*", "docker run x"],
    ["docker rmi:*", "docker image rm x"],
    ["npm publish:*", "npm --tag x publish"],
    ["npm publish:*", "npm -s publis"],
    ["npm publish:*", "npm -- publish"],
    ["npm install:*", "npm i x"],
    ["npm install:*", "npm -g add x"],
    ["npm i:*", "npm install x"],
    ["gh pr merge:*", "gh -R a/b pr merge 1"],
    ["gh pr merge:*", "gh pr -R a/b merge 1"],
    ["terraform apply:*", "terraform -chdir=x apply"],
    ["cargo publish:*", "cargo +nightly publish"],
    ["pip install:*", "pip -q install x"],
    ["pip install:*", "pip3.11 install x"],
    ["pip install:*", "python3 -m pip -q install x"],
    ["aws s3 rm:*", "aws --profile p s3 --region r rm x"],
    ["systemctl stop:*", "systemctl --user stop x"],
    ["apt install:*", "apt-get -y install x"],
    ["yarn publish:*", "yarn npm publish"],
    ["git reset --hard:*", "git reset --har"],
    ["git push --force:*", "git push origin --forc"],
    ["* --no-verify*", "git commit --no-verif"],
    ["git commit --no-verify*", "git commit -nm x"],
  ])("%s denies %s", async (rule, command) => {
    expect(await judge(rule, command)).toBe("deny");
  });

  test("also behind more options than are tried", async () => {
    const options = "-v 1 ".repeat(200);
    expect(await judge("kubectl delete:*", `kubectl ${options}delete x`)).toBe("deny");
    expect(await judge("gh pr merge:*", `gh ${options}pr ${options}merge 1`)).toBe("deny");
    expect(await judge("kubectl delete:*", `kubectl ${options}get x`)).toBe("allow");
    expect(await judge("* --no-verify*", `kubectl ${options}get x`)).toBe("allow");
    expect(await judge("git push:*", `git commit -m "${"we push more ".repeat(100)}"`)).toBe("allow");
  });

  test.each([
    ["kubectl delete:*", "kubectl -n a get x"],
    ["kubectl delete:*", "kubectl get delete"],
    ["docker run:*", "docker exec x run"],
    ["npm publish:*", "npm run publish"],
    ["npm install:*", "npm ci"],
    ["gh pr merge:*", "gh pr view merge"],
    ["git reset --hard:*", "git reset --soft HEAD"],
    ["* --no-verify*", "git commit --no-edit"],
    ["git commit:*", "git log --grep commit"],
    ["rm:*", "npm rm x"],
  ])("%s does not deny %s", async (rule, command) => {
    expect(await judge(rule, command)).toBe("allow");
  });
});

describe("[PRM-8] deny rules hold however they are written", () => {
  test.each([
    ["TOUCH:*", "touch x"],
    ["/usr/bin/touch:*", "touch x"],
    ['"touch":*', "touch x"],
    ['touch "X"', "touch X"],
    ["touch  X", "touch X"],
    ["touch\tX", "touch 'X'"],
    ["./deploy.sh:*", "deploy.sh"],
    ["./deploy.sh:*", "/p/deploy.sh"],
    ["./deploy.sh:*", "src/../deploy.sh"],
    ["./deploy.sh:*", "sh ./deploy.sh"],
    ["./deploy.sh:*", ". ./deploy.sh"],
    ["rm -rf src", "rm -rf src/"],
    ["rm -rf src", "rm -fr ./src"],
    ["rm -rf src", "rm -rf /p/src"],
    ["npm test && npm publish", "npm test&&npm publish"],
  ])("%s denies %s", async (rule, command) => {
    expect(await judge(rule, command)).toBe("deny");
  });

  test("what such a rule does not say stays allowed", async () => {
    expect(await judge("rm -rf src", "rm -rf srcs")).toBe("allow");
    expect(await judge('touch "X"', "touch Y")).toBe("allow");
    expect(await judge("./deploy.sh:*", "./build.sh")).toBe("ask");
  });
});

function specifier(text: string) {
  const reading = parseRule(`Bash(${text})`, { list: "deny" });
  if (reading.type === "invalid" || reading.rule.specifier.type !== "command") throw new Error(text);
  return reading.rule.specifier;
}

describe("[PRM-8] spellings of what is denied", () => {
  test.each([
    ["kubectl delete:*", "kubectl -n a delete x"],
    ["kubectl delete:*", "kubectl --context=c delete x"],
    ["docker run:*", "docker --context c run x"],
    ["docker run:*", "docker container run x"],
    ["docker run*", "docker -D run x"],
    ["npm publish:*", "npm --tag x publish"],
    ["npm publish:*", "npm publis"],
    ["npm install:*", "npm i x"],
    ["npm install:*", "npm -g install x"],
    ["gh pr merge:*", "gh -R a/b pr merge 1"],
    ["gh pr merge:*", "gh pr -R a/b merge 1"],
    ["terraform apply:*", "terraform -chdir=x apply"],
    ["cargo publish:*", "cargo +nightly publish"],
    ["pip install:*", "pip3 -q install x"],
    ["python3:*", "python3.11 x"],
    ["curl -X POST:*", "curl -s -X POST x"],
    ["git reset --hard:*", "git reset --har"],
    ["* --no-verify*", "git commit --no-verif"],
    ["TOUCH:*", "touch x"],
    ["/usr/bin/touch:*", "touch x"],
    ["./deploy.sh:*", "deploy.sh x"],
    ['"touch":*', "touch x"],
    ['touch "x"', "touch x"],
    ["touch  x", "touch x"],
    ["touch ./x", "touch x"],
    ["rm -rf src", "rm -rf ./src/"],
  ])("%s speaks of %s", (rule, command) => {
    expect(restrictsUnit(specifier(rule), [command])).toBe(true);
  });

  test.each([
    ["kubectl delete:*", "kubectl get delete"],
    ["npm install:*", "npm run install"],
    ["npm install:*", "npm init"],
    ["npm publish:*", "npm run publish"],
    ["pip install:*", "pip list"],
    ["python2:*", "python3 x"],
    ["git push origin main", "git push origin dev"],
    ["touch x", "touch xy"],
    ["rm -rf src", "rm -rf src2"],
  ])("%s does not speak of %s", (rule, command) => {
    expect(restrictsUnit(specifier(rule), [command])).toBe(false);
  });

  test("a program that another one starts counts under the name of a rule with a path", () => {
    expect(
      restrictsUnit(specifier("./deploy.sh:*"), ["sh ./deploy.sh"], indexStarted([["./deploy.sh"]])),
    ).toBe(true);
  });

  test("spaces around operators change nothing about a line", () => {
    expect(restrictsLine(specifier("npm test && npm publish"), "npm test&&npm publish")).toBe(true);
    expect(restrictsLine(specifier("curl * | sh"), "curl -s x|sh")).toBe(true);
    expect(restrictsLine(specifier("npm publish"), "npm publish")).toBe(false);
  });

  test.each([
    "Bash(^rm)",
    "Bash(rm|mv)",
    "Bash(rm.*)",
    "Bash([r]m x)",
    "Bash(rm;)",
    "Read(!.env)",
    'Read(".env")',
    "Read(.env:*)",
    "Read($HOME/x)",
    "Read($DIR/x)",
  ])("%s would match nothing, so that it is an error where it restricts", (text) => {
    expect(parseRule(text, { list: "deny" }).type).toBe("invalid");
    expect(parseRule(text, { list: "ask" }).type).toBe("invalid");
  });

  test("a path rule is read without its steps back, an address without its scheme", () => {
    const read = (text: string) => {
      const reading = parseRule(text, { list: "deny" });
      return reading.type === "rule" ? reading.rule.specifier : undefined;
    };
    expect(read("Read(./src/../.env)")).toMatchObject({ pattern: "./.env" });
    expect(read("Read(../app/.env)")).toMatchObject({ pattern: "../app/.env" });
    expect(read("WebFetch(domain:https://Example.com)")).toMatchObject({ domain: "example.com" });
  });
});
