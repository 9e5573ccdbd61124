import type {
  SessionConfigOption,
  SessionConfigSelectOption,
  SessionModeState,
} from "@agentclientprotocol/sdk";
import { effortLevels, type PermissionMode, permissionModes } from "@retinue/base/foundation/option-words.ts";
import { RetinueError } from "@retinue/base/foundation/retinue-error.ts";
import type { LivePolicy } from "@retinue/core/kernel/live/live-policy.ts";
import type { Session } from "@retinue/core/kernel/session.ts";
import { describeModels } from "../agent-sdk/init-message.ts";

/** What a person may choose in the editor for a session: permission mode, model, effort. */
export interface EditorChoices {
  /** Undefined means what the session was planned with. */
  readonly model: () => string | undefined;
  readonly effort: () => string | undefined;
  modes(): SessionModeState;
  options(): SessionConfigOption[];
  /** Throws where the option or the value is none of those that were offered. */
  choose(id: string, value: unknown): void;
}

interface EditorChoicesOptions {
  readonly policy: LivePolicy;
  readonly mayBypass: boolean;
  readonly session: () => Session | undefined;
}

const planned = "default";

export function createEditorChoices({ policy, mayBypass, session }: EditorChoicesOptions): EditorChoices {
  const chosen = new Map<string, string>();
  const choiceOf = (id: string): string => chosen.get(id) ?? planned;
  const given = (id: string) => (): string | undefined => chosen.get(id);
  const currentMode = (): string => policy.mode() ?? session()?.plan.policy.mode ?? "default";
  const modes = (): SessionModeState => ({
    currentModeId: currentMode(),
    availableModes: modesFor(mayBypass),
  });
  const options = (): SessionConfigOption[] => [
    select({
      id: "mode",
      name: "Permission mode",
      category: "mode",
      currentValue: currentMode(),
      options: modesFor(mayBypass).map(({ id, name }) => ({ value: id, name })),
    }),
    select({
      id: "model",
      name: "Model",
      category: "model",
      currentValue: choiceOf("model"),
      options: models(session()),
    }),
    select({
      id: "effort",
      name: "Effort",
      category: "thought_level",
      currentValue: choiceOf("effort"),
      options: [planned, ...effortLevels].map((value) => ({ value, name: capitalised(value) })),
    }),
  ];
  return {
    model: given("model"),
    effort: given("effort"),
    modes,
    options,
    choose(id, value) {
      const option = options().find((each) => each.id === id);
      if (option?.type !== "select")
        throw new RetinueError("unknown-option", `There is no option ${JSON.stringify(id)} to set.`);
      const offered = option.options.flatMap((each) => ("value" in each ? [each.value] : []));
      if (typeof value !== "string" || !offered.includes(value))
        throw new RetinueError("unknown-value", `${option.name} cannot be ${JSON.stringify(value)}.`, {
          advice: `It is one of ${offered.join(", ")}.`,
        });
      if (id === "mode") policy.setMode(value);
      else if (value === planned) chosen.delete(id);
      else chosen.set(id, value);
    },
  };
}

type SelectOption = Extract<SessionConfigOption, { type: "select" }>;

function select(option: Omit<SelectOption, "type">): SelectOption {
  return { type: "select", ...option };
}

function models(session: Session | undefined): SessionConfigSelectOption[] {
  if (session === undefined) return [];
  return describeModels(session).map(({ value, displayName, description }) => ({
    value: String(value),
    name: String(displayName),
    description: String(description),
  }));
}

const modeNames: ReadonlyMap<PermissionMode, string> = new Map([
  ["default", "Ask before changes"],
  ["acceptEdits", "Accept edits"],
  ["plan", "Plan only"],
  ["dontAsk", "Deny what no rule allows"],
  ["bypassPermissions", "Allow everything that no rule denies"],
]);

function modesFor(mayBypass: boolean): SessionModeState["availableModes"] {
  return permissionModes.flatMap((id) => {
    const name = modeNames.get(id);
    return name === undefined || (id === "bypassPermissions" && !mayBypass) ? [] : [{ id, name }];
  });
}

function capitalised(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
