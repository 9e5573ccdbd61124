import { describe, expect, test } from "vitest";
import type { UserMessage } from "../conversation/message.ts";
import { createChildMail } from "./messenger.ts";

const notice = (text: string): UserMessage => ({ role: "user", content: [{ type: "text", text }] });
const never = new AbortController().signal;

describe("[SDK-3] what children show a parent that does not read", () => {
  test("is kept up to a limit, and how many were dropped comes first", () => {
    const mail = createChildMail(2);
    for (const text of ["a", "b", "c", "d"]) mail.put(notice(text));
    const [said, ...rest] = mail.takeAll();
    expect(JSON.stringify(said)).toContain("2 older notices were dropped");
    expect(rest).toEqual([notice("c"), notice("d")]);
    expect(mail.takeAll()).toEqual([]);
    expect(mail.isEmpty()).toBe(true);
  });

  test("comes one by one too, the dropped ones first", () => {
    const mail = createChildMail(1);
    for (const text of ["a", "b"]) mail.put(notice(text));
    expect(JSON.stringify(mail.takeOne())).toContain("1 older notices");
    expect(mail.takeOne()).toEqual(notice("b"));
    expect(mail.takeOne()).toBeUndefined();
  });

  test("is not kept at all where there is no parent", () => {
    const mail = createChildMail(0);
    mail.put(notice("a"));
    expect(mail.takeAll()).toEqual([]);
  });

  test("wakes those that wait, and so does the signal", async () => {
    const mail = createChildMail();
    const waiting = mail.wait(never, 0);
    mail.put(notice("a"));
    await waiting;
    const stop = new AbortController();
    const stopped = mail.wait(stop.signal, 0);
    stop.abort();
    await stopped;
    expect(mail.takeOne()).toEqual(notice("a"));
  });
});
