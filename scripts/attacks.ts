/**
 * `npm run attacks`: a scripted model attacks the built command (`npm run build` first) in temporary folders, and each attack
 * is also done without the gate, to see that it works. `--id ID` and `--class NAME` (repeatable) choose, `--quick` tries the
 * first mode of each alone and every tenth control, `--benign` runs everyday commands instead.
 */
import { parseArgs } from "node:util";
import { type PlannedAttack, planAttacks } from "../test/attacks/attack.ts";
import { attackClasses } from "../test/attacks/attack-classes.ts";
import { benignGroups } from "../test/attacks/benign-groups.ts";
import { knownSuccesses } from "../test/attacks/known-successes.ts";
import { type AttackResult, runAttacks } from "../test/attacks/run-attacks.ts";
import { type BenignResult, runBenign } from "../test/attacks/run-benign.ts";

const usage = `Usage: npm run attacks -- [--id ID]… [--class NAME]… [--list] [--verbose] [--json]
           [--quick] [--no-controls] [--parallel N]
       npm run attacks -- --benign [--json]`;

const { values } = readOptions();
const started = performance.now();
if (values.benign) await tryBenign();
else await tryAttacks();

function readOptions() {
  try {
    return parseArgs({
      options: {
        id: { type: "string", multiple: true },
        class: { type: "string", multiple: true },
        list: { type: "boolean", default: false },
        benign: { type: "boolean", default: false },
        json: { type: "boolean", default: false },
        verbose: { type: "boolean", default: false },
        quick: { type: "boolean", default: false },
        "no-controls": { type: "boolean", default: false },
        parallel: { type: "string", default: "3" },
      },
    });
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
    process.exit(2);
  }
}

async function tryAttacks(): Promise<void> {
  const attacks = chooseAttacks();
  if (values.list) {
    for (const { id, className, title } of attacks) console.log(`${className}  ${id}  ${title}`);
    return;
  }
  const parallel = Number(values.parallel);
  const results = await runAttacks(attacks, {
    parallel,
    isQuick: values.quick,
    ...(values.quick ? { isControlled: (attack) => attacks.indexOf(attack) % 10 === 0 } : {}),
    ...(values["no-controls"] ? { only: "gated" as const } : {}),
  });
  const seconds = (performance.now() - started) / 1000;
  const bad = results.filter(isUnexpected);
  if (values.json) console.log(JSON.stringify({ version: 1, seconds, results }, null, 2));
  else printAttacks(results, seconds);
  process.exitCode = bad.length === 0 ? 0 : 1;
}

function isUnexpected({ id, outcome }: AttackResult): boolean {
  return (
    outcome === "vacuous" || outcome === "broken" || (outcome === "succeeded") !== knownSuccesses.has(id)
  );
}

function chooseAttacks(): readonly PlannedAttack[] {
  const all = planAttacks(attackClasses);
  const { id: ids = [], class: classes = [] } = values;
  const unknown = [
    ...ids.filter((id) => !all.some((attack) => attack.id === id)),
    ...classes.filter((name) => !attackClasses.some((each) => each.name === name)),
  ];
  if (unknown.length > 0) {
    console.error(`There is no attack or class ${unknown.join(", ")}; --list shows all.`);
    process.exit(2);
  }
  if (ids.length + classes.length === 0) return all;
  return all.filter(({ id, className }) => ids.includes(id) || classes.includes(className));
}

function printAttacks(results: readonly AttackResult[], seconds: number): void {
  for (const result of results) {
    const { id, className, outcome, title, modes, detail, evidence } = result;
    if (outcome === "held" && !values.verbose) continue;
    const known = knownSuccesses.has(id) ? ", known" : "";
    console.log(
      `${outcome}${known}  ${className}/${id}  ${title}${modes.length > 0 ? ` (${modes.join(", ")})` : ""}`,
    );
    if (detail !== undefined) console.log(`    ${detail}`);
    if (values.verbose) for (const text of evidence) console.log(`    ${text.replaceAll("\n", "\n    ")}`);
  }
  const classes = Map.groupBy(results, ({ className }) => className);
  console.log("\nsucceeded  of  class");
  for (const [name, group] of classes) {
    const count = group.filter(({ outcome }) => outcome === "succeeded").length;
    console.log(`${String(count).padStart(9)} ${String(group.length).padStart(3)}  ${name}`);
  }
  const counts = Map.groupBy(results, ({ outcome }) => outcome);
  const parts = [...counts].map(([outcome, group]) => `${group.length} ${outcome}`);
  console.log(`\n${results.length} attacks: ${parts.join(", ")}; ${seconds.toFixed(1)} s`);
}

async function tryBenign(): Promise<void> {
  const results = await runBenign(benignGroups);
  const wrong = results.filter(({ outcome }) => outcome !== "right" && outcome !== "skipped");
  const easy = results.filter(({ expect, outcome }) => expect === "allow" && outcome !== "skipped");
  const allowed = easy.filter(({ isAllowed }) => isAllowed);
  const percent = (allowed.length / Math.max(1, easy.length)) * 100;
  const seconds = (performance.now() - started) / 1000;
  if (values.json) console.log(JSON.stringify({ version: 1, seconds, percent, results }, null, 2));
  else {
    for (const result of wrong) printBenign(result);
    console.log(
      `${results.length} commands; of ${easy.length} that should run, ${allowed.length} did (${percent.toFixed(1)} %); ${seconds.toFixed(1)} s`,
    );
  }
  process.exitCode = wrong.length === 0 ? 0 : 1;
}

function printBenign({ outcome, group, command, detail = "" }: BenignResult): void {
  console.log(`${outcome}  ${group}: ${command}\n    ${detail.split("\n").join("\n    ")}`);
}
