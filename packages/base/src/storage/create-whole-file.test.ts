import { expect, it } from "vitest";
import { fileError } from "../foundation/file-error.ts";

it.each([
  ["ENOSPC", "disk-full", "the disk is full"],
  ["EDQUOT", "disk-full", "the disk is full"],
  ["EROFS", "read-only-disk", "read-only"],
  ["EACCES", "no-access", "no permission"],
  ["EPERM", "no-access", "no permission"],
  ["EISDIR", "not-a-file", "regular file"],
  ["ENOENT", "file-missing", "does not exist"],
  ["EFBIG", "file-too-large", "exceed the allowed size"],
  ["EMFILE", "too-many-open-files", "too many files"],
])("%s becomes the error %s, which names the file and says what to do", (errno, code, words) => {
  const error = Object.assign(new Error(`${errno}: low level text`), { code: errno });
  const failure = fileError("write to", "/some/file", error);
  expect(failure).toMatchObject({ code, cause: error });
  expect(failure.message).toContain("Could not write to /some/file");
  expect(failure.message).toContain(words);
  expect(failure.advice).toBeTruthy();
});

it("an unknown error keeps its own text", () => {
  expect(fileError("read", "/some/file", new Error("odd"))).toMatchObject({
    code: "file-error",
    message: "Could not read /some/file: odd.",
  });
});
