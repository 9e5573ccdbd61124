import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { startAgent, waitForEnd } from "../../src/cluster/agent-client.ts";
import { openPostgresStore } from "../../src/cluster/postgres/open-postgres-store.ts";
import { setUpPostgres } from "../../src/cluster/postgres/set-up-postgres.ts";
import { serveAgents } from "../../src/cluster/serve-agents.ts";
import {
  createCertificate,
  setUpMs,
  startTestPostgres,
  type TestPostgres,
  whyNoPostgres,
} from "./test-postgres.ts";
import { createTestProgram } from "./test-program.ts";

const reason = await whyNoPostgres();

describe.runIf(reason === undefined)(`access to PostgreSQL${reason ? ` (skipped: ${reason})` : ""}`, () => {
  let server: TestPostgres;
  let certificates: string;
  const asRole = (role: string): string => server.url.replace("postgres@", `${role}@`);
  beforeAll(async () => {
    certificates = await mkdtemp(join(tmpdir(), "certificates-"));
    const { key, cert } = await createCertificate(certificates);
    server = await startTestPostgres({
      settings: ["ssl=on", `ssl_key_file=${key}`, `ssl_cert_file=${cert}`],
    });
    await query(server.url, "CREATE ROLE worker_a LOGIN; CREATE ROLE worker_b LOGIN");
    await setUpPostgres({ url: server.url, tenant: "a", role: "worker_a" });
    await setUpPostgres({ url: server.url, tenant: "b", role: "worker_b" });
  }, setUpMs);
  afterAll(async () => {
    await server?.stop();
    await rm(certificates, { recursive: true, force: true });
  });

  test("a role that owns nothing can run workers, and neither change records nor see another tenant [CLU-1]", async () => {
    const effects = await mkdtemp(join(tmpdir(), "effects-"));
    onTestFinished(() => rm(effects, { recursive: true, force: true }));
    await using store = await openPostgresStore({ url: asRole("worker_a"), tenant: "a" });
    await using _ = await serveAgents(store, createTestProgram(effects), { slots: 1 });
    await startAgent(store, { agent: "x", plan: { steps: 2 } });
    expect((await waitForEnd(store, "x", { timeoutMs: 10_000 }))?.status).toBe("completed");
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
      "SELECT * FROM retinue_dbos_b.workflow_status",
    ])
      await expect(query(asRole("worker_a"), statement)).rejects.toThrow(/permission denied|must be owner/);
  });

  test("the certificate of a server is verified, and one that nobody vouches for is refused [CLU-1]", async () => {
    const ca = join(certificates, "server.crt");
    const local = server.url.replace("127.0.0.1", "localhost");
    await using store = await openPostgresStore({
      url: `${local}?sslmode=verify-full&sslrootcert=${encodeURIComponent(ca)}`,
      tenant: "a",
    });
    expect(await store.log.list("none")).toEqual([]);
    await using own = await openPostgresStore({
      url: `${server.url}?sslmode=verify-full`,
      tenant: "a",
      tls: { ca: readFileSync(ca, "utf8") },
    });
    expect(await own.log.list("none")).toEqual([]);
    await expect(
      openPostgresStore({ url: `${server.url}?sslmode=verify-full`, outageMs: 500 }),
    ).rejects.toThrow(/self.signed certificate/);
  });

  test("a database without tables, and a server that is away, are told in a sentence [CLU-1]", async () => {
    await expect(openPostgresStore({ url: server.url, schema: "elsewhere" })).rejects.toMatchObject({
      code: "store-not-set-up",
      advice: expect.stringContaining("retinue store setup"),
    });
    await expect(
      openPostgresStore({ url: "postgres://127.0.0.1:1/none", outageMs: 100 }),
    ).rejects.toMatchObject({ code: "store-unreachable" });
  });
});

async function query(url: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
