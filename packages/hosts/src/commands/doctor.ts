import { plural } from "@retinue/base/foundation/diagnostic.ts";
import type { Checkup } from "@retinue/core/kernel/project/project-doctor.ts";
import type { CliHost } from "../shared/cli-host.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { openProject } from "../shared/open-project.ts";
import { createPaint, type Paint } from "../shared/paint.ts";
import { pad, stripControlCharacters, wrap } from "../shared/strip-control-characters.ts";
import { untilInterrupted } from "./mcp/mcp-list.ts";

/** `retinue doctor`: looks at everything agents need, changes nothing, and says what to do. */
export async function doctor(context: CommandContext, options: { readonly json?: boolean }): Promise<number> {
  const { host } = context;
  const { doctor: project, nameOf, option } = openProject(context, { toleratesBrokenFiles: true });
  const diagnostics = option?.diagnostics ?? [];
  const checkups: readonly Checkup[] = [
    checkProgram(host),
    ...(await untilInterrupted(context, (signal) => project.check({ nameOf, diagnostics, signal }))),
  ];
  const count = (state: Checkup["state"]): number => checkups.filter((one) => one.state === state).length;
  const summary = { errors: count("error"), warnings: count("warning") };
  if (options.json === true) {
    host.stdout.write(`${JSON.stringify({ version: 1, checks: checkups, summary }, undefined, 2)}\n`);
  } else {
    const paint = createPaint(host.stdout.isColourAllowed);
    const width = Math.min(host.stdout.columns ?? 100, 100);
    host.stdout.write(checkups.map((one) => render(one, paint, width)).join(""));
    host.stdout.write(`\n${closingLine(summary, paint)}\n`);
  }
  return summary.errors > 0 ? 1 : 0;
}

function render({ name, state, text, advice }: Checkup, paint: Paint, width: number): string {
  const styles = { ok: paint.good, note: paint.note, warning: paint.warning, error: paint.error };
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
  { errors, warnings }: { readonly errors: number; readonly warnings: number },
  paint: Paint,
): string {
  if (errors > 0) return paint.error(`${plural(errors, "error")} and ${plural(warnings, "warning")}.`);
  return warnings > 0
    ? paint.warning(`${plural(warnings, "warning")}, nothing broken.`)
    : paint.good("All is well.");
}

function checkProgram({ nodeVersion, platform, version }: CliHost): Checkup {
  return { name: "program", state: "ok", text: `retinue ${version} on Node ${nodeVersion}, ${platform}.` };
}
