/** Measures agents on several workers over PostgreSQL, as one table: `node scripts/cluster-figures.ts [name…]`. */
import { type Figure, openServer, renderFigures } from "../bench/cluster/fleet-scene.ts";
import { measurements } from "../bench/cluster/measurements.ts";

const names = process.argv.slice(2);
const unknown = names.filter((name) => !measurements.has(name));
if (unknown.length > 0) {
  process.stderr.write(`Unknown: ${unknown.join(", ")}. There are ${[...measurements.keys()].join(", ")}.\n`);
  process.exitCode = 2;
} else {
  await using server = await openServer();
  const figures: Figure[] = [];
  for (const [name, measure] of measurements) {
    if (names.length > 0 && !names.includes(name)) continue;
    process.stderr.write(`${name} …\n`);
    figures.push(await measure(server));
  }
  process.stdout.write(renderFigures(figures));
  if (figures.some(({ isReached }) => !isReached)) process.exitCode = 1;
}
