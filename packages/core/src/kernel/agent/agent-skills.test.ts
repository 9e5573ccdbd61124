import type { Skill } from "@retinue/config/skills/skill.ts";
import { createWorkspace } from "@retinue/testing/sample-runtime.ts";
import { createScriptedModel } from "@retinue/testing/scripted-model.ts";
import { expect, test } from "vitest";
import { type AgentSkillsParts, createAgentSkills } from "./agent-skills.ts";
import type { AgentAuthorization } from "./open-agent.ts";

const ship: Skill = {
  name: "ship",
  description: "Ships.",
  disableModelInvocation: false,
  userInvocable: true,
  allowedTools: ["Bash"],
  model: "slow",
  body: "Ship.",
  source: { scope: "user", kind: "skill", file: "/h/ship/SKILL.md", directory: "/h/ship" },
};
const allowed: AgentAuthorization["authorize"] = async ({ input }) => ({ type: "allowed", input });

/** Only what a call of the Skill tool touches. */
function skillsWith(parts: Pick<AgentSkillsParts, "findModel">) {
  return createAgentSkills({
    skills: {
      all: [ship],
      current: async () => [ship],
      list: "- ship",
      areOffered: true,
      bringHooks: false,
      conditional: () => [],
      listOf: () => "",
      touch: async () => undefined,
      factsOf: () => ({ sessionId: "s", projectDirectory: "/p" }),
      preload: () => ({ names: [], notes: [] }),
    },
    runtime: {
      trusted: true,
      discovered: { paths: { projectRoot: "/p" }, settings: { settings: { plain: {} } } },
    },
    plan: { directory: "/p", agent: { id: "main", name: "main" }, model: { value: "own" } },
    isSubagent: false,
    bash: undefined,
    hooks: undefined,
    ...parts,
    // The rest of a world and a plan plays no part here.
  } as unknown as AgentSkillsParts);
}

test("[SKL-3] a call that outlives its stopped run grants nothing to the next one", async () => {
  await using workspace = await createWorkspace();
  const asked = Promise.withResolvers<void>();
  const answer = Promise.withResolvers<ReturnType<typeof createScriptedModel>>();
  const skills = skillsWith({
    findModel: () => {
      asked.resolve();
      return answer.promise;
    },
  });
  skills.attach({ authorize: allowed, ask: allowed });
  const stop = new AbortController();
  const call = skills.tool.call({ skill: "ship" }, workspace.context("main", { signal: stop.signal }));
  await asked.promise;
  stop.abort();
  skills.endTurn();
  answer.resolve(createScriptedModel([]));
  await expect(call).rejects.toThrow();
  expect(skills.rights()).toEqual({ allow: [], deny: [] });
});

test("[SKL-3] the decisions of the agent's own run stay, no matter who else takes its tools", async () => {
  await using workspace = await createWorkspace();
  const received: string[] = [];
  const skills = skillsWith({ findModel: async () => createScriptedModel([]) });
  for (const who of ["own", "other"]) {
    const ask: AgentAuthorization["ask"] = async ({ input }) => {
      received.push(who);
      return { type: "allowed", input };
    };
    skills.attach({ authorize: ask, ask });
  }
  await skills.tool.call({ skill: "ship" }, workspace.context());
  expect(received).toEqual(["own"]);
  expect(skills.rights().allow).toHaveLength(1);
});
