import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { checkRows, type Verdict } from "./check-rows.ts";
import { type Laboratory, openLaboratory } from "./laboratory.ts";
import { setup } from "./row-samples.ts";
import { gitTables, isHarmless, programTables, rowsOf, type TableRow } from "./table-rows.ts";

const tables = [...programTables, ...gitTables];
const links = { fd: "fdfind" };

describe("[PRM-9] every option of the tables, with the real program", () => {
  let probes: Laboratory;
  let uses: Laboratory;
  let verdicts: ReadonlyMap<TableRow, Verdict>;
  let changed: readonly string[];

  beforeAll(async () => {
    [probes, uses] = await Promise.all([openLaboratory({ setup, links }), openLaboratory({ setup, links })]);
    const before = await uses.look();
    verdicts = await checkRows(tables, { probes, uses });
    const after = await uses.look();
    changed = [...new Set([...before.keys(), ...after.keys()])].filter(
      (path) => before.get(path) !== after.get(path),
    );
  }, 60_000);
  afterAll(async () => {
    await Promise.all([probes.close(), uses.close()]);
  });

  it("x", () => {
    const skipped = [...verdicts].filter(([, v]) => v.skipped);
    console.log(verdicts.size, "skipped", skipped.length, "ran", [...verdicts].filter(([, v]) => v.ran).length, uses.traces);
    for (const [r, v] of skipped) if (!/there is no|not started/.test(v.skipped!)) console.log("SKIP", r.table.name, r.option + r.signs.replace(/[^:?]/g, ""));
    for (const [r, v] of verdicts) if (v.problems.length) console.log("PROBLEM", v.problems.join("\n   "));
    console.log(changed);
  });
});
