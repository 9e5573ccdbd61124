import { describe, expect, it } from "vitest";
import { statuslineSetup } from "./statusline-setup.ts";

describe("statusline-setup [BLT-5]", () => {
  it("runs on sonnet with Read and Edit, in orange", () => {
    expect(statuslineSetup).toMatchObject({
      name: "statusline-setup",
      model: "sonnet",
      tools: ["Read", "Edit"],
      color: "orange",
    });
  });

  it.each([
    "\\u",
    "\\h",
    "\\w",
    "\\W",
    "\\$",
    "\\t",
    "\\d",
    "\\@",
    "\\n",
    "%n",
    "%m",
    "%~",
    "%#",
    "%F{red}",
  ])("knows what to do with the prompt escape %s", (sequence) => {
    expect(statuslineSetup.prompt).toContain(sequence);
  });

  it("shows an example that is valid JSON and a command that reads stdin", () => {
    const line = statuslineSetup.prompt.split("\n").find((text) => text.startsWith('{"statusLine"'));
    const example: unknown = JSON.parse(line ?? "");
    expect(example).toEqual({
      statusLine: {
        type: "command",
        command: expect.stringMatching(/^input=\$\(cat\); .*jq -r '.*printf '%s@%s:%s' /),
      },
    });
  });

  it.each([
    "starship",
    "symbolic link",
    "every other key",
    "workspace.current_dir",
    "cost.total_cost_usd",
  ])("is reported about: %s", (topic) => {
    expect(statuslineSetup.prompt).toContain(topic);
  });
});
