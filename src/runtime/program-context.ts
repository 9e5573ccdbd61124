import type { LanguageModel } from "../model/language-model.ts";
import type { Model } from "../model/model.ts";
import type { Tool } from "../tools/tool.ts";
import { type GivenTool, isOwnModel, type NormalizedRuntime } from "./options/normalize-runtime-options.ts";
import type { ModelInput } from "./options/runtime-options.ts";
import type { RuntimeContext } from "./runtime-context.ts";
import type { World } from "./world.ts";

/** What the program brought, in our shapes; what reads schemas and models of other libraries is loaded only for them. */
export interface ProgramContext {
  gather(): Promise<RuntimeContext>;
  /** The same with tools and a model of one session alone. */
  forSession(
    facts: RuntimeContext,
    own: { readonly tools: readonly GivenTool[]; readonly model: ModelInput | undefined },
  ): Promise<RuntimeContext>;
}

export function createProgramContext(world: World, normalized: NormalizedRuntime): ProgramContext {
  const { tools, model, childLimits, setup } = normalized;
  let adapted: Promise<{ readonly extraTools: readonly Tool[]; readonly model?: Model }> | undefined;

  async function adaptOwn(given: Model | LanguageModel): Promise<Model> {
    const own = await adaptModel(given);
    return setup.wrapModel?.(own) ?? own;
  }

  async function adapt() {
    const own = model === undefined ? undefined : await adaptOwn(model);
    return { extraTools: await adaptTools(tools.objects), ...(own === undefined ? {} : { model: own }) };
  }

  return {
    async gather() {
      adapted ??= adapt();
      const [facts, program] = await Promise.all([world.gather(), adapted]);
      return { ...facts, ...program, childLimits };
    },
    async forSession(facts, own) {
      if (own.tools.length === 0 && own.model === undefined) return facts;
      const { model: shared, ...rest } = facts;
      const model = typeof own.model === "object" ? await adaptOwn(own.model) : shared;
      const answers = model !== undefined && typeof own.model !== "string";
      const extraTools = [...facts.extraTools, ...(await adaptTools(own.tools))];
      return { ...rest, extraTools, ...(answers ? { model } : {}) };
    },
  };
}

async function adaptTools(tools: readonly GivenTool[]): Promise<readonly Tool[]> {
  if (tools.length === 0) return [];
  const { adaptTool } = await import("./options/adapt-tool.ts");
  return tools.map(adaptTool);
}

async function adaptModel(model: Model | LanguageModel): Promise<Model> {
  if (isOwnModel(model)) return model;
  const { createModelFromLanguageModel } = await import("../model/language-model.ts");
  return createModelFromLanguageModel(model);
}
