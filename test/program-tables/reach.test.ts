import { it } from "vitest";
import { checkReach } from "./check-reach.ts";
import { findProgram, openLaboratory } from "./laboratory.ts";
import { fileSetup } from "./row-samples.ts";
import { sceneSetup } from "./scenes.ts";
import { programTables, rowsOf } from "./table-rows.ts";
it("x", async () => {
  const options = { setup: fileSetup + sceneSetup, links: { fd: "fdfind" } };
  const readers = await openLaboratory(options);
  const labs = await Promise.all([openLaboratory({ ...options, resets: true }), openLaboratory({ ...options, resets: true })]);
  const present = [];
  for (const t of programTables) if (await findProgram(t.command[0] === "fd" ? "fdfind" : t.command[0]!)) present.push(t);
  for (const [which, group] of [[true, [readers]], [false, labs]] as const) {
    const t0 = Date.now();
    const rows = present.filter(({ readOnly, name }) => readOnly === which && (!process.env.ONLY || process.env.ONLY.split(",").includes(name))).flatMap(rowsOf);
    const { calls, problems } = await checkReach(rows, group);
    console.log(which, calls, Date.now() - t0, labs[0]!.traces);
    for (const [row, list] of problems) console.log(row.table.name, row.option + row.signs, "\n   " + [...new Set(list)].slice(0, 4).join("\n   "));
  }
  await Promise.all([readers, ...labs].map((l) => l.close()));
}, 200_000);
