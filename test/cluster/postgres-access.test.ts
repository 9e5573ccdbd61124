import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPostgresStore } from "@retinue/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "@retinue/cluster/postgres/set-up-postgres.ts";
import { serveAgents } from "@retinue/cluster/serve-agents.ts";
import { startAgent, waitForEnd } from "@retinue/cluster/start-agent.ts";
import { beforeAll, describe, expect, inject, onTestFinished, test } from "vitest";
import { createTestDatabase, query } from "./test-database.ts";
import { setUpMs } from "./test-postgres.ts";
import { createTestProgram } from "./test-program.ts";

const postgres = inject("postgres");

describe.skipIf(postgres.missing !== "")(`access to PostgreSQL${postgres.missing}`, async () => {
  if (postgres.missing !== "") return;
  const { url } = await createTestDatabase(postgres, "access");
  const asRole = (role: string): string => url.replace("postgres@", `${role}@`);
  beforeAll(async () => {
    await query(url, "CREATE ROLE worker_a LOGIN; CREATE ROLE worker_b LOGIN");
    await setUpPostgres({ url, tenant: "a", role: "worker_a" });
    await setUpPostgres({ url, tenant: "b", role: "worker_b" });
  }, setUpMs);

  test("a role that owns nothing can run workers, and neither change records nor see another tenant [CLU-1]", async () => {
    const effects = await mkdtemp(join(tmpdir(), "effects-"));
    onTestFinished(() => rm(effects, { recursive: true, force: true }));
    await using store = await openPostgresStore({ url: asRole("worker_a"), tenant: "a" });
    await using _ = await serveAgents(store, createTestProgram(effects), { slots: 1 });
    await startAgent(store, { agent: "x", plan: { steps: 2 } });
    expect((await waitForEnd(store, "x", { timeoutMs: 50_000 }))?.status).toBe("completed");
    await using other = await openPostgresStore({ url: asRole("worker_b"), tenant: "b" });
    expect(await other.log.list("")).toEqual([]);
    await expect(openPostgresStore({ url: asRole("worker_b"), tenant: "a" })).rejects.toMatchObject({
      code: "store-forbidden",
    });
    const counted = await query(
      asRole("worker_b"),
      "SELECT count(*)::int AS n FROM retinue.log WHERE tenant = 'a'",
    );
    expect(counted).toEqual([{ n: 0 }]);
    const insertion =
      "INSERT INTO retinue.log (tenant, name, seq, append_id, record) VALUES ('a', 'run/x', 99, '', '0')";
    await expect(query(asRole("worker_b"), insertion)).rejects.toThrow("row-level security");
    for (const statement of [
      "UPDATE retinue.log SET record = '0'",
      "DELETE FROM retinue.log",
      "DROP TABLE retinue.log",
      "ALTER TABLE retinue.log DISABLE ROW LEVEL SECURITY",
      "INSERT INTO retinue.tenant_role VALUES ('worker_a', 'b')",
    ])
      await expect(query(asRole("worker_a"), statement)).rejects.toThrow(/permission denied|must be owner/);
  });

  test("the certificate of a server is verified, and an unverifiable one is refused [CLU-1]", async () => {
    const folder = await mkdtemp(join(tmpdir(), "certificates-"));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    const ca = join(folder, "server.crt");
    writeFileSync(ca, postgres.certificate);
    const local = url.replace("127.0.0.1", "localhost");
    await using store = await openPostgresStore({
      url: `${local}?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`,
      tenant: "a",
    });
    expect(await store.log.list("none")).toEqual([]);
    await using own = await openPostgresStore({
      url: `${url}?sslmode=verify-full`,
      tenant: "a",
      tls: { ca: postgres.certificate },
    });
    expect(await own.log.list("none")).toEqual([]);
    await expect(
      openPostgresStore({ url: `${url}?sslmode=verify-full`, outageMs: 500 }),
    ).rejects.toMatchObject({
      code: "store-insecure",
      message: expect.stringMatching(/is not accepted: self.signed certificate/),
    });
  });

  test("a database without tables, and an unreachable server, are reported in one sentence [CLU-1]", async () => {
    await expect(openPostgresStore({ url: url, schema: "elsewhere" })).rejects.toMatchObject({
      code: "store-not-set-up",
      advice: expect.stringContaining("retinue store setup"),
    });
    await expect(
      openPostgresStore({ url: "postgres://127.0.0.1:1/none", outageMs: 100 }),
    ).rejects.toMatchObject({ code: "store-unreachable" });
    await expect(openPostgresStore({ url: `${url}-missing` })).rejects.toMatchObject({
      code: "store-missing",
    });
    await expect(openPostgresStore({ url: asRole("stranger") })).rejects.toMatchObject({
      code: "store-forbidden",
    });
    await expect(setUpPostgres({ url, role: "stranger" })).rejects.toMatchObject({ code: "no-such-role" });
    await expect(setUpPostgres({ url: asRole("worker_a") })).rejects.toMatchObject({
      code: "store-forbidden",
    });
    await using store = await openPostgresStore({ url: asRole("worker_a"), tenant: "a" });
    await expect(store.engine.prune(0)).rejects.toMatchObject({
      code: "store-forbidden",
      message: expect.stringContaining("may not do this: permission denied"),
    });
  });

  test("a server without TLS is refused in one sentence where TLS is asked for [CLU-1]", async () => {
    // The answer of a server that has none.
    const server = createServer((socket) =>
      socket.on("error", () => undefined).once("data", () => socket.end("N")),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    const address = server.address();
    const port = typeof address === "object" ? address?.port : undefined;
    const target = `postgres://x@127.0.0.1:${port}/none?sslmode=require`;
    await expect(openPostgresStore({ url: target })).rejects.toMatchObject({
      code: "store-insecure",
      message: expect.stringContaining("offers no TLS"),
    });
  });
});
