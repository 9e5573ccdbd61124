import { expect, test } from "vitest";
import { createSdkStage, resultOf } from "./sdk-stage.ts";

test("a session that leads a team has each tool once, and is over when its members are idle and their mail was read [DRP-1, TEA-1]", async () => {
  const isMember = (request: { readonly system: readonly string[] }): boolean =>
    request.system.join("\n").includes('You are "m0", a teammate');
  const stage = await createSdkStage([
    {
      calls: [
        { name: "TaskCreate", input: { subject: "look", description: "d" } },
        { name: "Agent", input: { description: "m0", prompt: "Look.", name: "m0" } },
      ],
    },
    { match: isMember, calls: [{ name: "SendMessage", input: { to: "team-lead", message: "FOUND IT" } }] },
    { match: isMember, text: "Idle now." },
    // How many messages of the member, and of its being idle, arrive together is not decided.
    { text: "Waiting.", times: "any" },
  ]);
  stage.write(".claude/settings.json", JSON.stringify({ teams: true, teammateMode: "in-process" }));
  const finished = await stage.run("go", {
    permissionMode: "bypassPermissions",
    allowDangerouslySkipPermissions: true,
    settingSources: ["project"],
  });
  expect(resultOf(finished)).toMatchObject({ subtype: "success", is_error: false });
  const first = stage.provider.requests[0]?.request.tools.map(({ name }) => name) ?? [];
  expect(first).toEqual([...new Set(first)]);
  expect(first).toContain("TeamCreate");
  const asked = stage.provider.requests.map(({ request }) => request).filter((one) => !isMember(one));
  expect(JSON.stringify(asked.at(-1)?.messages)).toContain("FOUND IT");
});
