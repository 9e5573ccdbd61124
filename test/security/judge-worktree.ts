import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { readSettings, type SettingsScope } from "@retinue/config/settings/settings.ts";
import { mergeSettings } from "@retinue/config/settings/settings-layer.ts";
import { makeWorktree } from "@retinue/core/tasks/worktree/make-worktree.ts";
import { readWorktreeSettings } from "@retinue/core/tasks/worktree/read-worktree-settings.ts";
import { contains, planWorktree } from "@retinue/core/tasks/worktree/worktree-plan.ts";
import { caseFiles, isTrusted, layerOf } from "./case-settings.ts";
import {
  type Fields,
  firstText,
  isFields,
  NotHonoured,
  type Roots,
  type SecurityCase,
  type Verdict,
} from "./security-case.ts";

/** Allowed is a worktree that git makes with the name and at the place that were asked for. */
export async function judgeWorktree(testCase: SecurityCase, roots: Roots): Promise<Verdict> {
  const { context = {}, cwd = roots.P } = testCase;
  const name = firstText(context, [
    "name",
    "worktree",
    "worktreeName",
    "slug",
    "agentName",
    "branch",
    "branchName",
  ]);
  const agentId = firstText(context, ["agentId", "id"]);
  const wished = settingsOf(context);
  const path = firstText(context, ["path", "worktreePath"]);
  if (name === undefined && agentId === undefined && wished === undefined && path === undefined)
    throw new NotHonoured("the case names no worktree");
  // The schema of cases says that it is one of these.
  const scope = (context["scope"] ?? "user") as SettingsScope;
  const { settings } = readSettings({ worktree: wished ?? {} }, { scope });
  const others = caseFiles(testCase).map((file) => layerOf(file, roots));
  const trusted = await isTrusted(testCase, roots);
  const merged = mergeSettings([...others, { source: { scope, anchor: roots.P }, settings }], { trusted });
  if (merged.heldBack.some(({ key }) => key.startsWith("worktree"))) return "deny";
  const reading = readWorktreeSettings(merged.plain.worktree);
  if (reading.type === "refused") return "deny";
  const request = {
    directory: cwd,
    agentId: agentId ?? "a1b2c3",
    agentName: name ?? "agent",
    settings: reading.settings,
  };
  const plan = planWorktree({
    ...request,
    repository: roots.P,
    gitDirectory: join(roots.P, ".git"),
    home: roots.H,
  });
  if (plan.type === "refused") return "deny";
  // No call and no definition chooses a path; a worktree is where its name says.
  if (path !== undefined && !contains(plan.folder, join(roots.P, path))) return "deny";
  if (name !== undefined && !plan.name.startsWith(`${plain(name)}-`)) return "deny";
  const made = await makeWorktree({
    ...request,
    environment: { PATH: process.env["PATH"], HOME: roots.H },
    trusted: true,
    signal: AbortSignal.timeout(60_000),
  });
  if (made.type === "refused") return "deny";
  const real = await realpath(made.worktree.path);
  await made.worktree.finish();
  return real === plan.path || contains(plan.folder, real) ? "allow" : "deny";
}

/** Case and spaces are a matter of spelling; any other change means that the name was not taken. */
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
