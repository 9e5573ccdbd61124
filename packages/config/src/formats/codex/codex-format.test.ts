import { describe, expect, test } from "vitest";
import { codexFormat } from "./codex-format.ts";

const role = 'developer_instructions = "Research."\n';

/** What the settings of Codex declare, with the files that they name. */
function read(config: string, files: Readonly<Record<string, string>> = {}) {
  const { agents, diagnostics } = codexFormat.read(config, {
    file: "/p/.codex/config.toml",
    relative: "config.toml",
    include: (name) => files[name],
  });
  return {
    agents: agents.map(({ agent: { id, description, prompt, origin } }) => [
      id,
      description,
      prompt,
      origin.file,
    ]),
    codes: diagnostics.map(({ code, line }) => `${code} ${line}`),
  };
}

describe("roles that config.toml declares", () => {
  test("have the name and description of their table, unless their file has its own [PRT-1]", () => {
    const config =
      '[agents]\nmax_depth = 1\n\n[agents.researcher]\ndescription = "Researches."\nconfig_file = "roles/r.toml"\n\n[agents.other]\ndescription = "d"\nconfig_file = "roles/o.toml"\n';
    const files = { "roles/r.toml": role, "roles/o.toml": `name = "named"\ndescription = "Own."\n${role}` };
    expect(read(config, files)).toEqual({
      agents: [
        ["researcher", "Researches.", "Research.", "/p/.codex/roles/r.toml"],
        ["named", "Own.", "Research.", "/p/.codex/roles/o.toml"],
      ],
      codes: [],
    });
  });

  test("that are found in their folder too are read once [PRT-1]", () => {
    const config =
      '[agents.a]\nconfig_file = "./agents/a.toml"\n[agents.b]\ndescription = "B."\nconfig_file = "agents/b.toml"\n';
    const files = { "./agents/a.toml": `name = "a"\ndescription = "A."\n${role}`, "agents/b.toml": role };
    expect(read(config, files).agents).toEqual([["b", "B.", "Research.", "/p/.codex/agents/b.toml"]]);
  });

  test("are not missed where they are found in their folder without a name [PRT-1]", () => {
    const config = '[agents.b]\ndescription = "B."\nconfig_file = "./agents/team/b.toml"\n';
    const found = (relative: string) =>
      codexFormat.read(role, {
        file: `/p/.codex/agents/${relative}`,
        relative,
        include: (name) =>
          name === `${"../".repeat(relative.split("/").length)}config.toml` ? config : undefined,
      });
    expect(found("team/b.toml")).toEqual({ agents: [], diagnostics: [] });
    expect(found("c.toml").diagnostics.map(({ code }) => code)).toEqual(["no-name", "no-description"]);
  });

  test("without a file, or with one outside of the project, are left out with a place [PRT-1]", () => {
    const config = '[agents.a]\ndescription = "d"\n\n[agents.b]\nconfig_file = "../../x.toml"\n';
    expect(read(config)).toEqual({ agents: [], codes: ["unreadable-file 1", "unreadable-file 4"] });
  });

  test("do not count where agents are switched off, and other settings are none [PRT-1]", () => {
    const files = { "r.toml": role };
    expect(read('[agents]\nenabled = false\n[agents.a]\nconfig_file = "r.toml"\n', files)).toEqual({
      agents: [],
      codes: [],
    });
    expect(read('model = "gpt-5"\n[mcp_servers.x]\ncommand = "x"\n')).toEqual({ agents: [], codes: [] });
  });
});
