import { fileError } from "@retinue/base/foundation/file-error.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import { ModelError } from "@retinue/core/models/model-error.ts";
import { expect, test } from "vitest";
import { classifyCode, classifyFailure } from "./classify-failure.ts";
import { isTransient } from "./postgres/database.ts";
import { logConflict } from "./store.ts";

const failure = (code: string) => Object.assign(new Error(`failed with ${code}`), { code });
const ofServer = (code: string) => Object.assign(failure(code), { severity: "ERROR" });
const wrapped = (cause: unknown) => new Error("could not continue", { cause });

test.each([
  ["a plan that cannot be read", new RetinueError("unreadable-plan", "no"), "agent"],
  ["a limit", new RetinueError("max_budget", "no"), "agent"],
  ["a model that refuses the request", new ModelError("invalid-request", "no"), "agent"],
  ["a key that does not work here", new ModelError("unauthorized", "no"), "unknown"],
  ["a provider that cannot be reached from here", new ModelError("connection-failed", "no"), "unknown"],
  [
    "too many descriptors for another connection",
    new ModelError("connection-failed", "no", { cause: failure("EMFILE") }),
    "host",
  ],
  ["another owner", logConflict("run/a", 3), "conflict"],
  ["another owner behind an error", wrapped(logConflict("run/a", 3)), "conflict"],
  ["a store that is away", new RetinueError("store-unreachable", "no"), "store"],
  ["an account that was taken away", ofServer("42501"), "store"],
  ["a value that the server refuses", ofServer("22P05"), "unknown"],
  ["a full disk", failure("ENOSPC"), "host"],
  ["a full disk in a sentence", fileError("write", "/home/a", failure("ENOSPC")), "host"],
  ["a missing right", failure("EPERM"), "host"],
  ["several errors with a full disk", new AggregateError([failure("X"), failure("EDQUOT")]), "host"],
  ["a mistake in the code", new TypeError("undefined is not a function"), "unknown"],
  ["an error with a code that nobody knows", new RetinueError("of-next-year", "no"), "unknown"],
  ["no error at all", "just a text", "unknown"],
  ["nothing", undefined, "unknown"],
])("%s is a fault of its own kind [CLU-7]", (_, error, fault) => {
  expect(classifyFailure(error)).toBe(fault);
});

test("the ending of a run is judged by its reason alone [CLU-7]", () => {
  const codes = ["refusal", "disk-full", "store-unreachable", "log-conflict", "error"];
  expect(codes.map(classifyCode)).toEqual(["agent", "host", "store", "conflict", "unknown"]);
});

test.each(
  "08006 40001 40P01 53000 53100 53200 53300 53400 55P03 57014 57P01 57P03 58030 XX000 25006 25P03".split(
    " ",
  ),
)("the state %s of the server passes, so that the statement is tried again [CLU-7]", (state) => {
  expect([isTransient(ofServer(state)), classifyFailure(ofServer(state))]).toEqual([true, "store"]);
});

test.each(["23505", "22001", "42601", "42501", "28P01"])("the state %s does not pass [CLU-7]", (state) => {
  expect(isTransient(ofServer(state))).toBe(false);
});
