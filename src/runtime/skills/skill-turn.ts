import type { Model } from "../../model/model.ts";
import type { PermissionMode, PolicyRule } from "../../permissions/permission-policy.ts";

/** Rules that hold beside those of the plan. */
export interface TurnRights {
  readonly allow: readonly PolicyRule[];
  readonly deny: readonly PolicyRule[];
  /** The mode in place of that of the plan. */
  readonly mode?: PermissionMode;
}

export interface TurnChanges extends TurnRights {
  readonly model?: Model;
  readonly effort?: string | number;
}

/** What the skills of one agent change until its current prompt is done. */
export interface SkillTurn {
  /** Returns how to take it back before the end of the turn. */
  take(changes: TurnChanges): () => void;
  rights(): TurnRights;
  /** The agent's model, or the one that the latest skill asks for. */
  model(own: Model): Model;
  end(): void;
}

export function createSkillTurn(): SkillTurn {
  let taken: readonly TurnChanges[] = [];
  return {
    take(changes) {
      taken = [...taken, changes];
      return () => {
        taken = taken.filter((other) => other !== changes);
      };
    },
    rights: () => ({
      allow: taken.flatMap(({ allow }) => allow),
      deny: taken.flatMap(({ deny }) => deny),
    }),
    model(own) {
      const current = (): Model => taken.findLast(({ model }) => model !== undefined)?.model ?? own;
      return {
        get facts() {
          return current().facts;
        },
        stream(request, options) {
          const effort = taken.findLast((changes) => changes.effort !== undefined)?.effort;
          return current().stream(effort === undefined ? request : { ...request, effort }, options);
        },
      };
    },
    end() {
      taken = [];
    },
  };
}
