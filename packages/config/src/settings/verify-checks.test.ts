import { describe, expect, test } from "vitest";
import { readVerifyChecks } from "./verify-checks.ts";

describe("[VRF-1] what people write as checks", () => {
  test.each([
    ["npm test", { checks: [{ run: "npm test" }] }],
    [["npm test", " make lint "], { checks: [{ run: "npm test" }, { run: "make lint" }] }],
    [
      [{ run: "a", timeout: 5, retries: 1 }, { run: "b", retries: 3 }, "c"],
      { checks: [{ run: "a", timeoutSeconds: 5 }, { run: "b" }, { run: "c" }], retries: 3 },
    ],
    [
      { run: "a", retries: 0 },
      { checks: [{ run: "a" }], retries: 0 },
    ],
  ])("reads %j", (value, checks) => {
    expect(readVerifyChecks(value)).toEqual({ type: "checks", checks });
  });

  test.each([
    ["", "a command is empty"],
    [[], "it names no command"],
    [7, "an entry is neither a command nor `{ run: … }`"],
    [["npm test", null], "an entry is neither a command nor `{ run: … }`"],
    [{ command: "npm test" }, 'an entry has the unknown key "command"'],
    [{ run: " " }, "an entry has no command in `run`"],
    [{ run: "a", timeout: 0 }, "`timeout` is not a number of seconds from 1 to 600"],
    [{ run: "a", timeout: "60" }, "`timeout` is not a number of seconds from 1 to 600"],
    [{ run: "a", retries: 1.5 }, "`retries` is not a whole number from 0 to 10"],
    [Array.from({ length: 21 }, () => "a"), "it names more than 20 commands"],
  ])("does not guess %j: a dropped check would pass", (value, reason) => {
    expect(readVerifyChecks(value)).toEqual({ type: "unreadable", reason });
  });
});
