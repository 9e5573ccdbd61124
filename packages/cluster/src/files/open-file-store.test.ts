import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { describeStoreContract } from "@retinue/testing/describe-store-contract.ts";
import { describe, expect, test } from "vitest";
import { openStore, storeFolder } from "../open-store.ts";
import { openFileStore } from "./open-file-store.ts";

describe("[CLU-1] the file store", () => {
  describeStoreContract(
    "the file store",
    async () => {
      const folder = await mkdtemp(join(tmpdir(), "file-store-"));
      let store = await openFileStore(folder);
      return {
        store,
        async reopen() {
          await store.close();
          store = await openFileStore(folder);
          return store;
        },
        async dispose() {
          await store.close();
          await rm(folder, { recursive: true, force: true });
        },
      };
    },
    { describe, test, expect },
  );
});

describe("the address of a file store [CLU-1]", () => {
  test.each([
    "file:",
    "file://",
    "file:///",
    "file:////",
    "file:///.",
    "file://localhost/",
    "file://relative",
    "file:relative",
    "file:///a%2Fb",
    "file:///a?b",
    "file:///a#b",
  ])("%s names no folder and is refused in a sentence", (address) => {
    expect(() => storeFolder(address)).toThrow(`The address "${address}" names no folder for a store.`);
  });

  test("is refused before anything is opened, and otherwise is the folder", async () => {
    await expect(openStore("file://relative")).rejects.toMatchObject({ code: "invalid-store-url" });
    const folder = join(tmpdir(), "a b#c?d");
    expect(storeFolder(pathToFileURL(folder).href)).toBe(folder);
  });
});
