import { readFileSync } from "node:fs";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "@retinue/cluster/postgres/set-up-postgres.ts";
import { becomes, noting } from "@retinue/testing/becomes.ts";
import { expect, inject, test } from "vitest";
import { createTestDatabase, query } from "./test-database.ts";

const postgres = inject("postgres");

test.skipIf(postgres.missing !== "")(
  `a store of layout 2 keeps its agents, their needs, delayed wakes, logs and roles${postgres.missing} [CLU-1]`,
  async () => {
    const { url } = await createTestDatabase(postgres, "upgrade");
    const fixture = readFileSync(new URL("fixtures/store-layout-2.sql", import.meta.url), "utf8");
    await query(url, `DROP SCHEMA retinue CASCADE; CREATE ROLE layout_2_worker LOGIN; ${fixture}`);
    await expect(openPostgresStore({ url })).rejects.toMatchObject({ code: "store-outdated" });
    await expect(setUpPostgres({ url })).rejects.toMatchObject({
      code: "store-in-use",
      message: expect.stringContaining("host-1-aabbccdd"),
    });
    await query(url, "UPDATE retinue.worker SET beat = beat - interval '1 minute'");
    await setUpPostgres({ url });
    await setUpPostgres({ url });

    await using store = await openPostgresStore({ url: url.replace("postgres@", "layout_2_worker@") });
    expect(await store.log.read("run/plain")).toMatchObject([{ seq: 1, record: { type: "planned" } }]);
    const ran: string[] = [];
    const poor = await store.engine.serve(noting(ran), { slots: 1 });
    // One's delay was over while no worker ran; the other's is not over.
    await becomes(() => ran.length === 3);
    expect([...ran].sort()).toEqual(["later", "owned", "plain"]);
    expect(await store.engine.status("queued")).toEqual({ state: "queued", missing: ["git", "queue:gpu"] });
    await poor.drain();
    await using _ = await store.engine.serve(noting(ran), { slots: 1, has: ["git", "queue:gpu"] });
    await becomes(() => ran.length === 4);
    expect(ran.at(-1)).toBe("queued");
    const left = `SELECT (SELECT string_agg(agent || ' ' || activation_id, ',') FROM retinue.timer) AS timers,
      to_regclass('retinue_dbos.workflow_status') AS scheduler`;
    expect(await query(url, left)).toEqual([{ timers: "distant timer/9", scheduler: null }]);
  },
);
