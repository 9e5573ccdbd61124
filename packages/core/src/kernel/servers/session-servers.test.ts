import type { HeldServer } from "@retinue/config/settings/choose-mcp-servers.ts";
import { expect, test } from "vitest";
import { heldNotices } from "./session-servers.ts";

function held(name: string, code: HeldServer["code"], reason: string): HeldServer {
  return { entry: { config: { name }, scope: "project" } as HeldServer["entry"], code, reason };
}

test("a server that was rejected or disabled is not reported at each start [MCP-1]", () => {
  const servers = [
    held("rejected", "rejected", "`disabledMcpjsonServers` names it"),
    held("disabled", "disabled", "it is `disabled` in its configuration"),
    held("unusable", "unusable", "it names no command"),
  ];
  expect(heldNotices({ held: servers })).toEqual([
    'The MCP server "unusable" is not connected: it names no command.',
  ]);
});

test("what waits for trust is not reported where the host shows it [MCP-1]", () => {
  const servers = [held("db", "untrusted", "the folder is not trusted")];
  expect(heldNotices({ held: servers })).toHaveLength(1);
  expect(heldNotices({ held: servers }, { showsTrust: true })).toEqual([]);
});
