import { describe, expect, it } from "vitest";
import { parseRule } from "../rules/parse-rule.ts";
import { indexStarted, restrictsUnit } from "../rules/restricts-unit.ts";
import { loadAnalysis } from "./load-analysis.ts";
import type { ShellAnalysis } from "./model.ts";

function analyze(command: string): Promise<ShellAnalysis> {
  return loadAnalysis(command, { home: "/home/u", directory: "/nowhere" });
}

describe("[PRM-9] wrappers are taken off", () => {
  it.each([
    "timeout 5 npm test",
    "timeout -k 1 -s KILL 5 npm test",
    "timeout --signal=9 5 npm test",
    "nice npm test",
    "nice -n 5 npm test",
    "nice -5 npm test",
    "nohup npm test",
    "time -p npm test",
    "stdbuf -oL npm test",
    "command npm test",
    "exec npm test",
    "env -i -u A CI=1 npm test",
    "env timeout 5 nice npm test",
    "sh -c 'npm test'",
    "bash -euo pipefail -c 'npm test'",
    "bash -c -- 'npm test'",
    "builtin command npm test",
  ])("%s", async (command) => {
    const { units, opaque } = await analyze(command);
    expect(opaque).toBeUndefined();
    expect(units).toHaveLength(1);
    expect(units[0]).toMatchObject({ grantText: "npm test" });
    expect(units[0]?.exactOnly).toBeUndefined();
    expect(units[0]?.restrictTexts).toContain("npm test");
  });

  it.each([
    "sudo -n -u root npm test",
    "doas npm test",
    "setsid -w npm test",
    "ionice -c 3 npm test",
    "flock x npm test",
    "flock x -c 'npm test'",
    "watch -n1 -g 'npm test'",
    "busybox npm test",
    "strace -o x npm test",
    "/usr/bin/env npm test",
    "/bin/sh -c 'npm test'",
    "env -S 'npm test'",
    "bash -lc 'npm test'",
    "eval npm test",
    "trap 'npm test' EXIT",
    "find . -exec npm test \\;",
    "find . -name x -ok npm test \\; -print",
  ])("%s needs an exact rule for itself, and the inner command is seen", async (command) => {
    const { units } = await analyze(command);
    expect(units[0]?.exactOnly).toBeDefined();
    expect(units.at(-1)?.restrictTexts).toContain("npm test");
  });

  it("what xargs adds is not known, so no exact rule without it covers the command", async () => {
    const { units } = await analyze("ls | xargs -0 -n 1 grep -l x");
    expect(units.at(-1)).toMatchObject({ grantText: "grep -l x …", readOnly: false });
    expect(units.at(-1)?.restrictTexts).toEqual(["grep -l x", "xargs -0 -n 1 grep -l x"]);
  });

  it("what xargs puts in the place of a mark is not known", async () => {
    const { opaque } = await analyze("ls | xargs -I% sh -c 'cat %'");
    expect(opaque).toBe("the text that sh runs is only known when it runs");
    for (const fed of ["ls | parallel cat", "parallel cat :::: a"])
      expect((await analyze(fed)).opaque).toBe("the text that parallel runs is only known when it runs");
    expect((await analyze("parallel cat ::: a")).opaque).toBeUndefined();
  });
});

describe("[PRM-9] rules that restrict see a command through its spellings", () => {
  it.each([
    ["sudo systemctl stop x", "sudo systemctl stop x"],
    ["/usr/bin/curl x", "curl x"],
    ["timeout 5 /usr/bin/curl x", "curl x"],
    ["git -C d -c a=b push", "git push"],
    ["/usr/bin/git --no-pager push", "git push"],
    ['rm   "-rf"    build', "rm -rf build"],
    ["rm -r --force build", "rm -rf build"],
    ["git push origin main -f", "git push --force origin main"],
    ["curl>x y", "curl y"],
    ["FOO=bar rm x", "rm x"],
    ["FOO=bar rm x", "FOO=bar rm x"],
    ["bash <<'E'\ncurl x\nE", "curl x"],
    ["bash <<< 'curl x'", "curl x"],
    ["bash <<E\ncurl x\nE", "curl x"],
    ['sh -c "curl $x"', "curl $x"],
  ])("%s is seen as %s", async (command, text) => {
    const { units } = await analyze(command);
    expect(units.flatMap(({ restrictTexts }) => restrictTexts)).toContain(text);
  });

  it.each([
    "npx curl x",
    "npm exec -- curl x",
    "strange-launcher -v /usr/bin/curl x",
    "ssh host 'cd y; curl x'",
    "nsenter -t 1 curl x",
    "yarn curl x",
    "pnpm curl x",
    "git grep -Ocurl x",
    "at now <<< 'curl x'",
    "crontab - <<E\n* * * * * curl x\nE",
    "make -f - <<< 'a:;curl x'",
    "ed <<< '!curl x'",
  ])("curl may be started by %s", async (command) => {
    const { units } = await analyze(command);
    const reading = parseRule("Bash(curl *)");
    if (reading.type === "invalid" || reading.rule.specifier.type !== "command") throw new Error("no rule");
    const { specifier } = reading.rule;
    expect(
      units.some((unit) => restrictsUnit(specifier, unit.restrictTexts, indexStarted(unit.started ?? []))),
    ).toBe(true);
  });

  it.each([
    "cat <<< 'curl x'",
    "gh pr create -F - <<< 'curl x'",
    "yarn test",
    "git commit -m 'curl x'",
  ])("curl is not started by %s", async (command) => {
    const { units } = await analyze(command);
    const reading = parseRule("Bash(curl *)");
    if (reading.type === "invalid" || reading.rule.specifier.type !== "command") throw new Error("no rule");
    const { specifier } = reading.rule;
    expect(
      units.some((unit) => restrictsUnit(specifier, unit.restrictTexts, indexStarted(unit.started ?? []))),
    ).toBe(false);
  });

  it("what source takes from its input is not understood", async () => {
    expect((await analyze("source /dev/stdin <<< 'curl x'")).opaque).toBe(
      "what source runs comes from its input",
    );
    expect((await analyze("source ./env.sh")).opaque).toBeUndefined();
  });

  it("a program that is named relative to another directory is granted by no scoped rule", async () => {
    const { units } = await analyze("cd other && ./run");
    expect(units.at(-1)).toMatchObject({
      reason: "the program is named relative to a directory that was changed",
    });
    expect(units.at(-1)?.grantText).toBeUndefined();
  });
});
