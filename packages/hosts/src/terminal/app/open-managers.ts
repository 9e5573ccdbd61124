import { draftOf } from "../input/draft.ts";
import { dim } from "../screen/style.ts";
import type {
  EditableSetting,
  ManagedItem,
  ManagedTopic,
  ProjectChange,
  RuleList,
  RuleScope,
} from "../session/terminal-session.ts";
import { Picker, type PickerItem, type PickerKey } from "../views/picker.ts";
import type { AppActions, AppState } from "./app-state.ts";
import { openPage } from "./open-views.ts";

interface Manager {
  readonly title: string;
  readonly empty: string;
  /** What Enter does, in a word. */
  readonly enter: string;
  readonly toggle: string;
  readonly more?: (list: ManagedList) => readonly PickerKey[];
}

/** What the keys of a list work with. */
interface ManagedList {
  readonly state: AppState;
  readonly actions: AppActions;
  find(item: PickerItem): ManagedItem | undefined;
  change(change: ProjectChange): Promise<"reload">;
  close(): void;
}

const managers: Readonly<Record<ManagedTopic, Manager>> = {
  agents: {
    title: "Agents",
    empty: "There are no agents.",
    enter: "start",
    toggle: "off/on",
    more: (list) => [pageKey(list), newFileKey(list, "agent")],
  },
  permissions: {
    title: "Permission rules",
    empty: "There are no rules; calls are decided by the mode alone. Ctrl+N adds one.",
    enter: "show",
    toggle: "remove",
    more: (list) => [newRuleKey(list)],
  },
  mcp: {
    title: "MCP servers",
    empty: "No MCP servers are configured. Ctrl+N adds one.",
    enter: "show",
    toggle: "off/on",
    more: (list) => [newServerKey(list), logInKey(list), reconnectKey(list)],
  },
  hooks: {
    title: "Hooks of settings",
    empty: "There are no hooks. `hooks` in `.claude/settings.json` makes some.",
    enter: "show",
    toggle: "all off/on",
  },
  config: {
    title: "Your settings",
    empty: "There are no settings.",
    enter: "change",
    toggle: "take out",
  },
  skills: {
    title: "Skills",
    empty: "There are no skills. A folder with a SKILL.md in `.claude/skills` makes one, as Ctrl+N does.",
    enter: "use",
    toggle: "off/on",
    more: (list) => [pageKey(list), newFileKey(list, "skill")],
  },
};

/** A list of what there is, in which each can be used, shown, edited, and switched off or removed. */
export async function openManager(topic: ManagedTopic, state: AppState, actions: AppActions): Promise<void> {
  const { session, box } = state;
  const manager = managers[topic];
  let found: readonly ManagedItem[] = [];
  const items = async (): Promise<readonly PickerItem[]> => {
    found = await session.library.managed(topic);
    return found.map(({ id, label, detail }) => ({ id, label, detail }));
  };
  const list: ManagedList = {
    state,
    actions,
    find: ({ id }) => found.find((one) => one.id === id),
    async change(change) {
      const done = await session.change(change);
      state.conversation.note(done, dim);
      actions.hint(done, 4000);
      return "reload";
    },
    close: () => actions.closeView(picker),
  };
  const picker = new Picker({
    title: manager.title,
    items: await items(),
    empty: manager.empty,
    enter: manager.enter,
    staysOpen: true,
    changed: actions.changed,
    reload: items,
    choose(item) {
      const one = list.find(item);
      if (one?.setting?.values !== undefined) {
        openValues(one, { list, reload: () => picker.reload() });
        return;
      }
      if (one?.draft === undefined) {
        if (one !== undefined) openPage(actions, one.id, one.page);
        return;
      }
      box.set(draftOf(one.draft));
      list.close();
    },
    write(item) {
      const one = list.find(item);
      return one?.setting === undefined || one.setting.values !== undefined
        ? undefined
        : writeKey(one, one.setting, list);
    },
    keys: [
      ...(manager.more?.(list) ?? []),
      editKey(list),
      {
        key: "ctrl+x",
        label: manager.toggle,
        async run(item) {
          const toggle = list.find(item)?.toggle;
          if (toggle === undefined) throw new Error("This cannot be changed here.");
          return list.change(toggle);
        },
      },
    ],
  });
  actions.openView(picker);
}

/** One of the person's settings alone, to choose from what it can be. */
export async function openSetting(name: string, { session }: AppState, actions: AppActions): Promise<void> {
  const found = (await session.library.managed("config")).find(({ id }) => id === name);
  if (found === undefined) return;
  const change = async (more: ProjectChange): Promise<"reload"> => {
    actions.hint(await session.change(more), 4000);
    return "reload";
  };
  openValues(found, { list: { actions, change }, reload: async () => undefined });
}

