import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createOpenCodes } from "../studio/studio-keys.ts";
import { openBrowser } from "./open-browser.ts";

test.skipIf(process.platform === "win32")(
  "the desktop's opener gets the address as one word [STU-1]",
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "retinue-open-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const seen = join(folder, "seen");
    const program = join(folder, "xdg-open");
    writeFileSync(program, `#!/bin/sh\nprintf '%s|' "$@" > "${seen}.new" && mv "${seen}.new" "${seen}"\n`);
    chmodSync(program, 0o755);
    const environment = { PATH: `${folder}:${process.env["PATH"]}` };
    expect(
      await openBrowser("http://127.0.0.1:1/?open=a&b c", { environment, platform: "linux" }),
    ).toBeUndefined();
    await expect.poll(() => existsSync(seen)).toBe(true);
    expect(readFileSync(seen, "utf8")).toBe("http://127.0.0.1:1/?open=a&b c|");
    rmSync(seen);
    const chosen = { PATH: process.env["PATH"], BROWSER: program };
    expect(
      await openBrowser("http://127.0.0.1:2/", { environment: chosen, platform: "linux" }),
    ).toBeUndefined();
    await expect.poll(() => existsSync(seen)).toBe(true);
    expect(readFileSync(seen, "utf8")).toBe("http://127.0.0.1:2/|");
  },
);

test("a machine without an opener is reported, not thrown [STU-1]", async () => {
  const environment = { PATH: "/nonexistent" };
  expect(await openBrowser("http://127.0.0.1:1/", { environment, platform: "linux" })).toBe(
    "there is no xdg-open on the PATH",
  );
});

test("a code opens the page once, and only within a minute [STU-1]", () => {
  let now = 0;
  const codes = createOpenCodes(() => now);
  const [used, late] = [codes.create(), codes.create()];
  expect([codes.take(used), codes.take(used)]).toEqual([true, false]);
  now = 60_000;
  expect(codes.take(late)).toBe(false);
});
