import { describe, expect, it } from "vitest";
import { findHome, withHome } from "./find-home.ts";

const listed = () => "/home/ada";

describe("the home folder is never below the working folder by accident [PRM-11]", () => {
  it("an absolute HOME counts", () => {
    expect(findHome({ HOME: "/srv/ada" }, listed)).toBe("/srv/ada");
  });

  it.each(["", ".", "..", "rel/x", undefined])("with HOME %j the system's list of users decides", (HOME) => {
    expect(findHome({ HOME }, listed)).toBe("/home/ada");
    expect(withHome({ HOME, A: "1" }, "/home/ada")).toEqual({ HOME: "/home/ada", A: "1" });
  });

  it("where that names none, nothing is started", () => {
    expect(() => findHome({ HOME: "." }, () => "")).toThrow(
      expect.objectContaining({ code: "no-home", message: expect.stringContaining('HOME is "."') }),
    );
  });
});
