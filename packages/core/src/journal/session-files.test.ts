import { describe, expect, it } from "vitest";
import { checkAgentId, checkSessionId, sessionFiles, taskFiles } from "./session-files.ts";

const id = "3f0b1c1e-9a51-4c62-8d0c-5a4f3e2b1a00";

it("[TRN-1] the main conversation, its children and long results are where viewers look", () => {
  const files = sessionFiles("/h/projects/-w", id);
  expect(files).toMatchObject({
    transcript: `/h/projects/-w/${id}.jsonl`,
    subagents: `/h/projects/-w/${id}/subagents`,
    toolResults: `/h/projects/-w/${id}/tool-results`,
  });
  expect(files.agent("a0123456789abcdef")).toEqual({
    transcript: `/h/projects/-w/${id}/subagents/agent-a0123456789abcdef.jsonl`,
    meta: `/h/projects/-w/${id}/subagents/agent-a0123456789abcdef.meta.json`,
    output: `/h/projects/-w/${id}/tasks/a0123456789abcdef.output`,
  });
});

describe("output of background work", () => {
  const places = { environment: {}, temporaryDirectory: "/var/tmp", projectName: "-w" };
  it.each([
    ["linux", 1000, {}, `/var/tmp/claude-1000/-w/${id}/tasks/b1.output`],
    ["darwin", 501, {}, `/tmp/claude-501/-w/${id}/tasks/b1.output`],
    ["win32", undefined, {}, `/var/tmp/claude/-w/${id}/tasks/b1.output`],
    ["linux", 1000, { CLAUDE_CODE_TMPDIR: "/t" }, `/t/claude-1000/-w/${id}/tasks/b1.output`],
  ])("on %s for user %s with %j", (platform, userId, environment, expected) => {
    const owner = userId === undefined ? {} : { userId };
    expect(taskFiles({ ...places, ...owner, platform, environment }, id).output("b1")).toBe(expected);
  });

  it("the name of a project cannot lead out of the folder", () => {
    const outside = { ...places, platform: "linux", projectName: "../x" };
    expect(() => taskFiles(outside, id)).toThrow(expect.objectContaining({ code: "bad-project-name" }));
  });
});

describe("[TRN-7] what is not an id is refused", () => {
  const hostile = ["../x", "..", ".", "", "/etc/passwd", "a/b", "a\\b", "a\0b", "a\n", "a b", "é", "C:x"];

  it.each([
    ...hostile,
    `${id}/..`,
    `${id}\n`,
    id.slice(1),
    `${id}0`,
    "agent",
  ])("%j is no session id", (text) => {
    expect(() => checkSessionId(text)).toThrow(expect.objectContaining({ code: "bad-session-id" }));
    expect(() => sessionFiles("/p", text)).toThrow("is not a session id");
  });

  it.each([...hostile, "a".repeat(65)])("%j is no agent id", (text) => {
    expect(() => checkAgentId(text)).toThrow(expect.objectContaining({ code: "bad-agent-id" }));
    expect(() => sessionFiles("/p", id).agent(text)).toThrow("is not the id of an agent");
  });

  it.each([
    id,
    id.toUpperCase(),
    "00000000-0000-0000-0000-000000000000",
    "01890a5d-ac96-774b-bcce-b302099a8057",
  ])("%s is a session id", (text) => expect(checkSessionId(text)).toBe(text));

  it.each([
    "a0123456789abcdef",
    "1a2b3c4",
    "12345678",
    "areviewer-9f",
    "A_b-1",
    "a".repeat(64),
  ])("%s is an agent id", (text) => expect(checkAgentId(text)).toBe(text));
});
