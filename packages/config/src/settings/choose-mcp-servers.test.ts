import { describe, expect, test } from "vitest";
import { readServer } from "../mcp/mcp-server-config.ts";
import {
  type ApprovalFacts,
  chooseMcpServers,
  decideProjectServer,
  readApprovalSettings,
} from "./choose-mcp-servers.ts";
import type { McpEntry } from "./load-mcp-entries.ts";
import { readSettings, type SettingsScope } from "./settings.ts";

const server = { name: "db", hash: "A", replacesOwn: false };

function facts(
  changes: Partial<ApprovalFacts["approvals"]> & { trusted?: boolean; attended?: boolean } = {},
) {
  const { trusted = true, attended = false, ...approvals } = changes;
  return {
    trusted,
    attended,
    approvals: {
      enabled: new Set<string>(),
      allEnabled: false,
      disabled: new Set<string>(),
      recorded: new Map(),
      ...approvals,
    },
  } satisfies ApprovalFacts;
}

const verdict = (given: Parameters<typeof facts>[0], changed: Partial<typeof server> = {}) => {
  const answer = decideProjectServer({ ...server, ...changed }, facts(given));
  return answer.type === "hold" ? answer.code : answer.type;
};
const enabled = new Set(["db"]);
const recorded = (hash: string) => new Map([["db", hash]]);

describe("[MCP-1, PRM-11] a server of the project", () => {
  test.each([
    [
      "is not started in a folder that is not trusted, whatever was approved",
      { trusted: false, allEnabled: true, enabled, recorded: recorded("A") },
      "untrusted",
    ],
    ["is not asked about in a folder that is not trusted", { trusted: false, attended: true }, "untrusted"],
    [
      "is not started when it was rejected, even if it was approved too",
      { enabled, disabled: enabled, recorded: recorded("A") },
      "rejected",
    ],
    [
      "is started when it is the one that was approved",
      { attended: true, recorded: recorded("A") },
      "connect",
    ],
    [
      "is asked about again when it changed since",
      { attended: true, enabled, recorded: recorded("B") },
      "ask",
    ],
    [
      "is held back when it changed and nobody can be asked",
      { enabled, allEnabled: true, recorded: recorded("B") },
      "changed",
    ],
    [
      "is asked about when no one knows what was approved",
      { attended: true, enabled, recorded: "unreadable" as const },
      "ask",
    ],
    [
      "is held back when no one knows and nobody can be asked",
      { recorded: "unreadable" as const },
      "changed",
    ],
    ["is started when a person has named it", { attended: true, enabled }, "connect"],
    ["is started when a person wants all of them", { attended: true, allEnabled: true }, "connect"],
    ["is asked about otherwise", { attended: true }, "ask"],
    ["is started in a trusted folder when nobody can be asked", {}, "connect"],
  ])("%s", (_, given, expected) => {
    expect(verdict(given)).toBe(expected);
  });

  test("does not take the place of the person's own without a word from them", () => {
    expect(verdict({}, { replacesOwn: true })).toBe("not-approved");
    expect(verdict({ enabled }, { replacesOwn: true })).toBe("connect");
  });

  test("is not approved by the settings that the repository commits, but can be rejected there", () => {
    const layer = (scope: SettingsScope, value: Readonly<Record<string, unknown>>) => ({
      source: { scope, anchor: "/" },
      settings: readSettings(value, { scope }).settings,
    });
    const approvals = {
      enableAllProjectMcpServers: true,
      enabledMcpjsonServers: ["db"],
      disabledMcpjsonServers: ["x"],
    };
    expect(readApprovalSettings([layer("project", approvals)])).toEqual({
      enabled: new Set(),
      allEnabled: false,
      disabled: new Set(["x"]),
    });
    for (const scope of ["user", "local", "flags", "managed"] as const)
      expect(readApprovalSettings([layer(scope, approvals)])).toMatchObject({ enabled, allEnabled: true });
  });
});

describe("[MCP-1, PRM-11] a server of the project that wants a key of a model provider", () => {
  const keys = ["ANTHROPIC_API_KEY"];

  test.each([
    ["is asked about by name, although its name was enabled", { attended: true, enabled }, "ask"],
    ["is held back where nobody can be asked", {}, "hold"],
    ["is held back where all servers were enabled", { allEnabled: true }, "hold"],
    ["is started when this definition was approved", { recorded: recorded("A") }, "connect"],
  ] as const)("%s", (_, given, expected) => {
    const answer = decideProjectServer({ ...server, keys }, facts(given));
    expect(answer.type).toBe(expected);
    if (answer.type !== "connect") expect(answer.reason).toContain("ANTHROPIC_API_KEY");
  });

  test.each([
    [{ type: "http", url: `https://x.test/\${ANTHROPIC_API_KEY}` }],
    [{ type: "http", url: "https://x.test", headers: { A: `Bearer \${OPENAI_API_KEY:-none}` } }],
    [{ command: "run", args: [`--key=\${RETINUE_MCP_TOKEN}`] }],
    [{ command: "run", env: { KEY: `\${MISTRAL_API_KEY}` } }],
  ])("is seen in %j", (written) => {
    const config = readServer("db", written, ["db"], []);
    const entry: McpEntry = { config, scope: "project", fromRepository: true, locate: () => undefined };
    const chosen = (fromRepository: boolean, needsTrust: boolean) =>
      chooseMcpServers([{ ...entry, fromRepository, needsTrust }], {
        ...facts(),
        policy: { allowedByOrganisation: false, denied: [], pluginsOnly: false },
        strict: false,
        exclusive: false,
        lookup: () => "secret",
      });
    for (const held of [chosen(true, false), chosen(false, true)]) {
      expect(held.servers).toEqual([]);
      expect(held.held[0]?.reason).toMatch(
        /asks for (?:ANTHROPIC_API_KEY|OPENAI_API_KEY|RETINUE_MCP_TOKEN|MISTRAL_API_KEY)/,
      );
    }
    expect(chosen(false, false).servers).toHaveLength(1);
  });
});
