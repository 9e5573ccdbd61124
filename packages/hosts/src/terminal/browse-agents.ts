import { firstSentence } from "@retinue/base/foundation/first-sentence.ts";
import type { CommandContext } from "../shared/command-context.ts";
import { gatherSession } from "../shared/open-project.ts";
import { editFile } from "./app/edit-text.ts";
import { openViewStack } from "./open-view-stack.ts";
import { captureOutput } from "./session/session-pages.ts";
import { Pager, textRows } from "./views/pager.ts";
import { Picker, type PickerItem, type PickerKey } from "./views/picker.ts";
import type { ViewStack } from "./views/view-stack.ts";

/**
 * The agents there are, to look at, create, edit, check and try. Returns the exit code; undefined where nothing can be
 * painted.
 */
export async function browseAgents(context: CommandContext): Promise<number | undefined> {
  const stack = openViewStack(context.host);
  if (stack === undefined) return undefined;
  let tried: string | undefined;
  const forget = context.host.onInterrupt(stack.leave);
  const tryKey: PickerKey = {
    key: "ctrl+t",
    label: "try",
    async run({ id }) {
      tried = id;
      stack.leave();
      return undefined;
    },
  };
  try {
    await stack.run(
      new Picker({
        title: "Agents",
        items: await listAgents(context),
        reload: () => listAgents(context),
        enter: "show",
        staysOpen: true,
        choose: ({ id }) => void showPage(id, context, stack),
        changed: stack.changed,
        keys: [createKey(context, stack), editKey(context, stack), checkKey(context, stack), tryKey],
      }),
    );
  } finally {
    forget();
  }
  if (tried === undefined) return 0;
  return (await import("./run-terminal.ts")).runTerminal(context, [], { agent: tried });
}

async function listAgents(context: CommandContext): Promise<readonly PickerItem[]> {
  const { discovered } = await gatherSession(context);
  return discovered.registry.list().map(({ id, definition }) => ({
    id,
    label: `${id}  ${firstSentence(definition.description)}`,
    detail: definition.source.scope,
  }));
}

async function showPage(name: string, context: CommandContext, stack: ViewStack): Promise<void> {
  const { agentsShow } = await import("../commands/agents/agents-show.ts");
  openPage(stack, name, await captureOutput(context, (own) => agentsShow(own, name, {})));
}

function openPage(stack: ViewStack, title: string, text: string): void {
  stack.open(new Pager({ title, rows: (width) => textRows(text, width) }));
}

function createKey(context: CommandContext, stack: ViewStack): PickerKey {
  return {
    key: "ctrl+n",
    label: "new",
    isGlobal: true,
    asks: () => ({ label: "the name of the new agent: lower-case letters, digits and hyphens" }),
    async run(_, name) {
      const { agentsNew } = await import("../commands/agents/agents-new.ts");
      await captureOutput(context, (own) => agentsNew(own, name, {}));
      await editAgent(name, context, stack);
      return "reload";
    },
  };
}

function editKey(context: CommandContext, stack: ViewStack): PickerKey {
  return {
    key: "ctrl+e",
    label: "edit",
    async run({ id }) {
      await editAgent(id, context, stack);
      return "reload";
    },
  };
}

/** Opens the agent's file in the person's editor, and what the check has to say about it afterwards. */
async function editAgent(name: string, context: CommandContext, stack: ViewStack): Promise<void> {
  const found = (await gatherSession(context)).discovered.registry.find(name);
  const file = found.type === "found" ? found.agent.definition.source.file : undefined;
  if (file === undefined) throw new Error(`${name} has no file; ctrl+n makes an agent of your own.`);
  await stack.pause(() => editFile(file, context.host.environment));
  const { agentsCheck } = await import("../commands/agents/agents-check.ts");
  let code = 0;
  const text = await captureOutput(context, async (own) => {
    code = await agentsCheck(own, [file], { strict: true });
    return code;
  });
  if (code !== 0) openPage(stack, `Check of ${name}`, text);
}

function checkKey(context: CommandContext, stack: ViewStack): PickerKey {
  return {
    key: "ctrl+k",
    label: "check all",
    isGlobal: true,
    async run() {
      const { agentsCheck } = await import("../commands/agents/agents-check.ts");
      openPage(stack, "Check", await captureOutput(context, (own) => agentsCheck(own, [], {})));
      return undefined;
    },
  };
}
