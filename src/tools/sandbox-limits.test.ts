import { describe, expect, it } from "vitest";
import type { PolicyRule } from "../permissions/decide.ts";
import { parseRule } from "../permissions/parse-rule.ts";
import { mayWriteInSandbox, protectedNames, sandboxLimits } from "./sandbox-limits.ts";
import { readSandboxSettings } from "./sandbox-settings.ts";

function denying(...texts: string[]): PolicyRule[] {
  return texts.map((text) => {
    const reading = parseRule(text, { list: "deny" });
    if (reading.type === "invalid") throw new Error(reading.reason);
    return { rule: reading.rule, anchor: "/settings" };
  });
}

const limitsOf = (sandbox: Record<string, unknown> = {}, deny: PolicyRule[] = []) =>
  sandboxLimits({
    settings: readSandboxSettings({ enabled: true, ...sandbox }),
    workingDirectories: ["/work/app", "/work/other"],
    temporaryDirectory: "/tmp/s",
    home: "/home/ada",
    deny,
  });

describe("what sandboxed commands may touch", () => {
  it("is the working directories and a folder for temporary files, for writing", () => {
    const limits = limitsOf();
    expect(limits.allowWrite).toEqual(["/work/app", "/work/other", "/tmp/s"]);
    expect(mayWriteInSandbox("/work/app/src/a.ts", limits)).toBe(true);
    expect(mayWriteInSandbox("/work/app-evil/a.ts", limits)).toBe(false);
    expect(mayWriteInSandbox("/home/ada/.bashrc", limits)).toBe(false);
  });

  it.each(protectedNames)("never includes %s, present or not, in any working directory", (name) => {
    const limits = limitsOf({ filesystem: { allowWrite: ["/work/app/.claude", "/work/app/.git"] } });
    expect(mayWriteInSandbox(`/work/app/${name}`, limits)).toBe(false);
    expect(mayWriteInSandbox(`/work/other/${name}/x`, limits)).toBe(false);
  });

  it("takes paths of settings from the project, from home and from the root", () => {
    const { allowWrite, denyRead } = limitsOf({
      filesystem: { allowWrite: ["build", "~/cache", "//srv/a", "/srv/b"], denyRead: ["./.env", "~"] },
    });
    expect(allowWrite.slice(3)).toEqual(["/work/app/build", "/home/ada/cache", "/srv/a", "/srv/b"]);
    expect(denyRead).toEqual(["/work/app/.env", "/home/ada"]);
  });

  it("obeys the deny rules about paths", () => {
    const rules = denying(
      "Read(~/.ssh/**)",
      "Read(.env)",
      "Edit(/docs/**)",
      "Read(//etc/shadow)",
      "Bash(rm *)",
    );
    const { denyRead, denyWrite } = limitsOf({}, rules);
    expect(denyRead).toEqual(["/home/ada/.ssh", "/work/app/**/.env", "/work/app/.env", "/etc/shadow"]);
    expect(denyWrite).toContain("/settings/docs");
  });
});
