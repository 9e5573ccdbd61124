import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord, parseJsonRecord } from "@retinue/base/foundation/json-record.ts";
import { effortLevels } from "@retinue/base/foundation/option-words.ts";
import { changeUserSetting, updateSettingsFile } from "@retinue/core/kernel/live/live-policy.ts";
import { listOutputStyles } from "@retinue/core/kernel/project/list-output-styles.ts";
import { refuseName } from "@retinue/core/kernel/project/project-mcp.ts";
import type { RuleOverview } from "@retinue/core/kernel/project/project-permissions.ts";
import { defaultDays } from "@retinue/core/kernel/project/project-sessions.ts";
import { writeNewFile } from "@retinue/core/kernel/project/write-new-file.ts";
import type { SessionServer } from "@retinue/core/kernel/servers/session-servers.ts";
import { readConfig } from "../../commands/mcp/mcp-add.ts";
import { heldReasons, sourceName } from "../../commands/permissions-list.ts";
import type { CommandContext } from "../../shared/command-context.ts";
import { plural } from "../../shared/format.ts";
import { misuse } from "../../shared/misuse.ts";
import { type CliProject, gatherSession, openProject } from "../../shared/open-project.ts";
import type {
  EditableSetting,
  ManagedItem,
  ManagedTopic,
  ProjectChange,
  RuleScope,
} from "./terminal-session.ts";

const statusLineCommand = ["statusLine", "command"];
const outputStyle = ["outputStyle"];

/** Deny rules in the person's own settings of the project switch agents, skills and servers off. */
const offScope: RuleScope = "local";

/** What there is of agents, rules, servers, hooks and skills, with what can be changed of each. */
export async function listManaged(
  context: CommandContext,
  topic: ManagedTopic,
  servers: readonly SessionServer[],
): Promise<readonly ManagedItem[]> {
  const project = openProject(context, { toleratesBrokenFiles: true });
  switch (topic) {
    case "agents": {
      const [{ agents }, off] = await Promise.all([project.agents.list({ all: true }), offRules(project)]);
      const widest = widthOf(agents.map(({ id }) => id));
      return agents.map(({ id, definition, about, model, tools, deniedBy }) => {
        const { file, scope } = definition.source;
        const rule = `Agent(${id})`;
        const isOff = deniedBy !== undefined;
        return {
          id,
          label: `${id.padEnd(widest)}  ${about}`,
          detail: isOff ? "switched off" : `${model} · ${scopeName(scope)}`,
          page: [
            definition.description,
            "",
            `model: ${model}`,
            `tools: ${tools}`,
            `file: ${file === undefined ? "none; it is built in" : project.nameOf(file)}`,
            ...(isOff ? [`off: the rule ${deniedBy} denies it`] : []),
            "",
            definition.prompt,
          ].join("\n"),
          file,
          draft: isOff ? undefined : `@agent-${id} `,
          isOff,
          toggle: toggleRule(rule, { isOff, off }),
        };
      });
    }
    case "permissions":
      return listRules(project);
    case "mcp":
      return listServers(project, servers);
    case "hooks":
      return listHooks(context);
    case "skills":
      return listSkills(project);
    case "config":
      return listSettings(context);
  }
}

/** Names are below each other, those that are not very long. */
function widthOf(names: readonly string[]): number {
  return Math.max(0, ...names.map(({ length }) => length).filter((length) => length <= maxNameWidth));
}

const maxNameWidth = 24;

function scopeName(scope: string): string {
  return scope === "builtin" ? "built-in" : scope;
}

async function listRules({ permissions, nameOf }: CliProject): Promise<readonly ManagedItem[]> {
  const found = await permissions.list();
  const held = found.heldBack.map(({ key, detail = "", reason, source }) => ({
    id: `held ${key} ${detail}`,
    label: `held   ${detail === "" ? key : detail}`,
    detail: `${heldReasons[reason]} · ${sourceName(source, { nameOf })}`,
    page: `${key} ${detail}\n\nIt does not count: ${heldReasons[reason]}.`,
    file: source.file,
  }));
  const rules = found.rules.map(({ list, rule, source }, at): ManagedItem => {
    const place = source === undefined ? "--disallowedTools" : sourceName(source, { nameOf });
    const scope = scopeOf(source?.scope);
    return {
      id: `${at} ${list} ${rule}`,
      label: `${list.padEnd(5)}  ${rule}`,
      detail: place,
      page: `${rule}\n\nlist: ${list}\nfrom: ${place}`,
      file: scope === undefined ? undefined : source?.file,
      toggle: scope === undefined ? undefined : { type: "remove-rule", list, rule, scope },
    };
  });
  return [...rules, ...held, ...brokenRules(found, nameOf)];
}

