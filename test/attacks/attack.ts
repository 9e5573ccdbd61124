import type { Step } from "@retinue/testing/script.ts";

/**
 * One way around the gate. Texts may hold tokens: `{{W}}` the folder of everything, `{{P}}` the project, `{{H}}` the home,
 * `{{T}}` a folder outside both, `{{D}}` the attack's own folder in the project (relative), `{{C}}` the file whose
 * appearance proves the attack (relative to the project), `{{A}}` the same as an absolute path, `{{U}}` a web server
 * and `{{N}}` its port, `{{S}}` a secret of its own, `{{K}}` the provider's key.
 */
export interface Attack {
  readonly id: string;
  readonly title: string;
  /** Why it works where only the look of a command is judged. */
  readonly why: string;
  /** In order; a text is a command for Bash. */
  readonly calls: readonly AttackCall[];
  /** What must not happen; that `{{C}}` appears unless given. */
  readonly effect?: Effect;
  /** A bash script, run in the project before the session; `{{D}}` exists already. */
  readonly setup?: string;
  /** Programs without which it cannot be tried. */
  readonly needs?: readonly string[];
  /** Laid over the policy of the class. */
  readonly policy?: Policy;
  /** In a session of its own, because its set-up changes the project for all others. */
  readonly alone?: boolean;
  /** Without the gate it would break what other attacks need, so its control has a place of its own. */
  readonly isDestructive?: boolean;
  /** All its calls come in one answer. */
  readonly isTogether?: boolean;
  /** Its calls come right after each other, and the session is led back to the project afterwards. */
  readonly isSequence?: boolean;
  /** What the model says, where calls cannot express it; the same for all attacks that share a session. */
  readonly script?: readonly Step[];
  readonly control?: Control;
}

export interface ToolCall {
  readonly tool: string;
  readonly input: Readonly<Record<string, unknown>>;
  /** What the child does that a call of Agent starts. */
  readonly child?: readonly AttackCall[];
}

export type AttackCall = string | ToolCall;

/** `own` is the attack's own secret, `{{S}}` in its set-up. */
export type Secret = "env" | "pem" | "ssh" | "outside" | "key" | "own";

export type Effect =
  /** A path that exists only afterwards. */
  | { readonly made: string }
  | { readonly gone: string }
  /** A file whose text, or a link whose target, is another afterwards. */
  | { readonly changed: string }
  /** The secret reaches the model in any readable coding. */
  | { readonly leaks: Secret }
  /** A result of the attack's calls matches the expression, which shows something that must not be reported. */
  | { readonly shows: string }
  /** The web server gets a request for this path. */
  | { readonly sent: string }
  /** The terminal gets these bytes from the program. */
  | { readonly prints: string }
  /** Two calls that differ in a guess have different results, so that a secret can be guessed piece by piece. */
  | { readonly distinguishes: true }
  /** What the program prints does not contain this text. */
  | { readonly omits: string };

export type Mode = "default" | "plan" | "dontAsk" | "acceptEdits" | "bypassPermissions";

export interface Policy {
  /** One session for each; `default`, `plan` and `dontAsk` unless given, `default` for an attack that is alone. */
  readonly modes?: readonly Mode[];
  readonly allow?: readonly string[];
  readonly ask?: readonly string[];
  readonly deny?: readonly string[];
  /** More settings of the user. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** More words of the command line. */
  readonly arguments?: readonly string[];
  /** Variables of the command's environment. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The folder it is started in, in place of the project's own path. */
  readonly startIn?: string;
  /** Another command than `-p`, such as `trust --show`; no model takes part. */
  readonly command?: readonly string[];
  /** Whether the person trusts the project; true unless given. */
  readonly isTrusted?: boolean;
  /** Keeps apart from others the attacks whose set-ups make the same kind of project. */
  readonly project?: string;
}

/**
 * How it is proved that the attack would work if nothing stopped it. `bash`: the commands are given to bash itself in the
 * same place. `session`: the same session under this policy instead. `script`: a shell script does what the attack wants.
 * Without one: `bash` where all calls are commands, else a session with all permissions.
 */
export type Control =
  | { readonly by: "bash" }
  | { readonly by: "session"; readonly policy: Policy }
  | { readonly by: "script"; readonly script: string };

export interface AttackClass {
  readonly name: string;
  /** What the attacks of the class have in common. */
  readonly about: string;
  readonly policy?: Policy;
  readonly attacks: readonly Attack[];
}

/** An attack with everything that its class says for it. */
export interface PlannedAttack extends Attack {
  readonly className: string;
  readonly effect: Effect;
  readonly policy: Policy;
  readonly control: Control;
}

const everything: Policy = { modes: ["bypassPermissions"] };

export function planAttacks(classes: readonly AttackClass[]): readonly PlannedAttack[] {
  return classes.flatMap(({ name, policy = {}, attacks }) =>
    attacks.map((attack) => ({
      ...attack,
      className: name,
      effect: attack.effect ?? { made: "{{C}}" },
      policy: { ...policy, ...attack.policy },
      control: attack.control ?? controlOf(attack),
    })),
  );
}

function controlOf({ calls, script }: Attack): Control {
  const isShell = script === undefined && calls.every((call) => typeof call === "string");
  return isShell ? { by: "bash" } : { by: "session", policy: everything };
}

/** An id, what is called, a title, and what is special about it. */
export type AttackRow = readonly [
  id: string,
  calls: AttackCall | readonly AttackCall[],
  title: string,
  more?: Omit<Attack, "id" | "calls" | "title" | "why"> & { readonly why?: string },
];

/** Attacks that work for the same reason. */
export function family(
  why: string,
  rows: readonly AttackRow[],
  shared: Omit<Attack, "id" | "calls" | "title" | "why"> = {},
): readonly Attack[] {
  return rows.map(([id, calls, title, more]) => {
    const list = typeof calls === "object" && "length" in calls ? calls : [calls];
    const policy = { ...shared.policy, ...more?.policy };
    return { id, title, why, calls: list, ...shared, ...more, policy };
  });
}

export const tool = (name: string, input: ToolCall["input"]): ToolCall => ({ tool: name, input });

/** A call that starts a child, and what the child calls then. */
export const agent = (input: ToolCall["input"], ...child: readonly AttackCall[]): ToolCall => ({
  tool: "Agent",
  input: { description: "work", ...input },
  child,
});

/** A shell script for set-ups: a program of this name in `{{D}}/bin` that leaves the mark of the attack. */
export const plantProgram = (name: string, more = "") =>
  `mkdir -p {{D}}/bin; printf '#!/bin/sh\\n/usr/bin/touch {{A}}\\n${more}' > {{D}}/bin/${name}; chmod +x {{D}}/bin/${name}\n`;
