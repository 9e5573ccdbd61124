import { describe, expect, it } from "vitest";
import { findSlashCommand, programCommands, readSlashCommand, skillCommands } from "./slash-commands.ts";

describe("commands with a slash", () => {
  it.each([
    ["/compact", { name: "compact", words: "" }],
    ["  /compact the tests \n", { name: "compact", words: "the tests" }],
    ["/tmp/file is broken", { name: "tmp/file", words: "is broken" }],
    ["compact", undefined],
    ["/", undefined],
  ])("%j is %j", (text, command) => {
    expect(readSlashCommand(text)).toEqual(command);
  });

  it("are found by their other names", () => {
    expect(["new", "exit", "sessions", "nothing"].map((name) => findSlashCommand(name)?.name)).toEqual([
      "clear",
      "quit",
      "resume",
      undefined,
    ]);
  });

  it("that programs have use for are few, beside skills that people may call", () => {
    expect(programCommands.map(({ name }) => name)).toEqual(["clear", "compact", "context", "cost"]);
    const skill = { name: "a", description: "b" };
    const skills = [
      { ...skill, userInvocable: true },
      { ...skill, userInvocable: false },
    ];
    expect(skillCommands(skills)).toEqual([skill]);
  });
});
