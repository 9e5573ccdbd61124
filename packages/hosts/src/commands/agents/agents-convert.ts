import type { Diagnostic } from "@retinue/base/foundation/diagnostic.ts";
import type {
  ComparedAgent,
  ConvertedAgent,
  ConvertOptions,
} from "@retinue/core/kernel/project/portable/project-formats.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { misuse } from "../../shared/misuse.ts";
import { openProject } from "../../shared/open-project.ts";
import { createPaint, type Paint } from "../../shared/paint.ts";
import { stripControlCharacters } from "../../shared/strip-control-characters.ts";
import { groupByFile, renderDiagnostics } from "../views/render-diagnostics.ts";
import { diagnosticAsJson } from "./source-as-json.ts";

export interface ConversionOptions {
  readonly to?: string;
  readonly from?: string;
  readonly dryRun?: boolean;
  readonly allowWider?: boolean;
  readonly force?: boolean;
  readonly json?: boolean;
}

/** `retinue agents import`: files of other products become ours, or those of another product. */
export function agentsImport(
  context: CommandContext,
  source: string | undefined,
  options: ConversionOptions,
): Promise<number> {
  return convert(context, { ...given(source, options), to: options.to ?? "claude" }, options);
}

/** `retinue agents export FORMAT`, or `export PATH --to FORMAT`. */
export function agentsExport(
  context: CommandContext,
  target: string | undefined,
  options: ConversionOptions,
): Promise<number> {
  const to = options.to ?? target;
  if (to === undefined)
    throw misuse(
      "`retinue agents export` needs a format.",
      "Write, for example, `retinue agents export opencode`.",
    );
  const source = options.to === undefined ? "claude" : (target ?? "claude");
  return convert(context, { ...given(source, options), to }, options);
}

function given(
  source: string | undefined,
  { from, dryRun, allowWider, force }: ConversionOptions,
): Omit<ConvertOptions, "to"> {
  return {
    source,
    from,
    dryRun: dryRun === true,
    allowWider: allowWider === true,
    replaces: force === true,
  };
}

async function convert(
  context: CommandContext,
  request: ConvertOptions,
  { json }: ConversionOptions,
): Promise<number> {
  const { stdout } = context.host;
  const { formats, nameOf } = openProject(context);
  const { agents, diagnostics } = await formats.convert(request);
  const isBad =
    agents.some(({ status }) => status !== "written" && status !== "would-write") ||
    diagnostics.some(({ severity }) => severity === "error");
  if (json === true) {
    const answer = {
      version: 1,
      to: request.to,
      agents: agents.map(({ text: _text, target: _target, ...agent }) => agent),
      diagnostics: diagnostics.map((each) => ({ file: each.file, ...diagnosticAsJson(each) })),
    };
    stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
    return isBad ? 1 : 0;
  }
  const paint = createPaint(stdout.isColourAllowed);
  for (const agent of agents) stdout.write(describe(agent, statusText(agent, nameOf), paint));
  printDiagnostics(context, diagnostics);
  if (agents.length === 0) stdout.write("No agent files were found.\n");
  return isBad ? 1 : 0;
}

function statusText(
  { status, output, from, to, unreadable }: ConvertedAgent,
  nameOf: (file: string) => string,
): string {
  const file = nameOf(output);
  switch (status) {
    case "written":
      return `${from} to ${to}: written to ${file}`;
    case "would-write":
      return `${from} to ${to}: would be written to ${file}`;
    case "exists":
      return `${from} to ${to}: not written, ${file} exists (--force replaces it)`;
    case "unreadable":
      return `${from} to ${to}: not written, that product could not read it (${unreadable ?? "it is not an agent"})`;
    case "refused":
      return `${from} to ${to}: not written, it would have more rights (--allow-wider writes it with a note)`;
  }
}

/** `retinue agents diff A B`: what the second may do that the first may not. */
export async function agentsDiff(
  context: CommandContext,
  { before, after }: { readonly before: string; readonly after: string },
  { json }: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const { formats, nameOf } = openProject(context);
  const { agents, onlyBefore, onlyAfter, diagnostics } = await formats.compare(before, after);
  const isWider = agents.some(({ widenings }) => widenings.length > 0);
  // What cannot be read was not compared.
  const code = isWider || diagnostics.some(({ severity }) => severity === "error") ? 1 : 0;
  if (json === true) {
    const answer = { version: 1, wider: isWider, agents, onlyBefore, onlyAfter, diagnostics };
    stdout.write(`${JSON.stringify(answer, undefined, 2)}\n`);
    return code;
  }
  const paint = createPaint(stdout.isColourAllowed);
  for (const agent of agents)
    stdout.write(describe(agent, `${nameOf(agent.before ?? "")} and ${nameOf(agent.after ?? "")}`, paint));
  for (const [names, where] of [
    [onlyBefore, before],
    [onlyAfter, after],
  ] as const)
    if (names.length > 0)
      stdout.write(`Only in ${stripControlCharacters(where)}: ${stripControlCharacters(names.join(", "))}\n`);
  printDiagnostics(context, diagnostics);
  return code;
}

function printDiagnostics(context: CommandContext, diagnostics: readonly Diagnostic[]): void {
  if (diagnostics.length === 0) return;
  const { stdout, stderr } = context.host;
  const { nameOf, textOf } = openProject(context);
  stderr.write(
    renderDiagnostics(groupByFile(diagnostics), {
      paint: createPaint(stderr.isColourAllowed),
      width: Math.min(stdout.columns ?? 100, 120),
      nameOf,
      textOf,
    }),
  );
}

function describe(
  agent: Pick<ComparedAgent, "name" | "rights" | "mode" | "widenings" | "losses">,
  status: string,
  paint: Paint,
): string {
  const rows = agent.rights.filter((row) => row.before !== "none" || row.after !== "none");
  const width = Math.max(8, ...rows.map((row) => row.class.length));
  const line = (name: string, before: string, after: string): string =>
    `  ${name.padEnd(width)}  ${before.padEnd(10)}${after.padEnd(10)}${before === after ? "" : "*"}`.trimEnd();
  return `${[
    `${paint.bold(stripControlCharacters(agent.name))}  ${stripControlCharacters(status)}`,
    paint.dim(line("RIGHTS", "before", "after").replace(/\*$/, "").trimEnd()),
    ...rows.map((row) => line(row.class, row.before, row.after)),
    line("mode", agent.mode.before, agent.mode.after),
    ...agent.losses.map(
      ({ code, message }) =>
        `  ${code === "rights-widened" ? paint.error(code) : code}: ${stripControlCharacters(message)}`,
    ),
    "",
  ].join("\n")}\n`;
}
