import { resolve } from "node:path";
import type { PermissionPolicy, PolicyRule } from "../../../permissions/decide.ts";
import {
  type PermissionMode,
  parsePermissionMode,
  permissionModes,
} from "../../../permissions/permission-mode.ts";
import { decideMode } from "../../../planning/decide-mode.ts";
import { findWorkingDirectories } from "../../../runtime/find-working-directories.ts";
import { sessionRules } from "../../../runtime/session-rules.ts";
import type { GatheredSession } from "../gather-session.ts";
import { type CommandContext, misuse } from "../session-options.ts";

export interface PolicyOptions {
  readonly mode?: string;
  readonly allowedTools?: readonly string[];
}

export interface GatheredPolicy {
  readonly policy: PermissionPolicy;
  readonly modeFrom: string;
}

/** The policy that the main agent of a session started here would have. */
export async function gatherPolicy(
  { host, session: options }: CommandContext,
  session: GatheredSession,
  { mode, allowedTools = [] }: PolicyOptions,
): Promise<GatheredPolicy> {
  const { paths, settings } = session.discovered;
  const { permissions, sources } = settings.settings;
  const { disallowedTools = [], addDir = [] } = options;
  const source = sources.get("permissions.defaultMode");
  const decided = decideMode({
    trusted: session.trust.trusted,
    ...(mode === undefined ? {} : { permissionMode: readMode(mode) }),
    ...(permissions.defaultMode === undefined
      ? {}
      : {
          settingsMode: { mode: permissions.defaultMode, from: session.nameOf(source?.file ?? "settings") },
        }),
    bypassForbidden: permissions.switches.disableBypassPermissionsMode === "disable",
  });
  if (decided.type === "refused") throw misuse(decided.reason, decided.advice);
  const rules = sessionRules(settings, { allowedTools, disallowedTools }, paths.cwd);
  const named = ({ from, ...rule }: PolicyRule, option: string): PolicyRule => ({
    ...rule,
    from: from === undefined ? option : session.nameOf(from),
  });
  return {
    modeFrom: decided.mode.from,
    policy: {
      mode: decided.mode.value,
      allow: rules.allow.map((rule) => named(rule, "--allowedTools")),
      ask: rules.ask.map((rule) => named(rule, "--settings")),
      deny: rules.deny.map((rule) => named(rule, "--disallowedTools")),
      workingDirectories: await findWorkingDirectories({
        discovered: session.discovered,
        additionalDirectories: addDir.map((folder) => resolve(host.cwd, folder)),
      }),
      home: paths.home,
      platform: host.platform,
    },
  };
}

function readMode(text: string): PermissionMode {
  const mode = parsePermissionMode(text);
  if (mode !== undefined) return mode;
  throw misuse(`There is no mode "${text}".`, `The modes are ${permissionModes.join(", ")}.`);
}
