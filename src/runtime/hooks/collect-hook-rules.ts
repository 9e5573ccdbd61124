import { agentHooks, type SourcedHookRule } from "../../hooks/hook-rule.ts";
import type { PlannedDefinition } from "../../planning/plan-run.ts";
import type { MergedSettings } from "../../settings/settings-layer.ts";

export interface HookSources {
  /** Already without what an untrusted folder's files say. */
  readonly settings: Pick<MergedSettings, "hooks" | "plain" | "sources">;
  readonly plugins: readonly SourcedHookRule[];
  readonly definition?: Pick<PlannedDefinition, "name" | "hooks" | "source">;
  readonly agentId: string;
  readonly trusted: boolean;
  readonly isSubagent?: boolean;
}

/** All hooks that may fire for an agent: settings, plugins, its own definition. */
export function collectHookRules(sources: HookSources): readonly SourcedHookRule[] {
  const { settings, plugins, definition, agentId, trusted } = sources;
  const managedOnly = settings.plain.allowManagedHooksOnly === true;
  const isOff = settings.plain.disableAllHooks === true;
  const offByManager = isOff && settings.sources.get("disableAllHooks")?.scope === "managed";
  if (offByManager) return [];
  const written = settings.hooks
    // A person can switch their own hooks off, but not those of their organisation.
    .filter(({ source }) => !isOff || source.scope === "managed")
    .map(({ hook, source }): SourcedHookRule => {
      const file = source.file === undefined ? {} : { file: source.file };
      return { hook, origin: { type: "settings", ...file } };
    });
  if (isOff || managedOnly) return written;
  const mayRun = definition !== undefined && (definition.source.scope !== "project" || trusted);
  const own = mayRun
    ? agentHooks(definition.hooks ?? [], {
        id: agentId,
        name: definition.name,
        isSubagent: sources.isSubagent === true,
      })
    : [];
  return [...written, ...plugins, ...own];
}
