import type { PluginScope } from "@retinue/core/kernel/project/project-plugins.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { openFolder, openProject } from "../shared/open-project.ts";
import { stripControlCharacters } from "../shared/strip-control-characters.ts";

/** `retinue plugin list`: every plugin that was found, whether it counts, and where it is. */
export async function pluginList(
  context: CommandContext,
  { json }: { readonly json?: boolean },
): Promise<number> {
  const { stdout } = context.host;
  const { plugins, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const found = await plugins.list();
  if (json === true) {
    const shown = found.map(({ root, version = null, ...plugin }) => ({
      id: plugin.id,
      name: plugin.name,
      version,
      enabled: plugin.enabled,
      origin: plugin.origin,
      installPath: root,
    }));
    stdout.write(`${JSON.stringify(shown, undefined, 2)}\n`);
    return 0;
  }
  if (found.length === 0) stdout.write("There are no plugins here.\n");
  for (const { id, version, enabled, root } of found) {
    const state = enabled ? "enabled" : "disabled";
    const shown = `${id}${version === undefined ? "" : ` ${version}`}  ${state}  ${nameOf(root)}`;
    stdout.write(`${stripControlCharacters(shown)}\n`);
  }
  return 0;
}

/** `retinue plugin enable NAME`: writes to the settings of a scope that a plugin counts, or that it does not. */
export async function pluginSwitch(
  context: CommandContext,
  { name, verb }: { readonly name: string; readonly verb: "enable" | "disable" },
  { scope = "user" }: { readonly scope?: PluginScope },
): Promise<number> {
  const { plugins, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  const { key, file } = await plugins[verb](name, { scope });
  context.host.stdout.write(`\`${key}\` is ${verb}d in ${nameOf(file)} (${scope}).\n`);
  return 0;
}

/** `retinue plugin validate PATH`: what is wrong with a manifest; exit code 1 where something is. */
export async function pluginValidate({ host }: CommandContext, path: string): Promise<number> {
  const { isValid, diagnostics } = await openFolder(host).plugins.validate(path);
  for (const { severity, message, file, line } of diagnostics) {
    const place = file === undefined ? path : `${file}${line === undefined ? "" : `:${line}`}`;
    host.stdout.write(`${stripControlCharacters(`${severity}: ${place}: ${message}`)}\n`);
  }
  if (isValid) host.stdout.write(`${stripControlCharacters(path)} is valid.\n`);
  return isValid ? 0 : 1;
}
