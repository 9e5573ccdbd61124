import type { CommandContext } from "../shared/command-context.ts";
import { formatAge, plural } from "../shared/format.ts";
import { openViewStack } from "./open-view-stack.ts";
import { createSessionRecords } from "./session/session-records.ts";
import { Picker, type PickerItem } from "./views/picker.ts";

/**
 * The conversations of this folder to choose from: Enter resumes one, others are named, forked and deleted. Returns the exit
 * code; undefined where nothing can be painted.
 */
export async function browseSessions(context: CommandContext): Promise<number | undefined> {
  const { host } = context;
  const stack = openViewStack(host);
  if (stack === undefined) return undefined;
  const records = createSessionRecords(host);
  const items = async (): Promise<readonly PickerItem[]> =>
    (await records.list()).map(({ id, title, modified, messages, isOpenElsewhere }) => ({
      id,
      label: title,
      detail: `${isOpenElsewhere === true ? "open · " : ""}${plural(messages, "message")} · ${formatAge(Date.now() - modified)} · ${id.slice(0, 8)}`,
    }));
  let next: { readonly resume: string; readonly forkSession?: boolean } | undefined;
  const leaveFor = (chosen: NonNullable<typeof next>): void => {
    next = chosen;
    stack.leave();
  };
  const forget = host.onInterrupt(stack.leave);
  try {
    await stack.run(
      new Picker({
        title: "Conversations of this folder",
        items: await items(),
        reload: items,
        empty: "There is no conversation in this folder yet; `retinue` begins one.",
        enter: "resume",
        choose: ({ id }) => leaveFor({ resume: id }),
        changed: stack.changed,
        keys: pickerKeys(records, (id) => leaveFor({ resume: id, forkSession: true })),
      }),
    );
  } finally {
    forget();
  }
  if (next === undefined) return 0;
  return (await import("./run-terminal.ts")).runTerminal(context, [], next);
}

function pickerKeys(
  records: ReturnType<typeof createSessionRecords>,
  fork: (id: string) => void,
): NonNullable<ConstructorParameters<typeof Picker>[0]["keys"]> {
  return [
    {
      key: "ctrl+t",
      label: "title",
      asks: (item) => ({ label: "the new title", text: item?.label ?? "" }),
      async run({ id }, title) {
        await records.rename(id, title);
        return "reload";
      },
    },
    {
      key: "ctrl+f",
      label: "fork",
      async run({ id }) {
        fork(id);
        return undefined;
      },
    },
    {
      key: "ctrl+x",
      label: "delete",
      asks: (item) => ({ label: `write yes to delete ${item?.label ?? ""} for good` }),
      async run({ id }, answer) {
        if (answer !== "yes") throw new Error("Nothing was deleted.");
        await records.remove(id);
        return "reload";
      },
    },
  ];
}
