import { describe, expect, it } from "vitest";
import { isWiderMode, parseModeLoosely } from "./permission-policy.ts";

describe("comparing permission modes", () => {
  it.each([
    ["plan", "plan"],
    ["Plan", "plan"],
    ["accept-edits", "acceptEdits"],
    ["DONTASK", "dontAsk"],
    ["manual", "default"],
    ["read-only", undefined],
    ["", undefined],
  ])("reads %j as %s", (text, mode) => {
    expect(parseModeLoosely(text)).toBe(mode);
  });

  it("knows which of two is wider", () => {
    expect(isWiderMode("acceptEdits", "plan")).toBe(true);
    expect(isWiderMode("plan", "acceptEdits")).toBe(false);
    expect(isWiderMode("default", "default")).toBe(false);
  });
});
