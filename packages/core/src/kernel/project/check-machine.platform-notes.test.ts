import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createRuntime } from "../create-runtime.ts";
import { platformNotes } from "./check-machine.ts";

describe("what only Linux has is reported on other systems [PUB-3]", () => {
  test.each<[NodeJS.Platform, readonly RegExp[]]>([
    ["darwin", [/not isolated on macOS/, /left their process group/]],
    [
      "win32",
      [
        /not isolated on Windows/,
        /left their process group/,
        /Git for Windows/,
        /is killed/,
        /rights/,
        /not been tested/,
      ],
    ],
    ["freebsd", [/not isolated on freebsd/, /left their process group/, /freebsd is unknown/]],
  ])("on %s", (platform, expected) => {
    const notes = platformNotes(platform);
    expect(notes).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
  });

  test("on Linux there is nothing to say", () => {
    expect(platformNotes("linux")).toEqual([]);
  });

  test.each<[NodeJS.Platform, boolean]>([
    ["linux", false],
    ["darwin", true],
  ])("the doctor of %s has a note: %s [CLI-5]", async (platform, isThere) => {
    await using runtime = createRuntime({ platform, env: { PATH: process.env["PATH"] }, settingSources: [] });
    const checkups = await runtime.doctor.check();
    expect(checkups.some(({ name, state }) => name === "platform" && state === "note")).toBe(isThere);
  });

  test("the page has every sentence", () => {
    const page = readFileSync("docs/platforms.md", "utf8");
    for (const name of ["Linux", "macOS", "Windows"]) expect(page).toContain(name);
    for (const word of [
      "CLAUDE_CODE_GIT_BASH_PATH",
      "isolat",
      "left their process group",
      "managed settings",
    ])
      expect(page).toContain(word);
  });
});
