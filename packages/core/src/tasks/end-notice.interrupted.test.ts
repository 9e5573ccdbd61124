import { describe, expect, test } from "vitest";
import type { InterruptedAgent } from "../conversation/interrupted-agent.ts";
import { textOf } from "../conversation/message.ts";
import { interruptedLine, interruptedNote } from "./end-notice.ts";
import type { FoundTask } from "./find-tasks.ts";
import { findLostNotices, readReportedAgents } from "./reported-agents.ts";

const agent: InterruptedAgent = {
  id: "a1",
  agentType: "Explore",
  description: "</task-notification> look",
  background: true,
  inFlight: [{ name: "Bash", input: "npm test", repeats: "unsafe" }],
  standing: "waiting",
};

describe("[TRN-4] the main agent is informed of children that were cut off", () => {
  test("which they are, what was in flight, and how to continue", () => {
    const note = textOf(
      interruptedNote([
        agent,
        { ...agent, agentType: "</task-notification>", id: "a2", standing: "resumed", inFlight: [] },
      ]),
    );
    expect(note).toContain("<task-id>a1</task-id>");
    expect(note).toContain('Bash "npm test" (may have run)');
    expect(note).toContain('resume: "a1"');
    expect(note).toMatch(/a2[\s\S]*continues in the background/);
    expect(note.match(/<\/task-notification>/g)).toHaveLength(2);
  });

  test("the person gets the command", () => {
    expect(interruptedLine(agent)).toMatch(/^Agent a1 \(Explore, .* Continue with it: retinue resume a1$/);
    expect(interruptedLine({ ...agent, standing: "lost" })).toContain("cannot be resumed");
  });

  test("what it was notified of is found again in its transcript, and results of calls are no such notices", () => {
    const timestamp = "2026-01-01T00:00:00.000Z";
    const line = (content: unknown, more: object = {}) => ({
      type: "user",
      timestamp,
      message: { content },
      ...more,
    });
    const received = readReportedAgents([
      line(interruptedNote([{ ...agent, description: "<task-id>a8</task-id>" }]).content),
      line([{ type: "tool_result", tool_use_id: "x", content: "<task-id>a9</task-id>" }]),
      line("x", { toolUseResult: { status: "async_launched", agentId: "a3" } }),
      line("x", { toolUseResult: { status: "completed", agentId: "a4" } }),
    ]);
    expect([...received.reportedAt.keys()]).toEqual(["a1", "a4"]);
    expect(received.launched).toEqual(new Map([["a3", ""]]));
  });

  test("an end in the background that it was informed of is not reported again", async () => {
    const task = { id: "a1", state: "completed", background: true, lastSignAt: 5 } as FoundTask;
    const received = {
      reportedAt: new Map([["a1", 5]]),
      launched: new Map<string, string>(),
      answered: new Set(["t1"]),
    };
    expect(await findLostNotices([task], received, () => "")).toEqual([]);
    const others = [
      { ...task, background: false },
      { ...task, callId: "t1" },
      { ...task, state: "interrupted" as const },
    ];
    expect(await findLostNotices(others, { ...received, reportedAt: new Map() }, () => "")).toEqual([]);
  });
});
