import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { RetinueError } from "../../../foundation/retinue-error.ts";
import { loadJson, loadPlugin } from "../../../plugins/load-plugin.ts";
import { readMarketplace } from "../../../plugins/marketplace.ts";
import type { Plugin } from "../../../plugins/plugin.ts";
import { changeJson } from "../../../settings/approve-mcp-servers.ts";
import type { Paths } from "../../../settings/paths.ts";
import { staysInside } from "../../../settings/write-local-rules.ts";
import { gatherSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";
import { stripControlCharacters } from "../views/strip-control-characters.ts";
import { notWritten } from "./mcp/mcp-add.ts";

/** `retinue plugin list`: every plugin that was found, whether it counts, and where it is. */
export async function pluginList(
  context: CommandContext,
  { json }: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  if (json === true) {
    const plugins = discovered.plugins.map((plugin) => ({
      id: idOf(plugin),
      name: plugin.name,
      version: plugin.manifest.version ?? null,
      enabled: plugin.enabled,
      origin: plugin.origin,
      installPath: plugin.root,
    }));
    stdout.write(`${JSON.stringify(plugins, undefined, 2)}\n`);
    return 0;
  }
  if (discovered.plugins.length === 0) stdout.write("There are no plugins here.\n");
  for (const plugin of discovered.plugins) {
    const state = plugin.enabled ? "enabled" : "disabled";
    const version = plugin.manifest.version === undefined ? "" : ` ${plugin.manifest.version}`;
    stdout.write(
      `${stripControlCharacters(`${idOf(plugin)}${version}  ${state}  ${nameOf(plugin.root)}`)}\n`,
    );
  }
  return 0;
}

function idOf({ name, marketplace }: Pick<Plugin, "name" | "marketplace">): string {
  return marketplace === undefined ? name : `${name}@${marketplace}`;
}

type Scope = "user" | "project" | "local";

/** `retinue plugin enable NAME`: writes to the settings of a scope that a plugin counts, or that it does not. */
export async function pluginSwitch(
  context: CommandContext,
  { name, verb }: { readonly name: string; readonly verb: "enable" | "disable" },
  { scope = "user" }: { readonly scope?: Scope },
): Promise<number> {
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  const found = discovered.plugins.filter((plugin) => plugin.name === name || idOf(plugin) === name);
  const [plugin] = found;
  if (plugin === undefined)
    throw new RetinueError("unknown-plugin", `There is no plugin \`${name}\`.`, {
      advice: "`retinue plugin list` lists those that were found.",
    });
  if (found.length > 1)
    throw misuse(
      `\`${name}\` is the name of ${found.length} plugins.`,
      `Write ${found.map(idOf).join(" or ")}.`,
    );
  const file = settingsFile(scope, discovered.paths);
  if (scope !== "user" && !(await staysInside(file, discovered.paths.projectRoot)))
    throw notWritten(`${file} is a link that leads out of the project`);
  const place = plugin.origin === "directory" ? "inline" : plugin.origin;
  const key = plugin.marketplace === undefined ? `${plugin.name}@${place}` : idOf(plugin);
  const path = ["enabledPlugins", key];
  const outcome = await changeJson(file, () => [{ path, value: verb === "enable" }]);
  if (outcome.type === "refused") throw notWritten(outcome.why);
  context.host.stdout.write(`\`${key}\` is ${verb}d in ${nameOf(file)} (${scope}).\n`);
  return 0;
}

function settingsFile(scope: Scope, { settings, projectRoot }: Paths): string {
  if (scope === "user") return settings.user;
  return join(projectRoot, ".claude", scope === "project" ? "settings.json" : "settings.local.json");
}

/** `retinue plugin validate PATH`: what is wrong with a manifest; exit code 1 where something is. */
export async function pluginValidate({ host }: CommandContext, path: string): Promise<number> {
  const root = resolve(host.cwd, path);
  if (statSync(root, { throwIfNoEntry: false }) === undefined)
    throw new RetinueError("not-found", `There is no file or folder ${path}.`);
  const marketplace = join(root, ".claude-plugin", "marketplace.json");
  const isMarketplace = statSync(marketplace, { throwIfNoEntry: false })?.isFile() === true;
  const { diagnostics } = isMarketplace
    ? await loadJson(marketplace, readMarketplace)
    : await loadPlugin({ root, origin: "directory" }, {});
  for (const { severity, message, file, line } of diagnostics) {
    const place = file === undefined ? path : `${file}${line === undefined ? "" : `:${line}`}`;
    host.stdout.write(`${stripControlCharacters(`${severity}: ${place}: ${message}`)}\n`);
  }
  const isBroken = diagnostics.some(({ severity }) => severity === "error");
  if (!isBroken) host.stdout.write(`${stripControlCharacters(path)} is valid.\n`);
  return isBroken ? 1 : 0;
}
