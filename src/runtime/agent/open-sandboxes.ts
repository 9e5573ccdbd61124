import type { Sandboxes } from "../../tools/builtin/enter-sandbox.ts";
import { createSandbox } from "../../tools/sandbox/sandbox.ts";
import { readSandboxSettings } from "../../tools/sandbox/sandbox-settings.ts";
import type { SessionSetup } from "../options/runtime-options.ts";
import type { RuntimeContext } from "../runtime-context.ts";
import { denyRules } from "../session-rules.ts";

/** Where settings ask for it, commands run where the operating system keeps them inside the work. */
export function openSandboxes(world: RuntimeContext, options: SessionSetup): Sandboxes {
  const { paths, settings: read } = world.discovered;
  const settings = readSandboxSettings(read.settings.plain.sandbox);
  const sandbox = createSandbox({
    runtime: world.sandbox,
    settings,
    home: paths.home,
    deny: denyRules(world, options),
  });
  return {
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(settings.isolatesReadOnlyCommands ? { readOnlySandbox: world.readOnlySandbox } : {}),
  };
}
