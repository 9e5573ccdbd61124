import { loadSessionInstructions } from "../../../context/load-session-instructions.ts";
import { placeText } from "../../../foundation/diagnostic.ts";
import { mayLoadHere } from "../../../runtime/may-load.ts";
import type { CliHost } from "../cli-host.ts";
import type { GatheredSession } from "../gather-session.ts";
import { countBySeverity, plural } from "../views/diagnostic-view.ts";
import type { Checkup } from "./doctor.ts";

/** What people wrote down for agents here, and the first thing that is wrong with it. */
export async function checkInstructions(
  { discovered, nameOf }: GatheredSession,
  { environment, platform }: CliHost,
): Promise<Checkup> {
  const name = "instructions";
  const variables = { ...environment, ...Object.fromEntries(discovered.settings.settings.env) };
  const { files, conditional, diagnostics } = await loadSessionInstructions(
    discovered,
    variables,
    mayLoadHere(discovered, platform),
  );
  const count = files.length + conditional.length;
  const read = count === 0 ? "No instruction files." : `${plural(count, "instruction file")} read.`;
  const counts = countBySeverity(diagnostics);
  const [first] = diagnostics.filter(({ severity }) => severity !== "note");
  if (first === undefined) return { name, state: "ok", text: read };
  const place = first.file === undefined ? "" : `${placeText(first, nameOf)}: `;
  const others = counts.error + counts.warning - 1;
  const more = others === 0 ? "" : ` (and ${plural(others, "more problem")})`;
  return {
    name,
    state: "warning",
    text: `${read} ${place}${first.message}${more}`,
    ...(first.advice === undefined ? {} : { advice: first.advice }),
  };
}
