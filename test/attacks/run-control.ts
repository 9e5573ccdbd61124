import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { PlannedAttack } from "./attack.ts";
import { fillTokens, type Place } from "./fixture.ts";
import type { Said } from "./observe-effect.ts";
import { runBash } from "./run-bash.ts";

/** Does without any gate what the attack would do: its commands in bash, or the script of its control. */
export async function runControl(attack: PlannedAttack, place: Place, web: string): Promise<Said> {
  const { id, calls, control } = attack;
  const fill = (text: string) => fillTokens(text, id, place, web);
  if (control.by === "script") return saidOf((await runBash(fill(control.script), place)).text);
  const folderFile = join(place.root, `folder-${id}`);
  let folder = place.project;
  const results: string[] = [];
  for (const [at, call] of calls.entries()) {
    if (typeof call !== "string") throw new Error(`${id}: bash cannot do a call of ${call.tool}`);
    const isLast = at === calls.length - 1;
    // The tool keeps the folder between commands, so the control does.
    const keep = isLast ? "" : `trap 'pwd -P > ${folderFile}' EXIT\n`;
    results.push((await runBash(keep + fill(call), place, folder)).text);
    if (!isLast) folder = (await readFile(folderFile, "utf8")).trim();
  }
  return saidOf(...results);
}

function saidOf(...results: readonly string[]): Said {
  const text = results.join("\n");
  return { text, everything: text, results, printed: text };
}
