import { expect, test } from "vitest";
import { statusLineSetting } from "./status-line.ts";

const statusLine = { type: "command", command: "date", padding: 2 } as const;
const none = new Map();

test("settings that switch hooks off switch the status line off [CLI-4]", () => {
  expect(statusLineSetting({ plain: { statusLine }, sources: none })).toEqual({
    command: "date",
    padding: 2,
  });
  expect(statusLineSetting({ plain: {}, sources: none })).toBeUndefined();
  for (const key of ["disableAllHooks", "allowManagedHooksOnly"] as const)
    expect(statusLineSetting({ plain: { statusLine, [key]: true }, sources: none })).toBeUndefined();
});
