import { loadSessionInstructions } from "../../../context/load-session-instructions.ts";
import { placeText } from "../../../foundation/diagnostic.ts";
import { chooseAdapter } from "../../../model/choose-adapter.ts";
import { createPackageLoader } from "../../../model/create-package-loader.ts";
import { findLocalServers } from "../../../model/find-local-servers.ts";
import { chooseLocalModel, localPlaces } from "../../../model/local-models.ts";
import { findProvider } from "../../../model/provider-entry.ts";
import { mayLoadHere } from "../../../runtime/may-load-in.ts";
import { readEnvironment } from "../../../settings/read-environment.ts";
import { checkMcp } from "../check-mcp.ts";
import type { CliHost } from "../cli-host.ts";
import { gatherMcpOf } from "../gather-mcp.ts";
import { type GatheredSession, gatherSession } from "../gather-session.ts";
import type { CommandContext } from "../session-options.ts";
import { createPaint, type Paint } from "../views/paint.ts";
import { countBySeverity, plural } from "../views/render-diagnostics.ts";
import { pad, stripControlCharacters, wrap } from "../views/strip-control-characters.ts";
import {
  checkDefinitions,
  checkMcpServers,
  checkPlugins,
  checkSettings,
  checkTrust,
} from "./doctor-files.ts";
import {
  checkConfigDirectory,
  checkGit,
  checkKeys,
  checkModels,
  checkNode,
  checkReadOnlySandbox,
  checkSandbox,
} from "./doctor-machine.ts";

/** One line of the doctor. A note shows something that is neither good nor bad. */
export interface Checkup {
  readonly name: string;
  readonly state: "ok" | "note" | "warning" | "error";
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

async function checkServers(session: GatheredSession, context: CommandContext): Promise<Checkup> {
  const found = await gatherMcpOf(session, context);
  return checkMcpServers(found, await checkMcp(found, session, context));
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

/** What people wrote down for agents here, and the first thing that is wrong with it. */
async function checkInstructions(
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

/** Which model would answer where no provider is configured; nothing is said where one is. */
async function checkLocalModels(
  { discovered, trust }: GatheredSession,
  host: CliHost,
): Promise<readonly Checkup[]> {
  const { env, plain } = discovered.settings.settings;
  const environment = { ...host.environment, ...Object.fromEntries(env) };
  const choice = chooseAdapter({ id: "default" }, environment, plain.apiKeyHelper !== undefined);
  if (choice.adapter !== "offline") return [];
  const say = (state: Checkup["state"], text: string, advice?: string): readonly Checkup[] => [
    { name: "local models", state, text, ...(advice === undefined ? {} : { advice }) },
  ];
  if (readEnvironment(environment).options.localModels === false)
    return say("note", "Not looked for, because RETINUE_LOCAL_MODELS is off. The offline model answers.");
  const places = localPlaces(environment);
  const local = chooseLocalModel(await findLocalServers(places));
  if (local === undefined) {
    const looked = places.map(({ name, address }) => `${name} at ${address}`).join(" or ");
    return say("note", `No ${looked}. The offline model answers.`);
  }
  const { provider, id, server } = local;
  const found = `${server.name} at ${server.address}`;
  const packageName = findProvider(provider, environment)?.package ?? "";
  const load = createPackageLoader(trust.trusted ? [discovered.paths.cwd] : []);
  const isThere = await load(packageName).then(
    () => true,
    () => false,
  );
  if (isThere) return say("ok", `${found}: ${provider}/${id} answers where no model is named.`);
  return say(
    "warning",
    `${found} has ${id}, but the package ${packageName} is not installed. The offline model answers.`,
    `Run: npm install ${packageName}`,
  );
}
