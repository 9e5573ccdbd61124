import { checkMcp } from "../check-mcp.ts";
import { gatherMcpOf } from "../gather-mcp.ts";
import { type GatheredSession, gatherSession } from "../gather-session.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint, type Paint } from "../views/colour.ts";
import { plural } from "../views/diagnostic-view.ts";
import { stripControlCharacters, pad, wrap } from "../views/text-width.ts";
import {
  checkDefinitions,
  checkMcpServers,
  checkPlugins,
  checkSettings,
  checkTrust,
} from "./doctor-files.ts";
import { checkInstructions } from "./doctor-instructions.ts";
import { checkLocalModels } from "./doctor-local-models.ts";
import {
  checkConfigDirectory,
  checkGit,
  checkKeys,
  checkModels,
  checkNode,
  checkReadOnlySandbox,
  checkSandbox,
} from "./doctor-machine.ts";

/** One line of the doctor. A note tells something that is neither good nor bad. */
export interface Checkup {
  readonly name: string;
  readonly state: "ok" | "note" | "warning" | "problem";
  readonly text: string;
  readonly advice?: string;
}

/** `retinue doctor`: looks at everything agents need, changes nothing, and says what to do. */
export async function doctor(context: CommandContext, options: { readonly json?: boolean }): Promise<number> {
  const { host } = context;
  const session = await gatherSession(context, { toleratesBrokenFiles: true });
  const checkups: Checkup[] = [
    checkNode(host),
    checkConfigDirectory(session),
    ...checkSettings(session),
    checkTrust(session),
    checkDefinitions(session),
    await checkInstructions(session, host),
    ...checkPlugins(session),
    await checkServers(session, context),
    checkKeys(session, host),
    checkModels(session, host),
    ...(await checkLocalModels(session, host)),
    await checkGit(host),
    await checkSandbox(host, session),
    await checkReadOnlySandbox(host, session),
  ];
  const count = (state: Checkup["state"]): number => checkups.filter((one) => one.state === state).length;
  const summary = { diagnostics: count("problem"), warnings: count("warning") };
  if (options.json === true) {
    host.stdout.write(`${JSON.stringify({ version: 1, checks: checkups, summary }, undefined, 2)}\n`);
  } else {
    const paint = createPaint(host.stdout.isColourAllowed);
    const width = Math.min(host.stdout.columns ?? 100, 100);
    host.stdout.write(checkups.map((one) => render(one, paint, width)).join(""));
    host.stdout.write(`\n${closingLine(summary, paint)}\n`);
  }
  return summary.diagnostics > 0 ? 1 : 0;
}

async function checkServers(session: GatheredSession, context: CommandContext): Promise<Checkup> {
  const found = await gatherMcpOf(session, context);
  return checkMcpServers(found, await checkMcp(found, session, context));
}

function render({ name, state, text, advice }: Checkup, paint: Paint, width: number): string {
  const styles = { ok: paint.good, note: paint.note, warning: paint.warning, diagnostic: paint.error };
  const indent = " ".repeat(stateWidth + nameWidth);
  const [first = "", ...more] = wrap(stripControlCharacters(text), width - indent.length);
  const hints = (advice ?? "").split("\n").filter((line) => line !== "");
  const lines = [
    `${styles[state](pad(state, stateWidth))}${pad(name, nameWidth)}${first}`,
    ...more.map((line) => indent + line),
    ...hints.flatMap((hint) =>
      wrap(stripControlCharacters(hint), width - indent.length - 2).map(
        (line, index) => `${indent}${index === 0 ? paint.good("→") : " "} ${line}`,
      ),
    ),
  ];
  return `${lines.join("\n")}\n`;
}

const stateWidth = 9;
const nameWidth = 14;

function closingLine(
  { diagnostics, warnings }: { readonly diagnostics: number; readonly warnings: number },
  paint: Paint,
): string {
  if (diagnostics > 0) return paint.error(`${plural(diagnostics, "problem")} and ${plural(warnings, "warning")}.`);
  return warnings > 0
    ? paint.warning(`${plural(warnings, "warning")}, nothing broken.`)
    : paint.good("All is well.");
}
