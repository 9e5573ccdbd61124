import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setUpPostgres } from "@retinue/cluster/postgres/set-up-postgres.ts";
import type { TestProject } from "vitest/node";
import { createCertificate, startTestPostgres, whyNoPostgres } from "./test-postgres.ts";

/** The server that all test files share. */
export interface SharedPostgres {
  /** Of the superuser, for the database from which those of the test files are copied. */
  readonly url: string;
  /** The certificate of the server. */
  readonly certificate: string;
  /** Why there is no server, for the titles of tests that are skipped; empty where there is one. */
  readonly missing: string;
}

declare module "vitest" {
  interface ProvidedContext {
    postgres: SharedPostgres;
  }
}

/** Starts one server before the first test of this folder and ends it after the last. */
export default async function setup({ provide }: TestProject): Promise<(() => Promise<void>) | undefined> {
  const missing = await whyNoPostgres();
  if (missing !== undefined) {
    provide("postgres", { url: "", certificate: "", missing: ` (skipped: ${missing})` });
    return undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), "certificates-"));
  const { key, cert } = await createCertificate(folder);
  const settings = ["ssl=on", `ssl_key_file=${key}`, `ssl_cert_file=${cert}`];
  const server = await startTestPostgres({ settings });
  await setUpPostgres({ url: server.url });
  provide("postgres", { url: server.url, certificate: await readFile(cert, "utf8"), missing: "" });
  return async () => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
