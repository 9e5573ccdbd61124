import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { refuseWorkspace } from "./open-workspace.ts";

describe("a worker with folders of its own [CLU-6]", () => {
  function createFolders() {
    const root = realpathSync(mkdtempSync(join(tmpdir(), "refuse-workspace-")));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    for (const name of ["given", "given/project", "given-too", "other"]) mkdirSync(join(root, name));
    symlinkSync("../other", join(root, "given/link"));
    return root;
  }

  test.each([
    ["given", true],
    ["given/project", true],
    ["given/../other", false],
    ["given/link", false],
    ["given-too", false],
    ["other", false],
    [".", false],
    ["/", false],
  ])("works in %s: %s", async (name, isTaken) => {
    const root = createFolders();
    const given = join(root, "given");
    const place = name === "/" ? name : `${root}/${name}`;
    const git = { base: "0".repeat(40), branch: "b" };
    for (const plan of [
      // The plan names the folder that the worker announced, and works elsewhere.
      { type: "shared" as const, directory: place, root: given },
      { type: "pinned" as const, directory: place, machine: "here" },
      { type: "git" as const, repository: place, ...git },
      { type: "git" as const, repository: `file://${place}`, ...git },
    ]) {
      const taken = refuseWorkspace(plan, [given]);
      if (isTaken) await expect(taken).resolves.toBeUndefined();
      else await expect(taken).rejects.toMatchObject({ code: "workspace-refused" });
    }
  });

  test("takes repositories of other machines, and a worker without folders takes every folder but the root", async () => {
    const root = createFolders();
    const git = {
      type: "git" as const,
      repository: "https://example.org/x.git",
      base: "0".repeat(40),
      branch: "b",
    };
    await expect(refuseWorkspace(git, [root])).resolves.toBeUndefined();
    await expect(
      refuseWorkspace({ type: "pinned", directory: root, machine: "here" }, []),
    ).resolves.toBeUndefined();
    await expect(refuseWorkspace({ type: "pinned", directory: "/", machine: "here" }, [])).rejects.toThrow(
      "whole file system",
    );
  });
});
