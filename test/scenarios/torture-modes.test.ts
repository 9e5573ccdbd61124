import { expect, test } from "vitest";
import { containerObstacle, moveContainer } from "../torture/containers.ts";
import { runWithDescriptors } from "../torture/descriptors.ts";
import { cutPower } from "../torture/power-cut.ts";
import { powerCutObstacle } from "../torture/power-cut-disk.ts";
import { startTortureProvider } from "../torture/torture-provider.ts";

test.runIf(powerCutObstacle() === undefined)(
  "after a power cut no effect is without its record, and nothing is done twice [TRN-2]",
  async () => {
    await using provider = await startTortureProvider();
    const { effects, unrecorded, repeated } = await cutPower({
      provider,
      after: { commands: 2 },
      continues: false,
    });
    expect({ unrecorded, repeated }).toEqual({ unrecorded: [], repeated: [] });
    expect(effects).toBeGreaterThan(0);
  },
  60_000,
);

test.runIf(containerObstacle() === undefined).each(["outside", "frozen"] as const)(
  "a session that was begun in a container continues elsewhere: %s [TRN-4]",
  async (move) => {
    await using provider = await startTortureProvider();
    expect(await moveContainer(move, provider)).toMatchObject({ move });
  },
  60_000,
);

test.skipIf(process.platform === "win32").each(["children", "embedded"] as const)(
  "with few file descriptors nothing crashes: %s [SDK-3]",
  async (subject) => {
    await using provider = await startTortureProvider("children");
    const { outcome, output } = await runWithDescriptors(subject, 50, { url: provider.url, seconds: 1 });
    expect(outcome, output).not.toBe("crashed");
  },
  90_000,
);
