import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPostgresStore } from "../../src/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "../../src/cluster/postgres/set-up-postgres.ts";
import { describeStoreContract } from "../../src/testing/store-contract.ts";
import { emptyStore } from "./empty-store.ts";
import { setUpMs, startTestPostgres, type TestPostgres, whyNoPostgres } from "./test-postgres.ts";

const reason = await whyNoPostgres();
const title = reason === undefined ? "the PostgreSQL store" : `the PostgreSQL store (skipped: ${reason})`;

describe.runIf(reason === undefined)(`${title} [CLU-1]`, () => {
  let server: TestPostgres;
  beforeAll(async () => {
    server = await startTestPostgres();
    await setUpPostgres({ url: server.url });
  }, setUpMs);
  afterAll(() => server?.stop());

  describeStoreContract(
    "the PostgreSQL store",
    async () => {
      await emptyStore(server.url);
      const { url } = server;
      let store = await openPostgresStore({ url });
      return {
        store,
        async reopen() {
          await store.close();
          store = await openPostgresStore({ url });
          return store;
        },
        dispose: () => store.close(),
      };
    },
    { describe, test, expect },
  );
});
