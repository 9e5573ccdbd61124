import * as z from "zod";
import type { Tool, ToolOutcome } from "../tools/tool.ts";
import type { TeamConfig } from "./team-config.ts";

/** What the lead's tools ask of its session. */
export interface TeamAdministration {
  /** Creates a team; a text says why it cannot. */
  create(
    name: string,
    description: string,
  ): Promise<{ readonly config: TeamConfig; readonly file: string } | string>;
  /** Deletes the team with its board and mail; a text says why it cannot. */
  remove(options: { readonly force: boolean }): Promise<{ readonly name: string } | string>;
}

const createInput = z.object({
  team_name: z.string().min(1).describe("The name of the new team."),
  description: z.string().optional().describe("What the team is for."),
  agent_type: z.string().optional(),
});

const deleteInput = z.object({
  force: z.boolean().optional().describe("True also stops members that still work."),
});

/** TeamCreate and TeamDelete, for the lead. */
export function createTeamTools(administration: TeamAdministration): readonly Tool[] {
  const create: Tool<z.infer<typeof createInput>> = {
    name: "TeamCreate",
    description:
      "Creates a team that you lead. Start its members with the Agent tool and a `name`; they keep their context, share a board of tasks and write to each other, until they are shut down. Without it, the first named agent starts a team by itself.",
    effect: "coordinate",
    origin: "builtin",
    input: createInput,
    async call({ team_name, description = "" }) {
      const created = await administration.create(team_name, description);
      if (typeof created === "string") return failed(created);
      const { name, leadAgentId } = created.config;
      return {
        content: `The team ${JSON.stringify(name)} was created; you are its lead.`,
        data: { team_name: name, team_file_path: created.file, lead_agent_id: leadAgentId },
      };
    },
  };
  const remove: Tool<z.infer<typeof deleteInput>> = {
    name: "TeamDelete",
    description:
      "Deletes your team with its board and its mail. Refused while members are active, unless forced.",
    effect: "coordinate",
    origin: "builtin",
    input: deleteInput,
    async call({ force = false }) {
      const removed = await administration.remove({ force });
      if (typeof removed === "string") return failed(removed);
      const message = `The team ${JSON.stringify(removed.name)} was deleted.`;
      return { content: message, data: { success: true, message, team_name: removed.name } };
    },
  };
  return [create as Tool, remove as Tool];
}

function failed(reason: string): ToolOutcome {
  return { content: reason, isError: true, data: { success: false, message: reason } };
}
