import { describe, expect, test } from "vitest";
import { parseRule } from "./parse-rule.ts";
import { restrictsLine, restrictsUnit } from "./restricts-unit.ts";

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
    ["git reset --hard:*", "git reset --help"],
    ["touch x", "touch xy"],
    ["rm -rf src", "rm -rf src2"],
  ])("%s does not speak of %s", (rule, command) => {
    expect(restrictsUnit(specifier(rule), [command])).toBe(false);
  });

  test("a program that another one starts counts under the name of a rule with a path", () => {
    expect(restrictsUnit(specifier("./deploy.sh:*"), ["sh ./deploy.sh"], [["./deploy.sh"]])).toBe(true);
  });

  test("blanks around operators change nothing about a line", () => {
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
