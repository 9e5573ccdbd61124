import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { writeAtomically } from "./builtin/change-file.ts";
import { openFile } from "./builtin/open-file.ts";

function createFolders(): string {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "opened-at-")));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  for (const name of ["work", "secret"]) {
    mkdirSync(join(root, name));
    writeFileSync(join(root, name, "file.txt"), name);
  }
  return root;
}

describe.skipIf(process.platform !== "linux")("a folder that is swapped for a link [PRM-10]", () => {
  test("while files are read is never followed", async () => {
    const root = createFolders();
    // Another process, so that the swap falls between any two steps of this one.
    const swapper = spawn(
      process.execPath,
      [
        "-e",
        `const fs = require("node:fs"); process.chdir(${JSON.stringify(root)}); fs.symlinkSync("secret", "link"); console.log("ready");
         for (;;) { fs.renameSync("work", "kept"); fs.renameSync("link", "work"); fs.renameSync("work", "link"); fs.renameSync("kept", "work"); }`,
      ],
      { stdio: ["ignore", "pipe", "ignore"] },
    );
    onTestFinished(() => void swapper.kill("SIGKILL"));
    await once(swapper.stdout, "data");
    const seen = new Set<string>();
    for (let round = 0; round < 3_000; round += 1) {
      const opened = await openFile(join(root, "work/file.txt"));
      seen.add(opened.type);
      if (opened.type !== "file") continue;
      using handle = opened.handle;
      expect(readFileSync(handle.descriptor, "utf8")).toBe("work");
    }
    expect(seen).toContain("file");
  });

  test("while a file is written does not lead it elsewhere", async () => {
    const root = createFolders();
    const swap = async (): Promise<boolean> => {
      renameSync(join(root, "work"), join(root, "kept"));
      symlinkSync("secret", join(root, "work"));
      return true;
    };
    await writeAtomically(join(root, "work/file.txt"), Buffer.from("new"), {
      mode: 0o644,
      stillWanted: swap,
    });
    expect(readFileSync(join(root, "secret/file.txt"), "utf8")).toBe("secret");
    expect(readFileSync(join(root, "kept/file.txt"), "utf8")).toBe("new");
  });

  test("before a file is written refuses it", async () => {
    const root = createFolders();
    symlinkSync("secret", join(root, "link"));
    const written = writeAtomically(join(root, "link/new.txt"), Buffer.from("new"), {
      stillWanted: async () => true,
    });
    await expect(written).rejects.toThrow();
    expect(existsSync(join(root, "secret/new.txt"))).toBe(false);
  });
});