/** What a setting can be, to choose from. */
function openValues(
  { label, setting }: ManagedItem,
  {
    list,
    reload,
  }: { readonly list: Pick<ManagedList, "actions" | "change">; readonly reload: () => Promise<void> },
): void {
  const { path = [], values = [], meanings, value = "" } = setting ?? {};
  list.actions.openView(
    new Picker({
      // Its name, and what it is for.
      title: label.replace(/\s{2,}/, ": "),
      items: values.map((one) => {
        const parts = [meanings?.get(one) ?? "", one === value ? "in use" : ""].filter((part) => part !== "");
        return { id: one, label: one, ...(parts.length === 0 ? {} : { detail: parts.join(" · ") }) };
      }),
      selected: value,
      changed: list.actions.changed,
      choose: (item) =>
        list.actions.attempt(async () => {
          await list.change({ type: "setting", path, value: settingFrom(item.id) });
          await reload();
        }),
    }),
  );
}

function settingFrom(text: string): string | boolean {
  return text === "true" || text === "false" ? text === "true" : text;
}

function writeKey(
  { id }: ManagedItem,
  { path, isNumber = false, value = "" }: EditableSetting,
  { change }: ManagedList,
): PickerKey {
  return {
    key: "enter",
    label: "change",
    asks: () => ({ label: id, text: value }),
    async run(_, text) {
      const number = Number(text);
      if (isNumber && !Number.isInteger(number)) throw new Error(`${id} is a whole number, not "${text}".`);
      return change({ type: "setting", path, value: isNumber ? number : text });
    },
  };
}

function editKey({ find, change, actions }: ManagedList): PickerKey {
  return {
    key: "ctrl+e",
    label: "edit",
    async run(item) {
      const file = find(item)?.file;
      if (file === undefined) throw new Error("It has no file that can be edited here.");
      await actions.editFile(file);
      return change({ type: "edited", file });
    },
  };
}

function pageKey({ find, actions }: ManagedList): PickerKey {
  return {
    key: "ctrl+o",
    label: "show",
    async run(item) {
      const one = find(item);
      if (one !== undefined) openPage(actions, one.id, one.page);
      return undefined;
    },
  };
}

function newFileKey({ state, actions, change }: ManagedList, kind: "agent" | "skill"): PickerKey {
  return {
    key: "ctrl+n",
    label: "new",
    isGlobal: true,
    asks: () => ({ label: `the name of the new ${kind}: lower-case letters, digits and hyphens` }),
    async run(_, name) {
      const file = await state.session.change({ type: `new-${kind}`, name });
      await actions.editFile(file);
      return change({ type: "edited", file });
    },
  };
}

function newServerKey({ change }: ManagedList): PickerKey {
  return {
    key: "ctrl+n",
    label: "add",
    isGlobal: true,
    asks: () => ({
      label: "a name, then an address or a command, for you here: docs https://…",
    }),
    async run(_, text) {
      const [server = "", ...words] = text.trim().split(/\s+/);
      return change({ type: "add-server", server, words });
    },
  };
}

function newRuleKey({ change }: ManagedList): PickerKey {
  return {
    key: "ctrl+n",
    label: "add",
    isGlobal: true,
    asks: () => ({
      label: "allow, ask or deny, the rule, and where: local (only you), project, or user",
      text: "allow Bash(npm test *) local",
    }),
    async run(_, text) {
      return change(readRuleLine(text));
    },
  };
}

/** `deny Read(.env) project`: the list and the scope may be left out. */
export function readRuleLine(text: string): Extract<ProjectChange, { type: "add-rule" | "remove-rule" }> {
  const [, list = "allow", rule = "", scope = "local"] =
    /^(?:(allow|ask|deny)\s+)?(.*?)(?:\s+(local|project|user))?$/s.exec(text.trim()) ?? [];
  return { type: "add-rule", list: list as RuleList, rule, scope: scope as RuleScope };
}

function logInKey({ find, change, state, close }: ManagedList): PickerKey {
  return {
    key: "ctrl+l",
    label: "log in/out",
    async run(item) {
      const one = find(item);
      if (one?.login === "out") return change({ type: "log-out", server: one.id });
      if (one?.login !== "in") throw new Error("This server does not need a login.");
      // What it says on the way is in the conversation.
      close();
      await state.session.logIn(one.id);
      return undefined;
    },
  };
}

function reconnectKey({ change }: ManagedList): PickerKey {
  return {
    key: "ctrl+r",
    label: "reconnect all",
    isGlobal: true,
    run: () => change({ type: "reconnect" }),
  };
}
