import { expect, test } from "vitest";
import { createConversationFold } from "./conversation-fold.ts";

const edit = {
  type: "assistant",
  message: {
    id: "m",
    content: [
      {
        type: "tool_use",
        id: "t1",
        name: "Edit",
        input: { file_path: "a.ts", old_string: "b", new_string: "c" },
      },
    ],
  },
};

function changed(structuredPatch: unknown): unknown {
  const fold = createConversationFold({ isMain: true });
  fold.add(edit);
  fold.add({
    type: "user",
    message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "ok" }] },
    toolUseResult: { structuredPatch },
  });
  return [...Array(fold.count).keys()].map((at) => fold.entry(at)).find((entry) => entry?.type === "call");
}

test("an edit has the lines that its result lists as changed, with their numbers, and none of what cannot be one [STU-1]", () => {
  const hunk = { oldStart: 38, oldLines: 2, newStart: 38, newLines: 2, lines: [" a", "-b", "+c"] };
  expect(changed([hunk])).toMatchObject({
    edits: [{ file: "a.ts", before: "b", after: "c" }],
    hunks: [{ oldStart: 38, newStart: 38, lines: [" a", "-b", "+c"] }],
  });
  const long = { ...hunk, lines: Array.from({ length: 2001 }, () => "+x") };
  for (const odd of [undefined, [], "x", [{ lines: 3 }], [{ lines: [] }], [long]])
    expect(changed(odd)).not.toHaveProperty("hunks");
});