function brokenRules({ broken }: RuleOverview, nameOf: (file: string) => string): readonly ManagedItem[] {
  return broken.map(({ list, rule, source, reason }) => {
    const place = source === undefined ? "--disallowedTools" : sourceName(source, { nameOf });
    const scope = scopeOf(source?.scope);
    return {
      id: `broken ${list} ${rule}`,
      label: `broken ${rule}`,
      detail: place,
      page: `${rule}\n\n${reason}\nlist: ${list}\nfrom: ${place}`,
      file: source?.file,
      toggle: scope === undefined ? undefined : { type: "remove-rule", list, rule, scope },
    };
  });
}

async function listServers(
  project: CliProject,
  states: readonly SessionServer[],
): Promise<readonly ManagedItem[]> {
  const [{ servers }, off] = await Promise.all([project.mcp.list(), offRules(project)]);
  const widest = widthOf(servers.map(({ entry }) => entry.config.name));
  return servers.map(({ entry, held, asks, login }) => {
    const { name } = entry.config;
    const status = states.find((state) => state.name === name)?.status;
    const rule = `mcp__${name}`;
    const isDenied = off.has(rule);
    const isProjects = entry.scope === "project";
    const state = held?.reason ?? (asks ? "not approved yet" : describeStatus(status));
    const wantsLogin = status?.type === "failed" && status.canLogIn === true ? "in" : undefined;
    return {
      id: name,
      label: `${name.padEnd(widest)}  ${isDenied ? "switched off" : state}`,
      detail: `${entry.scope}${login === undefined ? "" : ` · logged in at ${login.issuer}`}`,
      page: [
        name,
        "",
        `state: ${state}`,
        ...(status?.type === "failed" && status.advice !== undefined ? [status.advice] : []),
        `scope: ${entry.scope}`,
        ...(login === undefined ? [] : [`login: ${login.issuer}`]),
      ].join("\n"),
      isOff: isDenied || held !== undefined,
      toggle:
        isProjects && !isDenied
          ? { type: held === undefined && !asks ? "reject-server" : "approve-server", server: name }
          : toggleRule(rule, { isOff: isDenied, off }),
      login: login === undefined ? wantsLogin : "out",
    };
  });
}

function describeStatus(status: SessionServer["status"] | undefined): string {
  if (status === undefined) return "not part of this conversation";
  switch (status.type) {
    case "connected":
      return `connected, ${plural(status.tools, "tool")}`;
    case "failed":
      return `${status.needsAuth === true ? "needs a login" : "failed"}: ${status.reason}`;
    case "held":
      return `not connected: ${status.reason}`;
    default:
      return status.type;
  }
}

async function listHooks(context: CommandContext): Promise<readonly ManagedItem[]> {
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  const { hooks, plain } = discovered.settings.settings;
  const isOff = plain.disableAllHooks === true;
  return hooks.map(({ hook, source }, at): ManagedItem => {
    const { event, matcher = "", handler } = hook;
    const what = handler.type === "command" ? handler.command : handler.type;
    const place = sourceName(source, { nameOf });
    return {
      id: String(at),
      label: `${isOff ? "off  " : ""}${event}${matcher === "" ? "" : ` ${matcher}`}  ${what}`,
      detail: place,
      page: `${event}\n\nmatcher: ${matcher === "" ? "all" : matcher}\nfrom: ${place}\n\n${JSON.stringify(handler, undefined, 2)}`,
      file: source.file,
      isOff,
      toggle: { type: "hooks", on: isOff },
    };
  });
}

async function listSkills(project: CliProject): Promise<readonly ManagedItem[]> {
  const [{ skills }, off] = await Promise.all([project.skills.list(), offRules(project)]);
  const widest = widthOf(skills.map(({ title }) => title));
  return skills.map(({ skill, title, about, powers }) => {
    const rule = `Skill(${skill.name})`;
    const isOff = off.has(rule);
    const { file, scope } = skill.source;
    return {
      id: skill.name,
      label: `${title.padEnd(widest)}  ${about}`,
      detail: isOff ? "switched off" : scopeName(scope),
      page: [
        skill.description,
        "",
        `file: ${project.nameOf(file)}`,
        ...(powers.length === 0 ? [] : [`besides its text: ${powers.join("; ")}`]),
        "",
        skill.body,
      ].join("\n"),
      file,
      draft: skill.userInvocable && !isOff ? `/${skill.name} ` : undefined,
      isOff,
      toggle: toggleRule(rule, { isOff, off }),
    };
  });
}

