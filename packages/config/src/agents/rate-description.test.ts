import { anyCharacter } from "@retinue/testing/any-character.ts";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rateDescription } from "./rate-description.ts";

function letters(description: string): string {
  const { action, trigger, limits } = rateDescription(description);
  return `${action ? "A" : "-"}${trigger ? "T" : "-"}${limits ? "L" : "-"}`;
}

describe("a description is rated by action, trigger and limits [CLI-2]", () => {
  it.each([
    [
      "Reviews SQL migrations for locks and data loss. Use before a migration is merged. Not for query tuning.",
      "ATL",
    ],
    [
      "Use PROACTIVELY after editing anything under payments/. Checks idempotency keys and rounding. Read-only.",
      "ATL",
    ],
    [
      "MUST BE USED when the build fails. Fixes compile errors with the smallest diff and never refactors.",
      "ATL",
    ],
    ["Converts Figma exports to Svelte. Trigger phrases: 'make this screen'. Does not touch the API.", "ATL"],
    [
      "Translates user-facing strings. Invoked by the release skill after strings are frozen; only edits locales/.",
      "ATL",
    ],
    ["Debugs flaky tests. Use this agent when a test passes locally and fails in CI.", "AT-"],
    ['Summarises pull requests when the user asks "what changed here?"', "AT-"],
    ["Use for: OpenAPI, pagination, versioning, rate limits", "-T-"],
    ["Audits dependencies for licences without changing any file.", "A-L"],
    ["Designs REST and GraphQL interfaces for large systems.", "A--"],
    ["Expert in Kubernetes networking and service meshes", "---"],
    ["Frontend specialist (React, Tailwind, accessibility)", "---"],
  ])("%s → %s", (description, expected) => {
    expect(letters(description)).toBe(expected);
    expect(rateDescription(description).score).toBe(expected.replaceAll("-", "").length);
  });

  it("counts examples as triggers, but looks for verbs and limits outside them", () => {
    const description =
      'Terraform specialist.\n<example>\nuser: "Plan this, but never apply"\nassistant: "I will review it only"\n</example>';
    expect(letters(description)).toBe("-T-");
    expect(
      letters("Terraform specialist.\n- user: 'apply only this'\n  assistant: 'Never without review'"),
    ).toBe("-T-");
  });

  it.each([
    ["Helps with code. Use when needed.", "---"],
    [`Builds charts. Use ${"the agent ".repeat(300)}`, "A--"],
    ["Builds charts. Use it if appropriate.", "A--"],
    ["Builds charts whenever necessary", "A--"],
    ["Checks if the types are right", "A--"],
    ["Writes tests that are not only fast but also stable", "A--"],
    ["Uses advanced methods to build dashboards", "A--"],
    ["Runs load tests for HTTP services", "A--"],
    ["Code reviewer", "---"],
  ])("is not taken in by words without substance: %s", (description, expected) => {
    expect(letters(description)).toBe(expected);
  });
});

describe("vague descriptions get advice, others none [CLI-2]", () => {
  it.each([
    "A helpful assistant",
    "Helps with code",
    "helps you with your project tasks",
    "Code Reviewer",
    "reviews",
    "",
    "An AI agent for developers",
    "Senior Rust engineer with twenty years of experience",
    "Reviews pull requests",
    "Generates documentation for APIs",
  ])("vague: %s", (description) => {
    const rating = rateDescription(description);
    expect(rating.vague).toBe(true);
    expect(rating.advice.at(-1)).toMatch(/^For example: .+ Use when <.+ Not for </);
  });

  it.each([
    "Reviews pull requests for race conditions. Use after changes to src/queue.",
    "Use when diagnosing memory leaks in Node services",
    "Generates API documentation. Read-only on code.",
    "Use this agent when you need to write tests.\n\n<example>\nuser: 'test this'\n</example>",
  ])("not vague: %s", (description) => {
    expect(rateDescription(description)).toMatchObject({ vague: false, judged: true, advice: [] });
  });

  it.each([
    ["reviews", "7 characters (examples aside)"],
    ["A helpful assistant for all", "would fit any agent"],
    ["Senior Kubernetes network engineer", "It is only a title"],
  ])("%s: the first advice says what is wrong", (description, words) => {
    expect(rateDescription(description).advice[0]).toContain(words);
  });

  it("asks only for what is missing and keeps a usable first sentence in the skeleton", () => {
    expect(rateDescription("Designs event schemas for Kafka topics.").advice).toEqual([
      expect.stringContaining("Say when to use it"),
      expect.stringContaining("Say what it is not for"),
      "For example: Designs event schemas for Kafka topics. Use when <situation>, or when the user asks to <words they would use>. Not for <neighbouring work>: use <other agent>.",
    ]);
  });
});

describe("long descriptions get advice to cut [CLI-2]", () => {
  const good = "Reviews queries. Use when a query is slow. Not for schema design.";
  const filler = " It looks at indexes and plans.";

  it.each([
    ["1,024 characters of prose", good.padEnd(1024, filler), 0],
    ["1,025 characters of prose", good.padEnd(1025, filler), 1],
    ["3,000 characters, most of them examples", `${good}<example>${"x".repeat(2900)}</example>`, 0],
    ["more than 4,000 characters with examples", `${good}<example>${"x".repeat(4000)}</example>`, 1],
    ["4,001 characters in Japanese", "レ".repeat(4001), 1],
  ])("%s", (_title, description, count) => {
    const { advice, vague } = rateDescription(description);
    expect(vague).toBe(false);
    expect(advice).toHaveLength(count);
    if (count > 0) expect(advice[0]).toContain("too many");
  });
});

describe("a language the patterns do not recognize is not punished [CLI-2]", () => {
  it.each([
    "コードの品質とセキュリティを確認する。変更後に使用してください。",
    "審查程式碼的品質與安全性",
    "코드 리뷰어",
    "Проверяет миграции базы данных",
    "TypeScriptのコードをレビューする専門家。PRの前に使う。",
    "Prüft Migrationen auf Sperren und Datenverlust, wenn eine Migration geändert wird.",
    "Analyse les requêtes lentes et propose des index pour la base",
    "Revisa el código y las pruebas después de cada cambio",
  ])("%s", (description) => {
    expect(rateDescription(description)).toMatchObject({ judged: false, vague: false, advice: [] });
  });

  it.each([
    "Fixes naïve Bayes classifiers in the café module when the tests fail",
    "Expert in Actix, Tokio, Diesel",
    "Explains the von Neumann and der Waals models used in the course when asked",
  ])("English with a few foreign words is judged: %s", (description) => {
    expect(rateDescription(description).judged).toBe(true);
  });
});

it("any text gets a rating whose score is the number of its parts [CLI-2]", () => {
  const text = fc.oneof(
    fc.string({ unit: anyCharacter, maxLength: 400 }),
    fc
      .array(
        fc.constantFrom(
          "use",
          "when",
          "not for",
          "<example>",
          "</example>",
          "user:",
          "\n",
          "reviews",
          "only",
        ),
        {
          maxLength: 200,
        },
      )
      .map((words) => words.join(" ")),
  );
  fc.assert(
    fc.property(text, (description) => {
      const rating = rateDescription(description);
      const parts = [rating.action, rating.trigger, rating.limits].filter(Boolean).length;
      expect(rating.score).toBe(parts);
      if (rating.vague) expect(rating.advice.length).toBeGreaterThan(0);
    }),
  );
});
