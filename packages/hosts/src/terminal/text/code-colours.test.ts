import { describe, expect, test } from "vitest";
import { type Row, rowText } from "../screen/row.ts";
import { colours } from "../screen/style.ts";
import { CodeColours } from "./code-colours.ts";
import { MarkdownStream } from "./markdown-stream.ts";
import { plainContext } from "./row-context.ts";

async function loaded(): Promise<CodeColours> {
  const code = new CodeColours({ isOn: true });
  await code.load();
  return code;
}

/** The texts that have a style. */
function styled(row: Row | undefined, style: number): readonly string[] {
  return (row ?? []).filter((one) => one.style === style).map(({ text }) => text);
}

describe("colours of code", () => {
  test("keywords, texts, numbers and comments of a language that is known [CLI-4]", async () => {
    const code = await loaded();
    const [first, second] = code.lines('const a = "text"; // why\nreturn 12;', "ts") ?? [];
    expect(styled(first, colours.keyword)).toEqual(["const"]);
    expect(styled(first, colours.string)).toEqual(['"text"']);
    expect(styled(first, colours.comment)).toEqual(["// why"]);
    expect(styled(second, colours.number)).toEqual(["12"]);
    expect(code.lines("a", "no-such-language")).toBeUndefined();
    expect(code.ofFile("a = 1", "notes.constructor")).toBeUndefined();
  });

  test("a line that arrives alone has the colours it has in the whole text [CLI-4]", async () => {
    const code = await loaded();
    for (const [language, text] of [
      [
        "ts",
        "/* one\n * const two\n */\nconst a = `x\n$" + "{1 + 2}\nconst y`;\nfunction f(\n  a: string,\n) {}",
      ],
      ["python", 'def f(a):\n    """first\n    def not code\n    """\n    return a  # end'],
      ["html", "<div\n  class='a'>\n<!-- b\n c -->\n</div>"],
      ["bash", "for a in 'x y'\ndo echo \"$a\" # note\ndone"],
      ["json", '{\n  "a": [1, true],\n  "b": null\n}'],
    ] as const) {
      const stream = code.stream(language);
      const alone = text.split("\n").flatMap((line) => stream?.take([line]));
      const whole = code.lines(text, language);
      const lines = text.split("\n");
      const inPairs = code.stream(language);
      const pairs = lines.flatMap((_, at) =>
        at % 2 === 0 ? (inPairs?.take(lines.slice(at, at + 2)) ?? []) : [],
      );
      expect(pairs).toEqual(whole);
      expect(alone.map((row) => rowText(row ?? []))).toEqual(text.split("\n"));
      expect(alone).toEqual(whole);
    }
  });

  test("the unfinished line is read again only when it has changed [CLI-4]", async () => {
    const stream = (await loaded()).stream("ts");
    const first = stream?.look("const a");
    expect(stream?.look("const a")).toBe(first);
    expect(styled(stream?.look("const a = 12"), colours.number)).toEqual(["12"]);
    // What is open before it counts: the same words are a comment there.
    stream?.take(["/*"]);
    expect(styled(stream?.look("const a"), colours.comment)).toEqual(["const a"]);
  });

  test("a comment that never ends costs no more with each line", async () => {
    const stream = (await loaded()).stream("ts");
    stream?.take(["/* begins"]);
    let row: Row | undefined;
    for (let at = 0; at < 400; at += 1) row = stream?.take([`const line${at} = 1;`])[0];
    expect(row?.map(({ style }) => style)).toEqual([colours.comment]);
  });

  test("are needed only for code whose language is named, also where the fence arrives in pieces [CLI-4]", () => {
    const code = new CodeColours({ isOn: true });
    const say = (text: string): boolean => code.isNeededFor({ type: "text", text });
    expect(say("some text\n```\nplain\n```\n`ts`\n")).toBe(false);
    expect(say("```")).toBe(false);
    expect(say("t")).toBe(true);
    expect(new CodeColours({ isOn: false }).isNeededFor({ type: "text", text: "```ts\n" })).toBe(false);
  });

  test("a fenced block is coloured while it streams, and the text around it is not [CLI-4]", async () => {
    const code = await loaded();
    const stream = new MarkdownStream(() => ({ ...plainContext(60), code }));
    const rows = stream.push("const is a word\n```ts\nconst a = 1;\n");
    expect(styled(rows[0], colours.keyword)).toEqual([]);
    expect(styled(rows[1], colours.keyword)).toEqual(["const"]);
    stream.push("let b");
    expect(styled(stream.live()[0], colours.keyword)).toEqual(["let"]);
  });
});
