import { checkArgument, checks, checkTable } from "@retinue/base/foundation/check-arguments.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { SetUpOptions } from "./postgres/postgres-store-options.ts";

/** Makes or updates the tables of a PostgreSQL store. Safe to run again, and while workers run. */
export async function setUpStore(options: SetUpOptions): Promise<void> {
  const table = {
    url: checks.filled,
    schema: checks.filled,
    tenant: checks.filled,
    role: checks.filled,
    tls: checks.anything,
  };
  checkTable("setUpStore", table, options);
  checkArgument("The option url of setUpStore()", checks.filled, options.url);
  if (!/^postgres(ql)?:/.test(options.url))
    throw new RetinueError("invalid-store-url", "Only a PostgreSQL store has to be set up.", {
      advice: "Write postgres://user@host:5432/database.",
    });
  const { setUpPostgres } = await import("./postgres/set-up-postgres.ts");
  await setUpPostgres(options);
}
