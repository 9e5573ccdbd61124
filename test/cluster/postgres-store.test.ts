import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { describeStoreContract } from "@retinue/testing/describe-store-contract.ts";
import { describe, expect, inject, test } from "vitest";
import { createTestDatabase } from "./test-database.ts";

const postgres = inject("postgres");

describe.skipIf(postgres.missing !== "")(`the PostgreSQL store${postgres.missing} [CLU-1]`, async () => {
  if (postgres.missing !== "") return;
  const { url, empty } = await createTestDatabase(postgres, "contract");

  describeStoreContract(
    "the PostgreSQL store",
    async () => {
      await empty();
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
