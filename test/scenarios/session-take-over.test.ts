import type { ChildProcess } from "node:child_process";
import { randomUUID } from "node:crypto";
import { textOf } from "@retinue/core/conversation/message.ts";
import { type FakeProvider, startFakeProvider } from "@retinue/testing/fake-provider.ts";
import type { StepFunction } from "@retinue/testing/script.ts";
import { describe, expect, onTestFinished, test } from "vitest";
import { createPlace, type Place, readJsonLines, runCommand } from "./run-command.ts";

const streaming = ["--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

async function provide(respond: StepFunction): Promise<FakeProvider> {
  const provider = await startFakeProvider({ respond });
  onTestFinished(() => provider[Symbol.asyncDispose]());
  return provider;
}

const echo: StepFunction = ({ messages }) => {
  const last = messages.at(-1);
  return `Answer to ${last === undefined ? "nothing" : textOf(last).trim()}.`;
};

/** A process of its own with a session that stays open between prompts. */
function openHost(place: Place, { url }: FakeProvider, session: string) {
  const environment = { ANTHROPIC_BASE_URL: url, ANTHROPIC_API_KEY: "x" };
  let child: ChildProcess | undefined;
  let out = "";
  const waiting = new Set<() => void>();
  const finished = runCommand(place, ["-p", ...streaming, "--session-id", session], {
    environment,
    input: { open: true },
    started: (own) => {
      child = own;
    },
    watch: (text) => {
      out = text;
      for (const look of waiting) look();
    },
  });
  const results = () => readJsonLines(out.slice(0, out.lastIndexOf("\n") + 1)).filter(isResult);
  return {
    results,
    say: (text: string) =>
      void child?.stdin?.write(
        `${JSON.stringify({ type: "user", message: { role: "user", content: text } })}\n`,
      ),
    /** Resolves when so many prompts have their result, or the process has ended. */
    async answered(count: number) {
      const enough = new Promise<void>((resolve) => {
        const look = (): void => {
          if (results().length >= count) resolve();
        };
        waiting.add(look);
        look();
      });
      await Promise.race([enough, finished]);
      return results();
    },
    end: () => {
      child?.stdin?.end();
      return finished;
    },
    resume: (prompt: string, ...more: string[]) =>
      runCommand(place, ["-p", prompt, ...(more.length > 0 ? more : ["--resume", session])], { environment }),
  };
}

const isResult = ({ type }: Record<string, unknown>): boolean => type === "result";

/** The prompts and answers of the only session, and whether all lines have ids of their own. */
function conversationIn(place: Place, session: string) {
  const lines = place.transcripts().get(session) ?? [];
  const ids = lines.flatMap(({ uuid }) => (typeof uuid === "string" ? [uuid] : []));
  const said = lines.flatMap(({ type, message }) => {
    if (type !== "user" && type !== "assistant") return [];
    const { content } = message as { content: string | { text?: string }[] };
    return [typeof content === "string" ? content : content.map(({ text }) => text ?? "").join("")];
  });
  return { said, areUnique: new Set(ids).size === ids.length };
}

describe("a session that another process has open and does not work on [TRN-2, TRN-4]", () => {
  test.each([
    ["--resume"],
    ["--continue"],
  ])("is taken with %s, and the former owner says so instead of writing", async (way) => {
    const place = createPlace();
    const provider = await provide(echo);
    const session = randomUUID();
    const host = openHost(place, provider, session);
    host.say("one");
    await host.answered(1);
    const second = await host.resume("two", ...(way === "--resume" ? [way, session] : [way]));
    expect(second).toMatchObject({ code: 0, out: "Answer to two.\n" });
    host.say("three");
    const [, last] = await host.answered(2);
    expect(last).toMatchObject({ is_error: true });
    expect(JSON.stringify(last)).toContain("Another process has taken over");
    await host.end();
    expect(conversationIn(place, session)).toEqual({
      said: ["one", "Answer to one.", "two", "Answer to two."],
      areUnique: true,
    });
    expect(provider.requests).toHaveLength(2);
  });

  test("while it works it is refused with a way out, and its turn ends undisturbed", async () => {
    const place = createPlace();
    const begun = Promise.withResolvers<void>();
    const answer = Promise.withResolvers<string>();
    const provider = await provide((request) => {
      if (request.messages.length > 1) return echo(request);
      begun.resolve();
      return answer.promise;
    });
    const session = randomUUID();
    const host = openHost(place, provider, session);
    host.say("one");
    await begun.promise;
    const refused = await host.resume("two");
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("--fork-session");
    answer.resolve("At last.");
    expect(await host.answered(1)).toMatchObject([{ is_error: false }]);
    expect(await host.resume("three")).toMatchObject({ code: 0 });
    await host.end();
    expect(conversationIn(place, session).said).toEqual(["one", "At last.", "three", "Answer to three."]);
  });

  test("of two that want it at the same time each is answered or told, and no line is lost or doubled", async () => {
    const place = createPlace();
    const provider = await provide(echo);
    const session = randomUUID();
    const host = openHost(place, provider, session);
    host.say("one");
    await host.answered(1);
    const racing = Array.from({ length: 3 }, (_, at) => host.resume(`racer ${at}`));
    host.say("own");
    const [own] = (await host.answered(2)).slice(1);
    const ends = await Promise.all(racing);
    await host.end();
    const { said, areUnique } = conversationIn(place, session);
    expect(areUnique).toBe(true);
    const outcomes = [
      ...ends.map(({ code }, at) => ({ prompt: `racer ${at}`, isAnswered: code === 0 })),
      { prompt: "own", isAnswered: own?.["is_error"] === false },
    ];
    expect(outcomes.some(({ isAnswered }) => isAnswered)).toBe(true);
    for (const { prompt, isAnswered } of outcomes.filter((each) => each.isAnswered))
      expect([prompt, isAnswered, said.filter((text) => text === prompt).length]).toEqual([prompt, true, 1]);
    expect(said.filter((text) => text === "one")).toHaveLength(1);
    for (const { code, err } of ends) if (code !== 0) expect(err).toMatch(/being written by|taken over/);
    // Whatever the race left, the next one continues.
    expect(await host.resume("after")).toMatchObject({ code: 0, out: "Answer to after.\n" });
  });
});