const flags = ["true", "false"];

/** The settings that a person changes for themselves; all others are for their files. */
const ownSettings: readonly OwnSetting[] = [
  { path: ["model"], about: "the model of new conversations" },
  {
    path: ["effortLevel"],
    about: "how much models think",
    values: effortLevels,
    unset: "the model's own",
  },
  { path: ["language"], about: "the language of answers" },
  { path: outputStyle, about: "how the main agent answers" },
  {
    path: ["permissions", "defaultMode"],
    about: "the mode of new conversations",
    values: ["default", "acceptEdits", "plan", "dontAsk"],
    unset: "default",
  },
  {
    path: ["alwaysThinkingEnabled"],
    about: "models always think first",
    values: flags,
    unset: "the model's own",
  },
  { path: ["autoCompactEnabled"], about: "long conversations are compacted", values: flags, unset: "true" },
  { path: ["autoMemoryEnabled"], about: "the main agent keeps notes", values: flags, unset: "true" },
  { path: ["includeGitInstructions"], about: "instructions about git", values: flags, unset: "true" },
  {
    path: ["cleanupPeriodDays"],
    about: "how many days sessions are kept",
    isNumber: true,
    unset: String(defaultDays),
  },
  { path: statusLineCommand, about: "its first line is below the draft" },
];

interface OwnSetting extends Omit<EditableSetting, "value"> {
  readonly about: string;
  /** What holds where it is not set. */
  readonly unset?: string;
}

/** The settings of this person, as written; what other files make of them is said beside. */
async function listSettings(context: CommandContext): Promise<readonly ManagedItem[]> {
  const facts = await gatherSession(context, { toleratesBrokenFiles: true });
  const { discovered } = facts;
  const styles = await listOutputStyles(facts);
  const file = discovered.paths.settings.user;
  const written = existsSync(file) ? parseJsonRecord(readFileSync(file, "utf8")) : undefined;
  const { plain } = discovered.settings.settings;
  const [defaultStyle] = styles.keys();
  return ownSettings.map(({ about, unset, ...rest }) => {
    const name = rest.path.join(".");
    const own = valueAt(written, rest.path);
    const inForce = valueAt(plain, rest.path);
    const isOther = inForce !== undefined && own !== inForce;
    const value = own === undefined ? undefined : String(own);
    const usual = rest.path === outputStyle ? defaultStyle : unset;
    const shown = value ?? (usual === undefined ? "not set" : `not set: ${usual}`);
    return {
      id: name,
      label: `${name.padEnd(24)}  ${about}`,
      detail: isOther ? `${String(inForce)}, from other settings` : shown,
      page: `${name}: ${shown}`,
      file,
      setting: {
        ...rest,
        ...(rest.path === outputStyle ? { values: [...styles.keys()], meanings: styles } : {}),
        value,
      },
      toggle: value === undefined ? undefined : { type: "setting", path: rest.path, value: undefined },
    };
  });
}

function valueAt(settings: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((value, key) => (isRecord(value) ? value[key] : undefined), settings);
}

/** The deny rules of settings that can be written here, with the scope each is in. */
async function offRules({ permissions }: CliProject): Promise<ReadonlyMap<string, RuleScope>> {
  const { rules } = await permissions.list();
  return new Map(
    rules.flatMap(({ list, rule, source }) => {
      const scope = scopeOf(source?.scope);
      return list === "deny" && scope !== undefined ? [[rule, scope] as const] : [];
    }),
  );
}

/** Undefined where something else has switched it off, such as a rule of the organisation. */
function toggleRule(
  rule: string,
  { isOff, off }: { readonly isOff: boolean; readonly off: ReadonlyMap<string, RuleScope> },
): ProjectChange | undefined {
  if (!isOff) return { type: "add-rule", list: "deny", rule, scope: offScope };
  const scope = off.get(rule);
  return scope === undefined ? undefined : { type: "remove-rule", list: "deny", rule, scope };
}

function scopeOf(scope: string | undefined): RuleScope | undefined {
  return scope === "local" || scope === "project" || scope === "user" ? scope : undefined;
}

