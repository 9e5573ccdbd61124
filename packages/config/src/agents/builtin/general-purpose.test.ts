import { expect, it } from "vitest";
import { toolsPhrase } from "../describe-agents.ts";
import { generalPurpose } from "./general-purpose.ts";

it("general-purpose has all tools and the parent's model [BLT-1]", () => {
  expect(generalPurpose.name).toBe("general-purpose");
  expect(Object.keys(generalPurpose).sort()).toEqual(["description", "name", "prompt", "source", "written"]);
  expect(toolsPhrase(generalPurpose)).toBe("All tools");
});
