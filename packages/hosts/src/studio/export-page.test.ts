import { createAgentFold } from "@retinue/core/inspection/agent-fold.ts";
import type { ConversationEntry } from "@retinue/core/inspection/conversation-fold.ts";
import { inspectSession } from "@retinue/core/inspection/inspect-session.ts";
import { fitting } from "@retinue/core/kernel/live/collect-export.ts";
import { overviewOf } from "@retinue/core/kernel/live/session-overview.ts";
import type { ExportedSession } from "@retinue/core/kernel/live/session-update.ts";
import { parseHTML } from "linkedom";
import { describe, expect, test } from "vitest";
import { exportPage, loadPage } from "./export-page.ts";

const evil = `</script><script>alert(1)</script><!--<img src=x onerror="alert(2)">${"\u202e"}\u2028`;

function sample(text: string, entries = 2): ExportedSession {
  const fold = createAgentFold();
  fold.add({ type: "user", uuid: "u1", message: { role: "user", content: text } });
  const agents = [{ id: "main", folded: fold.result({ isLive: false, now: 1 }) }];
  const inspection = inspectSession({ id: "s", title: text, file: text, agents, notes: [], now: 1 });
  const list = Array.from({ length: entries }, (_, at): readonly [number, ConversationEntry] => [
    at,
    { type: "text", text },
  ]);
  return {
    session: overviewOf(inspection),
    agents: { main: { isLive: false, from: 0, count: entries, entries: list } },
  };
}

describe("the page of a session in one file", () => {
  test("whatever the transcript says is data and nothing else [LIM-4]", () => {
    const page = exportPage(sample(evil), loadPage());
    const { document } = parseHTML(page);
    expect([...document.querySelectorAll("script")].map((one) => one.getAttribute("type"))).toEqual([
      "application/json",
      null,
    ]);
    expect(document.querySelectorAll("img, iframe, link, object, form, [src], [style]")).toHaveLength(0);
    expect(page).not.toMatch(/[\u2028\u202e]/);
    const data: ExportedSession = JSON.parse(/id="data">(.*)<\/script>/.exec(page)?.[1] ?? "");
    expect(data.session.session.title).toContain("</script><script>alert(1)</script><!--<img");
  });

  test("lets nothing be loaded or run but its own style and script [LIM-4]", async () => {
    const page = exportPage(sample("Look"), loadPage());
    const policy = parseHTML(page).document.querySelector("meta[http-equiv]")?.getAttribute("content") ?? "";
    expect(policy).toMatch(/^default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; /);
    expect(policy).not.toContain("unsafe");
    for (const element of ["style", "script"]) {
      const text = new RegExp(`<${element}>([\\s\\S]*?)</${element}>`).exec(page)?.[1] ?? "";
      const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
      expect(policy).toContain(Buffer.from(digest).toString("base64"));
    }
    const style = /<style>([\s\S]*?)<\/style>/.exec(page)?.[1] ?? "";
    // A pattern of the picture itself is all that the style names.
    expect(style.replaceAll(/url\("?#hatch"?\)/g, "")).not.toMatch(/@import|url\(/);
  });

  test("stays below a size, and says what it leaves out [LIM-4]", () => {
    const whole = sample("x".repeat(5000), 300);
    expect(fitting(whole, 10_000_000)).toBe(whole);
    const cut = fitting(whole, 700_000);
    expect(JSON.stringify(cut).length).toBeLessThan(700_000);
    expect(cut.session.notes).toEqual([
      "To keep this file small, texts of more than 2000 characters are cut.",
    ]);
    const short = fitting(whole, 50_000);
    expect(JSON.stringify(short).length).toBeLessThan(50_000);
    expect(short.agents["main"]).toMatchObject({ from: 260, count: 300 });
    expect(short.session.notes.at(-1)).toContain("newest 40 entries");
  });
});
