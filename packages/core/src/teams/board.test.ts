import { describe, expect, test } from "vitest";
import { type BoardTask, changeTask, claimableTasks, readBoardTask, releaseTasks } from "./board.ts";

const lead = { name: "team-lead", isLead: true };
const ada = { name: "ada", isLead: false };
const bob = { name: "bob", isLead: false };

function task(id: string, more: Partial<BoardTask> = {}): BoardTask {
  return {
    id,
    subject: `Task ${id}`,
    description: "",
    status: "pending",
    blocks: [],
    blockedBy: [],
    ...more,
  };
}
const board = (...tasks: readonly BoardTask[]) => new Map(tasks.map((one) => [one.id, one]));

describe("claiming a task", () => {
  test("makes the member its owner, and no other member can claim it then [TEA-4]", () => {
    const claimed = changeTask(board(task("1")), "1", { status: "in_progress" }, ada);
    expect(claimed).toMatchObject({ type: "changed", task: { owner: "ada", status: "in_progress" } });
    const held = board(task("1", { owner: "ada", status: "in_progress" }));
    expect(changeTask(held, "1", { status: "in_progress" }, bob)).toEqual({
      type: "refused",
      reason: "Task 1 belongs to ada.",
    });
    expect(changeTask(held, "1", { owner: "bob" }, bob)).toMatchObject({ type: "refused" });
  });

  test("waits for what blocks it, and completing that unblocks it [TEA-2]", () => {
    const waiting = board(task("1", { owner: "ada" }), task("2", { blockedBy: ["1"] }));
    expect(changeTask(waiting, "2", { status: "in_progress" }, bob)).toEqual({
      type: "refused",
      reason: "Task 2 is blocked by task 1.",
    });
    expect(claimableTasks(waiting)).toEqual([]);
    const done = changeTask(waiting, "1", { status: "completed" }, ada);
    expect(done).toMatchObject({ type: "changed", unblocked: [{ id: "2" }] });
  });

  test.each([
    ["a member cannot assign to others", { owner: "bob" }, ada, /Only the lead assigns/],
    ["there is no such task", { status: "completed" }, ada, /no task 9/, "9"],
  ] as const)("%s [TEA-4]", (_what, change, by, reason, id: string = "1") => {
    expect(changeTask(board(task("1")), id, change, by)).toMatchObject({
      type: "refused",
      reason: expect.stringMatching(reason),
    });
  });

  test("what is completed stays so for members; the lead reopens it [TEA-4]", () => {
    const done = board(task("1", { owner: "ada", status: "completed" }));
    expect(changeTask(done, "1", { status: "completed" }, ada)).toMatchObject({ type: "refused" });
    expect(changeTask(done, "1", { status: "in_progress" }, lead)).toMatchObject({ type: "refused" });
    expect(changeTask(done, "1", { status: "pending" }, lead)).toMatchObject({ type: "changed" });
  });

  test("the tasks of a member that is gone are free again, completed ones stay [TEA-4]", () => {
    const held = board(
      task("1", { owner: "ada", status: "in_progress" }),
      task("2", { owner: "ada", status: "completed" }),
      task("3", { owner: "bob", status: "in_progress" }),
    );
    expect(releaseTasks(held, "ada")).toEqual([task("1")]);
  });
});

describe("dependencies", () => {
  test("are kept at both ends, and loops are refused [TEA-2]", () => {
    const three = board(task("1"), task("2", { blockedBy: ["1"] }), task("3", { blockedBy: ["2"] }));
    expect(changeTask(three, "1", { addBlockedBy: ["3"] }, lead)).toMatchObject({
      type: "refused",
      reason: expect.stringMatching(/already waits/),
    });
    expect(changeTask(three, "1", { addBlocks: ["1"] }, lead)).toMatchObject({ type: "refused" });
    const added = changeTask(three, "3", { addBlockedBy: ["1"] }, lead);
    expect(added).toMatchObject({
      changed: [
        { id: "1", blocks: ["3"] },
        { id: "3", blockedBy: ["2", "1"] },
      ],
    });
  });

  test("a member cannot block the task of another [TEA-4]", () => {
    const two = board(task("1"), task("2", { owner: "bob" }));
    expect(changeTask(two, "1", { addBlocks: ["2"] }, ada)).toMatchObject({ type: "refused" });
  });

  test("vanish with a deleted task, which frees what waited for it [TEA-2]", () => {
    const two = board(task("1", { blocks: ["2"] }), task("2", { blockedBy: ["1"] }));
    expect(changeTask(two, "1", { status: "deleted" }, lead)).toMatchObject({
      deleted: true,
      changed: [{ id: "2", blockedBy: [] }],
      unblocked: [{ id: "2" }],
    });
  });
});

test.each([
  ["no object", 3, "expected an object"],
  ["another id", { id: "2", subject: "a", status: "pending" }, 'expected the id "1"'],
  ["a status no one knows", { id: "1", subject: "a", status: "done" }, /expected the status/],
] as const)("a file with %s is no task [TEA-2]", (_what, value, reason) => {
  expect(readBoardTask(value, "1")).toEqual(
    typeof reason === "string" ? reason : expect.stringMatching(reason),
  );
});