/** Carries out a change, and says what was done. */
export async function applyChange(context: CommandContext, change: ProjectChange): Promise<string> {
  const { permissions, mcp, agents, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  switch (change.type) {
    case "add-rule": {
      const { file, isNew } = await permissions.add(change);
      return isNew
        ? `${change.rule} was added to "${change.list}" in ${nameOf(file)}.`
        : `${nameOf(file)} has ${change.rule} already.`;
    }
    case "remove-rule": {
      const { file } = await permissions.remove(change);
      return `${change.rule} was taken out of "${change.list}" in ${nameOf(file)}.`;
    }
    case "approve-server":
      await mcp.approve(change.server);
      return `${change.server} may start here.`;
    case "reject-server":
      await mcp.reject(change.server);
      return `${change.server} no longer starts here.`;
    case "log-out": {
      const { wasLoggedIn } = await mcp.logout(change.server);
      return wasLoggedIn ? `Logged out of ${change.server}.` : `There was no login at ${change.server}.`;
    }
    case "add-server":
      return addServer(context, change);
    case "reconnect":
      return `The servers of this conversation are connected again.`;
    case "model":
      await writeSettings(context, "userSettings", { model: change.model });
      return `New conversations begin with ${change.model}.`;
    case "hooks":
      await writeSettings(context, "localSettings", { disableAllHooks: change.on ? null : true });
      return change.on ? "Hooks run again here." : "Settings hooks are off here, except the organisation's.";
    case "new-agent": {
      const { file } = await agents.create(
        { name: change.name, description: "Not described yet." },
        { scope: "project", replaces: false },
      );
      return file;
    }
    case "new-skill":
      return createSkill(context, change.name);
    case "setting": {
      // A status line is a whole, of which only the command is asked for.
      const { path, value } = change;
      const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
      const isStatusLine = path === statusLineCommand;
      const whole = isStatusLine && value !== undefined ? { type: "command", command: value } : value;
      const outcome = await changeUserSetting(
        discovered.paths,
        isStatusLine ? path.slice(0, 1) : path,
        whole,
      );
      if (outcome.type === "refused") throw new Error(outcome.why);
      const place = nameOf(discovered.paths.settings.user);
      const name = path.join(".");
      return value === undefined ? `${name} was taken out of ${place}.` : `${name} is ${value} in ${place}.`;
    }
    case "edited":
      return `${nameOf(change.file)} was edited.`;
  }
}

/** A skill to be written on, in the nearest folder of skills that there is, or at the project's root. */
async function createSkill(context: CommandContext, name: string): Promise<string> {
  const { discovered, nameOf } = await gatherSession(context, { toleratesBrokenFiles: true });
  const { skills, projectRoot, temporaryNotes } = discovered.paths;
  if (!/^[a-z0-9][a-z0-9-]{0,63}$/.test(name))
    throw misuse(
      `The name ${JSON.stringify(name.slice(0, 80))} cannot be used.`,
      "Use lower-case letters, digits and hyphens, such as release-notes.",
    );
  const folder = skills.project.find((place) => existsSync(place)) ?? join(projectRoot, ".claude", "skills");
  const file = join(folder, name, "SKILL.md");
  const text = `---\nname: ${name}\ndescription: Not described yet.\n---\n\nWhat to do, step by step.\n`;
  const outcome = await writeNewFile(file, text, { replaces: false, notes: temporaryNotes });
  if (outcome === "exists")
    throw misuse(`${nameOf(file)} already exists and was not touched.`, "Choose another name.");
  return file;
}

async function addServer(
  context: CommandContext,
  { server, words }: Extract<ProjectChange, { type: "add-server" }>,
): Promise<string> {
  const { mcp, nameOf } = openProject(context, { toleratesBrokenFiles: true });
  refuseName(server);
  const [first = ""] = words;
  const config = readConfig(words, { transport: /^https?:\/\//.test(first) ? "http" : "stdio" });
  const usage = "Write such as: docs https://docs.example/mcp, or: files npx -y @acme/files-server .";
  const file = await mcp.add({
    name: server,
    config,
    usage,
    scope: "local",
    replaces: false,
    pathText: nameOf,
  });
  return `${server} was added to ${nameOf(file)}.`;
}

async function writeSettings(
  context: CommandContext,
  source: "localSettings" | "userSettings",
  values: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { discovered } = await gatherSession(context, { toleratesBrokenFiles: true });
  const outcome = await updateSettingsFile(discovered.paths, source, values);
  if (outcome.type === "refused") throw new Error(outcome.why);
}
