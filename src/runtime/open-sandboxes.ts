import type { Sandboxes } from "../tools/builtin/bash-sandbox.ts";
import { createSandbox } from "../tools/run-in-sandbox.ts";
import { readSandboxSettings } from "../tools/sandbox-settings.ts";
import type { SessionOptions } from "./runtime-options.ts";
import { denyRules } from "./session-rules.ts";
import type { RuntimeContext } from "./session-world.ts";

/** Where settings ask for it, commands run where the operating system keeps them inside the work. */
export function openSandboxes(world: RuntimeContext, options: SessionOptions): Sandboxes {
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
