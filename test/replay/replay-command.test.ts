import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createPlace, type Place, runInProcess } from "../scenarios/run-command.ts";

/** The transcript of a session of the offline model with one call: two requests. */
async function record(place: Place): Promise<string> {
  place.write("README.md", "hello\n");
  const { code } = await runInProcess(place, ["-p", "read README.md", "--model", "offline"]);
  expect(code).toBe(0);
  const folder = join(place.home, ".claude/projects", place.cwd.replace(/[^A-Za-z0-9]/g, "-"));
  return join(folder, readdirSync(folder).find((name) => name.endsWith(".jsonl")) ?? "");
}

describe("a record with gaps is no success", () => {
  test("each line that is damaged is reported, and the code is 1 [RPL-1]", async () => {
    const place = createPlace();
    const file = await record(place);
    const whole = readFileSync(file, "utf8");
    expect(await runInProcess(place, ["replay"])).toMatchObject({
      code: 0,
      out: expect.stringMatching(/2 of 2 requests.*\nNo differences\.\n$/),
    });
    const lines = whole.trimEnd().split("\n");
    expect(lines.length).toBeGreaterThan(8);
    for (const index of lines.keys()) {
      writeFileSync(file, `${lines.with(index, "{garbage").join("\n")}\n`);
      const { code, out, err } = await runInProcess(place, ["replay"]);
      expect
        .soft([index, code, `${out}${err}`])
        .toEqual([index, 1, expect.stringContaining("1 line cannot be read")]);
      expect.soft(`${index} ${out}`).not.toContain("No differences.\n");
    }
  });

  test("one that was cut says that nothing was compared, as text and as JSON, and is not saved [RPL-1]", async () => {
    const place = createPlace();
    const file = await record(place);
    writeFileSync(file, readFileSync(file).subarray(0, 900));
    const { code, out } = await runInProcess(place, ["replay"]);
    expect(code).toBe(1);
    expect(out).toContain("the last line was cut off");
    expect(out).toContain("Nothing was compared");
    expect(out).not.toContain("No differences.\n");
    const json = await runInProcess(place, ["replay", "--json"]);
    expect(json.code).toBe(1);
    expect(JSON.parse(json.out)).toMatchObject({ damage: [expect.stringContaining("is damaged")] });
    const saved = await runInProcess(place, ["replay", "--save", "saved"]);
    expect(saved).toMatchObject({ code: 1, err: expect.stringContaining("cannot become a test") });
    expect(readdirSync(place.cwd)).not.toContain("saved");
  });

  test("requests that were not recorded are not taken as the same [RPL-1]", async () => {
    const place = createPlace();
    const file = await record(place);
    const lines = readFileSync(file, "utf8").trimEnd().split("\n");
    const kept = lines.filter((line) => !line.includes('"retinue-request"'));
    expect(kept.length).toBe(lines.length - 2);
    writeFileSync(file, `${kept.join("\n")}\n`);
    const { code, out } = await runInProcess(place, ["replay"]);
    expect(code).toBe(1);
    expect(out).toContain("2 requests could not be compared");
  });
});

describe("a folder that nothing can be saved in is refused in one sentence", () => {
  test("below a file, below /proc, and through a link to it [RPL-1]", async () => {
    const place = createPlace();
    await record(place);
    mkdirSync(join(place.cwd, "links"));
    symlinkSync("/proc", join(place.cwd, "links/proc"));
    const save = (folder: string) => runInProcess(place, ["replay", "--save", folder]);
    const file = await save("README.md/x");
    expect(file).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^[^\n]*Could not write .*README\.md\/x/),
    });
    expect(file.err).not.toMatch(/went wrong|ENOTDIR/);
    for (const folder of ["/proc/x", "/sys/x/y", "links/proc/x", `${"../".repeat(20)}proc/x`]) {
      expect(await save(folder)).toMatchObject({
        code: 1,
        err: expect.stringContaining("part of the system"),
      });
    }
  });
});
