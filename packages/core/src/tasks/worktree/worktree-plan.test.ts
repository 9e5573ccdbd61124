import { execFileSync } from "node:child_process";
import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  contains,
  excludePattern,
  folderExcludes,
  planWorktree,
  type WorktreePlace,
} from "./worktree-plan.ts";

const place: WorktreePlace = {
  agentId: "a1b2c3",
  agentName: "reviewer",
  settings: {},
  repository: "/home/ada/shop",
  gitDirectory: "/home/ada/shop/.git",
  home: "/home/ada",
};

describe("the plan of a worktree", () => {
  it("names branch and folder after the agent and its whole id [SPN-7]", () => {
    expect(planWorktree(place)).toEqual({
      type: "planned",
      name: "reviewer-a1b2c3",
      branch: "retinue/reviewer-a1b2c3",
      folder: "/home/ada/shop/.claude/worktrees",
      path: "/home/ada/shop/.claude/worktrees/reviewer-a1b2c3",
      links: [],
    });
  });

  it.each([
    ["Spatial/Metal Engineer", "spatial-metal-engineer-a1b2c3"],
    ["plugin:review", "plugin-review-a1b2c3"],
    ["../../etc", "etc-a1b2c3"],
    ["審査", "agent-a1b2c3"],
    ["--force", "force-a1b2c3"],
    ["x".repeat(200), `${"x".repeat(40)}-a1b2c3`],
  ])("turns the agent name %s into a plain one", (agentName, name) => {
    expect(planWorktree({ ...place, agentName })).toMatchObject({ name, branch: `retinue/${name}` });
  });

  it("gives every agent name a branch that git accepts", () => {
    const names = fc.sample(fc.string({ unit: anyCharacter, maxLength: 80 }), 12);
    for (const agentName of ["a.lock", "a..b", "@{", "~^:?*[", ...names]) {
      const plan = planWorktree({ ...place, agentName });
      expect(plan.type).toBe("planned");
      if (plan.type === "planned") execFileSync("git", ["check-ref-format", `refs/heads/${plan.branch}`]);
    }
  });

  it("keeps agents with different ids apart, whatever they are called", () => {
    const id = fc.stringMatching(/^[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?$/);
    fc.assert(
      fc.property(id, id, fc.string(), (one, other, agentName) => {
        fc.pre(one !== other);
        const [first, second] = [one, other].map((agentId) => planWorktree({ ...place, agentId, agentName }));
        expect(first?.type === "planned" && first.path).not.toBe(second?.type === "planned" && second.path);
      }),
    );
  });

  it.each([
    "",
    "../x",
    "a/b",
    "a b",
    "-x",
    "x.",
    "x.lock",
    "a\nb",
    "x".repeat(65),
  ])("refuses the agent id %j, which cannot be part of a branch name", (agentId) => {
    expect(planWorktree({ ...place, agentId })).toMatchObject({
      type: "refused",
      reason: expect.stringContaining("agent id"),
    });
  });

  it.each([
    ["trees", "/home/ada/shop/trees"],
    ["../shop-trees", "/home/ada/shop-trees"],
    ["/var/trees/", "/var/trees/"],
    ["~/trees", "/home/ada/trees"],
    ["~", "/home/ada"],
  ])("takes the location %s as a folder from the repository, the root or the home", (location, folder) => {
    expect(planWorktree({ ...place, settings: { location } })).toMatchObject({ folder });
  });

  it.each([
    [".", "the repository itself"],
    ["/home/ada/shop", "the repository itself"],
    [".git/trees", "git's own data"],
    ["", "the repository itself"],
  ])("refuses the location %j", (location, reason) => {
    expect(planWorktree({ ...place, settings: { location } })).toMatchObject({
      type: "refused",
      reason: expect.stringContaining(reason),
    });
  });

  it("refuses a location in a home folder that is not known", () => {
    const plan = planWorktree({ ...place, home: undefined, settings: { location: "~/trees" } });
    expect(plan).toMatchObject({ type: "refused" });
  });

  it.each([
    "..",
    "../other",
    "/etc",
    ".git",
    "a/.git/b",
    ".",
    "",
    "a/../../b",
    ".GIT",
  ])("refuses to link %j, which is not a folder of the repository", (entry) => {
    const plan = planWorktree({ ...place, settings: { symlinkDirectories: ["node_modules", entry] } });
    expect(plan).toMatchObject({ type: "refused", reason: expect.stringContaining(JSON.stringify(entry)) });
  });

  it("takes each folder to link once, without detours", () => {
    const symlinkDirectories = ["node_modules/", "./node_modules", "packages/a/node_modules"];
    const plan = planWorktree({ ...place, settings: { symlinkDirectories } });
    expect(plan).toMatchObject({ links: ["node_modules", "packages/a/node_modules"] });
  });
});

describe("what is kept out of the status", () => {
  it("is the folder of worktrees, in those working trees that it lies in", () => {
    expect(folderExcludes(["/a/shop", "/b/side"], "/a/shop/.claude/worktrees")).toEqual([
      "/.claude/worktrees/",
    ]);
    expect(folderExcludes(["/a/shop", "/a/shop"], "/a/shop/t")).toEqual(["/t/"]);
    expect(folderExcludes(["/a/shop"], "/a/shop-trees")).toEqual([]);
  });

  it.each([
    ["node_modules", "/node_modules"],
    ["a*b/[c]?", "/a\\*b/\\[c\\]\\?"],
    ["blank  ", "/blank\\ \\ "],
    ["#x", "/#x"],
    ["!x", "/!x"],
  ])("is written so that %j means nothing but itself", (path, line) => {
    expect(excludePattern(path)).toBe(line);
  });

  it.each([
    ["/a", "/a/b", true],
    ["/a", "/a", true],
    ["/a", "/ab", false],
    ["/a/b", "/a", false],
    ["/a", "/a/..b", true],
  ])("%s contains %s: %s", (folder, path, expected) => {
    expect(contains(folder, path)).toBe(expected);
  });
});
