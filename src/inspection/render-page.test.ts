import fc from "fast-check";
import { parseHTML } from "linkedom";
import { describe, expect, test } from "vitest";
import type { JsonRecord } from "../foundation/json-record.ts";
import { createAgentFold } from "./agent-fold.ts";
import { inspectSession } from "./inspect-session.ts";
import type { Inspection } from "./inspection.ts";
import { renderPage } from "./render-page.ts";

const start = Date.parse("2026-10-01T10:00:00.000Z");
const evil = `</pre></td></script><script>alert(1)</script><img src=x onerror="alert(2)">" onclick='x' \`${"\u202e"}\u0000 https://evil.example/a`;

function linesOf(text: string, calls: number, id: string): readonly JsonRecord[] {
  const at = (seconds: number) => new Date(start + seconds * 1000).toISOString();
  return Array.from({ length: calls }, (_, index): readonly JsonRecord[] => {
    const callId = `${id}-${index}`;
    return [
      {
        type: "assistant",
        uuid: `a-${callId}`,
        timestamp: at(index * 2),
        durationMs: 900,
        costUSD: 0.001,
        message: {
          id: `m-${callId}`,
          model: text,
          content: [
            { type: "text", text },
            { type: "tool_use", id: callId, name: text, input: { command: text } },
          ],
          usage: { input_tokens: 10, output_tokens: 5 },
        },
      },
      {
        type: "user",
        uuid: `r-${callId}`,
        timestamp: at(index * 2 + 1),
        toolCall: { startedAt: start + index * 2000, durationMs: 1000, denied: text },
        message: { content: [{ type: "tool_result", tool_use_id: callId, content: text, is_error: true }] },
      },
    ];
  }).flat();
}

function sample(text: string, { agents = 3, calls = 2, isLive = false } = {}): Inspection {
  const parts = Array.from({ length: agents }, (_, index) => {
    const id = index === 0 ? "main" : `agent${index}`;
    const fold = createAgentFold();
    for (const line of linesOf(text, calls, id)) fold.add(line);
    return {
      id,
      folded: fold.result({ isLive, now: start }),
      known: { agentType: text, description: text },
    };
  });
  return inspectSession({
    id: "s",
    title: text,
    file: text,
    agents: parts,
    notes: [text],
    now: start,
  });
}

describe("[LIM-4] the page of a session", () => {
  test("holds every agent, its steps, what was refused, and says that it is a snapshot", () => {
    const { document } = parseHTML(renderPage(sample("Look", { isLive: true })));
    expect([...document.querySelectorAll("details summary b")].map((one) => one.textContent)).toEqual([
      "main",
      "Look agent1",
      "Look agent2",
    ]);
    expect(document.querySelectorAll("details")[1]?.querySelectorAll("tbody tr")).toHaveLength(4);
    expect(document.querySelectorAll(".row svg rect.refused").length).toBeGreaterThan(0);
    expect(document.querySelectorAll("section ul li")).toHaveLength(6 + 3 + 1);
    expect(document.querySelector("header")?.textContent).toContain("A snapshot of 2026-10-01T10:00:00.000Z");
    expect(document.querySelector("header")?.textContent).toContain("still open");
    expect(document.querySelector(".row a")?.getAttribute("href")).toBe("#agent-0");
    expect(document.querySelector("#agent-0")?.tagName).toBe("DETAILS");
  });

  test("whatever the transcript says is text and nothing else", () => {
    const page = renderPage(sample(evil));
    const { document } = parseHTML(page);
    expect(document.querySelectorAll("script")).toHaveLength(1);
    expect(document.querySelectorAll("img, iframe, link, object, form, a[href^=http]")).toHaveLength(0);
    expect(document.querySelector("h1")?.textContent).toContain("</script><script>alert(1)</script>");
    expect(page).not.toMatch(/[\u0000\u202e]/);
    const names = [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames());
    expect(names.filter((name) => /^(?:on|style$|src$)/.test(name))).toEqual([]);
  });

  test("for any text, the elements are the same as for a harmless one", () => {
    const shape = (page: string): string =>
      [...parseHTML(page).document.querySelectorAll("*")]
        .map((one) => `${one.tagName} ${one.getAttributeNames().sort().join()}`)
        .join("\n");
    const stripControlCharacters = shape(renderPage(sample("x", { agents: 2, calls: 1 })));
    const text = fc.stringMatching(/^[a-z<>&"'`/=! -]{1,40}$/).filter((made) => made.trim() !== "");
    fc.assert(
      fc.property(text, (made) => {
        expect(shape(renderPage(sample(`x${made}x`, { agents: 2, calls: 1 })))).toBe(stripControlCharacters);
      }),
      { numRuns: 60 },
    );
  });

  test("lets nothing be loaded or run but its own style and script", async () => {
    const page = renderPage(sample("Look"));
    const { document } = parseHTML(page);
    const policy = document.querySelector("meta[http-equiv]")?.getAttribute("content") ?? "";
    expect(policy).toMatch(/^default-src 'none'; style-src 'sha256-\S+'; script-src 'sha256-\S+'; /);
    expect(policy).not.toContain("unsafe");
    for (const element of ["style", "script"]) {
      const text = new RegExp(`<${element}>([\\s\\S]*)</${element}>`).exec(page)?.[1] ?? "";
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
      expect(policy).toContain(Buffer.from(digest).toString("base64"));
    }
    const own = page.replaceAll(/<pre>[\s\S]*?<\/pre>|<td>[\s\S]*?<\/td>/g, "");
    expect(own).not.toMatch(/https?:|url\(|@import/);
  });

  test("stays a few megabytes with 200 agents and 10,000 calls, and says what it leaves out", () => {
    const many = renderPage(
      sample("A text of some length that a command may have", { agents: 200, calls: 50 }),
    );
    expect(many.length).toBeLessThan(8_000_000);
    expect(many.match(/<details /g)).toHaveLength(200);
    const long = renderPage(sample("x".repeat(5000), { agents: 1, calls: 30_000 }));
    expect(long.length).toBeLessThan(16_000_000);
    expect(long).toContain("40000 steps are left out here");
  });
});
