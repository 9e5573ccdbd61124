import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";

/** The versions whose internals this adapter was tested with. */
export const dbosVersion = "5.3.0";

type Pg = typeof import("pg");

/** The PostgreSQL client, which is only there for those who use such a store. */
export async function loadPg(): Promise<Pg["default"]> {
  try {
    return (await import("pg")).default;
  } catch (error) {
    throw missing("pg", error);
  }
}

/** What the engine uses of DBOS; `pollQueue` and recovery are internals, therefore the version is checked. */
export async function loadDbos(): Promise<Dbos> {
  try {
    const [{ DBOS, DBOSClient }, { DBOSExecutor }, queues, systemDatabase, { globalParams }] =
      await Promise.all([
        import("@dbos-inc/dbos-sdk"),
        import("@dbos-inc/dbos-sdk/internal/dbos-executor"),
        import("@dbos-inc/dbos-sdk/internal/wfqueue"),
        import("@dbos-inc/dbos-sdk/internal/system_database"),
        import("@dbos-inc/dbos-sdk/internal/utils"),
      ]);
    if (globalParams.dbosVersion !== dbosVersion) throw wrongVersion(globalParams.dbosVersion);
    return { DBOS, DBOSClient, DBOSExecutor, queues, systemDatabase };
  } catch (error) {
    if (error instanceof RetinueError) throw error;
    throw missing("@dbos-inc/dbos-sdk", error);
  }
}

type Sdk = typeof import("@dbos-inc/dbos-sdk");

export interface Dbos extends Pick<Sdk, "DBOS" | "DBOSClient"> {
  readonly DBOSExecutor: typeof import("@dbos-inc/dbos-sdk/internal/dbos-executor")["DBOSExecutor"];
  readonly queues: typeof import("@dbos-inc/dbos-sdk/internal/wfqueue");
  readonly systemDatabase: typeof import("@dbos-inc/dbos-sdk/internal/system_database");
}

function missing(name: string, cause: unknown): RetinueError {
  return new RetinueError(
    "package-missing",
    `A PostgreSQL store needs the package ${name}, which could not be loaded.`,
    {
      advice: `Run: npm install pg @dbos-inc/dbos-sdk@${dbosVersion}`,
      cause,
    },
  );
}

function wrongVersion(found: string): RetinueError {
  return new RetinueError(
    "package-version",
    `A PostgreSQL store needs @dbos-inc/dbos-sdk ${dbosVersion}, but ${found} is installed.`,
    { advice: `Run: npm install @dbos-inc/dbos-sdk@${dbosVersion}` },
  );
}
