import { join } from "node:path";
import { mergeSettings } from "../../src/settings/merge-settings.ts";
import { readSettings, settingsScopes } from "../../src/settings/settings.ts";
import { contains, planWorktree } from "../../src/tasks/worktree-plan.ts";
import { readWorktreeSettings } from "../../src/tasks/worktree-settings.ts";
import {
  type Fields,
  firstText,
  isFields,
  type Roots,
  type SecurityCase,
  type Verdict,
} from "./security-case.ts";

/** Allowed is a worktree that gets the name and the place that were asked for. */
export function judgeWorktree({ context = {}, trusted = true }: SecurityCase, roots: Roots): Verdict {
  const { P, H } = roots;
  const name = firstText(context, ["name", "worktree", "agentName", "branch"]);
  const agentId = firstText(context, ["agentId", "id"]);
  const wished = settingsOf(context);
  const path = firstText(context, ["path", "worktreePath"]);
  if (name === undefined && agentId === undefined && wished === undefined && path === undefined)
    return { skipped: "the case names no worktree" };
  const scope = settingsScopes.find((each) => each === context["scope"]) ?? "user";
  const { settings } = readSettings({ worktree: wished ?? {} }, { scope });
  const merged = mergeSettings([{ source: { scope, anchor: P }, settings }], { trusted });
  if (merged.heldBack.length > 0) return "deny";
  const reading = readWorktreeSettings(merged.plain.worktree);
  if (reading.type === "refused") return "deny";
  const plan = planWorktree({
    agentId: agentId ?? "a1b2c3",
    agentName: name ?? "agent",
    settings: reading.settings,
    repository: P,
    gitDirectory: join(P, ".git"),
    home: H,
  });
  if (plan.type === "refused" || !contains(plan.folder, plan.path)) return "deny";
  // No call and no definition chooses a path; a worktree stands where its name says.
  if (path !== undefined && !contains(plan.folder, join(P, path))) return "deny";
  return name === undefined || plan.name.startsWith(`${plain(name)}-`) ? "allow" : "deny";
}

/** Case and blanks are a matter of spelling; any other change means that the name was not taken. */
function plain(name: string): string {
  return name.toLowerCase().replace(/[_ ]/g, "-");
}

function settingsOf({
  settings,
  location,
  symlinkDirectories,
  baseRef,
  key,
  value,
}: Fields): Fields | undefined {
  if (isFields(settings)) return isFields(settings["worktree"]) ? settings["worktree"] : settings;
  const field = /^worktree\.(\w+)$/.exec(String(key ?? ""))?.[1];
  const given = { location, symlinkDirectories, baseRef, ...(field === undefined ? {} : { [field]: value }) };
  const entries = Object.entries(given).filter(([, each]) => each !== undefined);
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}
