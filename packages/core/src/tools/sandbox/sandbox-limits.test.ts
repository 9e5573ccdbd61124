import type { PolicyRule } from "@retinue/gate/decide.ts";
import { parseRule } from "@retinue/gate/rules/parse-rule.ts";
import { describe, expect, it } from "vitest";
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
    workingDirectories: ["/projects/app", "/projects/other"],
    temporaryDirectory: "/tmp/s",
    home: "/home/ada",
    deny,
  });

describe("what sandboxed commands may touch", () => {
  it("is the working directories and a folder for temporary files, for writing", () => {
    const limits = limitsOf();
    expect(limits.allowWrite).toEqual(["/projects/app", "/projects/other", "/tmp/s"]);
    expect(mayWriteInSandbox("/projects/app/src/a.ts", limits)).toBe(true);
    expect(mayWriteInSandbox("/projects/app-evil/a.ts", limits)).toBe(false);
    expect(mayWriteInSandbox("/home/ada/.bashrc", limits)).toBe(false);
  });

  it.each(protectedNames)("never includes %s, present or not, in any working directory", (name) => {
    const limits = limitsOf({ filesystem: { allowWrite: ["/projects/app/.claude", "/projects/app/.git"] } });
    expect(mayWriteInSandbox(`/projects/app/${name}`, limits)).toBe(false);
    expect(mayWriteInSandbox(`/projects/other/${name}/x`, limits)).toBe(false);
  });

  it("takes paths of settings from the project, from home and from the root", () => {
    const { allowWrite, denyRead } = limitsOf({
      filesystem: { allowWrite: ["build", "~/cache", "//srv/a", "/srv/b"], denyRead: ["./.env", "~"] },
    });
    expect(allowWrite.slice(3)).toEqual(["/projects/app/build", "/home/ada/cache", "/srv/a", "/srv/b"]);
    expect(denyRead).toEqual(["/projects/app/.env", "/home/ada"]);
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
    expect(denyRead).toEqual([
      "/home/ada/.ssh",
      "/projects/app/**/.env",
      "/projects/app/.env",
      "/etc/shadow",
    ]);
    expect(denyWrite).toContain("/settings/docs");
  });
});
