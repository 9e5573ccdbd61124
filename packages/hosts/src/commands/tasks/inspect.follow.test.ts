import { createAgentFold } from "@retinue/core/inspection/agent-fold.ts";
import { inspectSession } from "@retinue/core/inspection/inspect-session.ts";
import type { Inspection } from "@retinue/core/inspection/inspection.ts";
import { describe, expect, test } from "vitest";
import type { CliHost } from "../../shared/cli-host.ts";
import { createPaint } from "../../shared/paint.ts";
import { followInspection } from "./inspect.ts";

const view = { paint: createPaint(false), width: 80, steps: false };

function picture(title: string, isLive: boolean): Inspection {
  const folded = createAgentFold().result({ isLive, now: 0 });
  return inspectSession({ id: "s", title, file: "/s", now: 0, notes: [], agents: [{ id: "main", folded }] });
}

/** Shows the pictures one after another; a function among them is called in its place. */
async function follow(
  pictures: readonly (Inspection | ((interrupt: () => void) => Inspection))[],
  output: Partial<CliHost["stdout"]> = {},
) {
  const written: string[] = [];
  let interrupt = (): void => undefined;
  const left = pictures.values();
  const host = {
    stdout: {
      write: (text: string, { over = 0 } = {}) =>
        void written.push(over === 0 ? text : `${over} lines: ${text}`),
      isTerminal: true,
      isColourAllowed: false,
      rows: 10,
      ...output,
    },
    onInterrupt(listener: () => void) {
      interrupt = listener;
      return () => undefined;
    },
  };
  const source = {
    async load() {
      const next = left.next().value ?? picture("too many", false);
      return typeof next === "function" ? next(() => interrupt()) : next;
    },
  };
  // The parts of the host that following uses.
  const code = await followInspection(source, host as unknown as CliHost, view);
  return { code, written };
}

describe("[CLI-3] following a session", () => {
  test("paints over what it painted, no more than the screen holds, and ends with the session", async () => {
    const { code, written } = await follow([
      picture("One", true),
      picture("Two", true),
      picture("Three", false),
    ]);
    expect(code).toBe(0);
    expect(written).toHaveLength(3);
    const [first = "", second = "", third = ""] = written;
    const rows = first.split("\n").length - 1;
    expect(rows).toBeLessThan(10);
    expect(first).toMatch(/^One\n/);
    expect(second.startsWith(`${rows} lines: Two\n`)).toBe(true);
    expect(third).toContain("Three\n");
  });

  test("paints nothing that is the same", async () => {
    const same = picture("Same", true);
    expect((await follow([same, same, picture("End", false)])).written).toHaveLength(2);
  });

  test("writes only the last picture where nothing can be painted over", async () => {
    const { written } = await follow([picture("One", true), picture("End", false)], { isTerminal: false });
    expect(written).toHaveLength(1);
    expect(written[0]).toMatch(/^End\n/);
  });

  test("ends when the person leaves, or when its output is not read any more", async () => {
    const leave = (interrupt: () => void): Inspection => {
      interrupt();
      return picture("One", true);
    };
    expect((await follow([leave])).code).toBe(130);
    const gone = new AbortController();
    const { code } = await follow(
      [
        () => {
          gone.abort();
          return picture("One", true);
        },
      ],
      { closed: gone.signal },
    );
    expect(code).toBe(0);
  });
});
