import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { describeStoreContract } from "../../testing/describe-store-contract.ts";
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
