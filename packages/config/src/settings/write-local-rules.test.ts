import { mkdir, mkdtemp, readFile, realpath, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { addRules, writeLocalRules } from "./write-local-rules.ts";

let root: string;
let file: string;
beforeEach(async () => {
  root = await realpath(await mkdtemp(join(tmpdir(), "rules-")));
  file = join(root, ".claude", "settings.local.json");
});
afterEach(() => rm(root, { recursive: true, force: true }));

const allow = (...rules: string[]) => ({ list: "allow" as const, rules });
const put = async (text: string) => {
  await mkdir(join(root, ".claude"), { recursive: true });
  await writeFile(file, text);
};

describe("saving rules in local settings", () => {
  it("makes the file, and adds to it later without repeating a rule", async () => {
    expect(await writeLocalRules(root, allow("Bash(npm test)"))).toEqual({
      type: "saved",
      file,
      changed: ["Bash(npm test)"],
    });
    const again = await writeLocalRules(
      root,
      allow("Bash(npm test)", "Bash(git push:*)", "Bash(git push *)"),
    );
    expect(again).toMatchObject({ type: "saved", changed: ["Bash(git push:*)", "Bash(git push *)"] });
    expect(await writeLocalRules(root, allow("Bash(git push *)"))).toMatchObject({ changed: [] });
    const { permissions } = JSON.parse(await readFile(file, "utf8"));
    expect(permissions.allow).toEqual(["Bash(npm test)", "Bash(git push:*)", "Bash(git push *)"]);
  });

  it("takes a rule out, however it is written, and leaves the others [PRM-8]", async () => {
    await put(
      '{\n  "permissions": {\n    "allow": [\n      "Read",\n      "Bash(git push:*)"\n    ]\n  }\n}\n',
    );
    const gone = { ...allow("Bash(git push *)"), removes: true };
    expect(await writeLocalRules(root, gone)).toEqual({ type: "saved", file, changed: ["Bash(git push:*)"] });
    expect(await readFile(file, "utf8")).toContain('      "Read"\n');
    expect(await readFile(file, "utf8")).not.toContain("push");
    expect(await writeLocalRules(root, gone)).toMatchObject({ type: "saved", changed: [] });
  });

  it("leaves every other value and its formatting as it was written", async () => {
    await put(
      '{\n    "model": "opus",\n    "permissions": {\n        "deny": ["Bash(rm *)"],\n        "allow": ["Read"]\n    }\n}\n',
    );
    await writeLocalRules(root, allow("Edit(//srv/**)"));
    const text = await readFile(file, "utf8");
    expect(text).toContain('    "model": "opus",\n');
    expect(text).toContain('"deny": ["Bash(rm *)"]');
    expect(JSON.parse(text).permissions.allow).toEqual(["Read", "Edit(//srv/**)"]);
  });

  it.each([
    ["broken JSON", '{"permissions": '],
    ["a list in its place", "[]"],
    ["rules that are no list", '{"permissions": {"allow": "Read"}}'],
    ["a key written twice", '{"permissions": {"allow": []}, "permissions": {"allow": []}}'],
  ])("does not touch a file with %s, and says why", async (_, text) => {
    await put(text);
    expect(await writeLocalRules(root, allow("Read"))).toMatchObject({ type: "refused", file });
    expect(await readFile(file, "utf8")).toBe(text);
  });

  it("refuses a rule that would not be valid there", async () => {
    expect(await writeLocalRules(root, allow("Bash("))).toMatchObject({ type: "refused" });
    await expect(readFile(file, "utf8")).rejects.toThrow("ENOENT");
  });

  it("does not follow a link out of the project", async () => {
    const outside = join(root, "user.json");
    const project = join(root, "project");
    await mkdir(join(project, ".claude"), { recursive: true });
    await writeFile(outside, "{}\n");
    await symlink(outside, join(project, ".claude", "settings.local.json"));
    expect(await writeLocalRules(project, allow("Bash"))).toMatchObject({ type: "refused" });
    expect(await readFile(outside, "utf8")).toBe("{}\n");
  });

  it("instructs git once, in the person's own exclude file, to leave the file alone", async () => {
    await mkdir(join(root, ".git", "info"), { recursive: true });
    const exclude = join(root, ".git", "info", "exclude");
    await writeFile(exclude, "# mine\n*.log");
    await writeLocalRules(root, allow("Read"));
    await writeLocalRules(root, allow("Edit"));
    expect(await readFile(exclude, "utf8")).toBe("# mine\n*.log\n/.claude/settings.local.json\n");
    await expect(readFile(join(root, ".gitignore"), "utf8")).rejects.toThrow("ENOENT");
  });
});

it("adding rules keeps all that was in any settings file", () => {
  const names = fc.string({ minLength: 1 }).filter((name) => name !== "permissions" && name !== "__proto__");
  fc.assert(
    fc.property(
      fc.dictionary(names, fc.jsonValue()),
      fc.array(fc.constantFrom("Read", "Edit", "Bash(ls)")),
      (others, rules) => {
        const before = JSON.stringify({ ...others, permissions: { deny: ["Bash"] } }, undefined, 2);
        const change = addRules(before, allow(...rules), "file");
        if (change.type !== "text") throw new Error(change.why);
        const { permissions, ...rest } = JSON.parse(change.text);
        expect(rest).toEqual(JSON.parse(JSON.stringify(others)));
        expect(permissions.deny).toEqual(["Bash"]);
        expect(permissions.allow ?? []).toEqual([...new Set(rules)]);
      },
    ),
    { numRuns: 50 },
  );
});
