import type { HereDoc, Redirection } from "unbash";
import { toOperands } from "./create-unit.ts";
import { escapeDouble, unescapeDocument } from "./expand-braces.ts";
import { expandParameter } from "./expand-parameter.ts";
import { expandSingle } from "./expand-word.ts";
import { markOpaque, type Scene, visitNested, type Walk } from "./walk.ts";
import { quoteWord, type Word } from "./word.ts";

export interface WalkedRedirections {
  /** In shell syntax, each with a blank before it. */
  readonly text: string;
  /** Text that is fed to the command, as far as it is certain. */
  readonly input: readonly string[];
}

/** Notes the files that redirections open. */
export function walkRedirections(
  walk: Walk,
  redirections: readonly Redirection[],
  scene: Scene,
): WalkedRedirections {
  const input: string[] = [];
  const texts = redirections.map((redirection) => {
    const { descriptor } = redirection;
    if (descriptor?.type === "FileDescriptorVariable") markOpaque(walk, "a redirection sets a variable");
    const number = descriptor?.type === "FileDescriptor" ? String(descriptor.value) : "";
    switch (redirection.type) {
      case "HereDoc": {
        const document = walkDocument(walk, redirection, scene);
        if (document.text !== undefined) input.push(document.text);
        return ` ${number}${document.rendered}`;
      }
      case "HereString": {
        onlyInBash(walk, scene);
        if (redirection.target === undefined || redirection.target.text.startsWith("<"))
          markOpaque(walk, "a redirection has no target");
        const word =
          redirection.target === undefined ? undefined : expandSingle(walk, redirection.target, scene);
        if (word?.literal === true) input.push(word.value);
        return ` ${number}<<<${word?.rendered ?? ""}`;
      }
      case "Redirect": {
        if (redirection.target === undefined) {
          markOpaque(walk, "a redirection has no target");
          return "";
        }
        const word = expandSingle(walk, redirection.target, scene, "target");
        noteTarget(walk, redirection.operator, word, scene);
        // `< <(…)` without the blank is a here-document.
        const blank = /^[<>&]/.test(word.rendered) ? " " : "";
        return ` ${number}${redirection.operator}${blank}${word.rendered}`;
      }
      default:
        markOpaque(walk, "a redirection is not understood");
        return "";
    }
  });
  return { text: texts.join(""), input };
}

function onlyInBash(walk: Walk, { dialect }: Scene): void {
  if (dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
}

/** A here-document becomes a string of one line, so that nothing depends on where lines end. */
function walkDocument(
  walk: Walk,
  { body, closing, delimiter, operator }: HereDoc,
  scene: Scene,
): { readonly text?: string; readonly rendered: string } {
  if (closing === undefined) markOpaque(walk, "a here-document has no end");
  const strip = (text: string): string => (operator === "<<-" ? text.replace(/^\t+/gm, "") : text);
  if (delimiter?.quoted === true) {
    const text = strip(body.text);
    if (scene.dialect === "sh") markOpaque(walk, "sh may read this syntax of bash differently");
    return { text, rendered: documentString(quoteWord(text.replace(/\n$/, "")), text === "") };
  }
  if (scene.dialect === "sh" || (operator === "<<-" && body.parts !== undefined))
    markOpaque(walk, "a here-document is not understood");
  if (body.parts === undefined) {
    const text = unescapeDocument(strip(body.text));
    return { rendered: documentString(quoteWord(text.replace(/\n$/, "")), text === "") };
  }
  let rendered = "";
  for (const part of body.parts) {
    if (part.type === "Literal") rendered += escapeDouble(unescapeDocument(part.text));
    else if (
      part.type === "SimpleExpansion" ||
      part.type === "ParameterExpansion" ||
      part.type === "ArithmeticExpansion"
    ) {
      const piece = expandParameter(walk, part, scene);
      if (piece.type === "unknown") rendered += piece.rendered;
      else rendered += escapeDouble(piece.type === "home" ? piece.path : piece.text);
    } else if (part.type === "CommandExpansion" && part.script !== undefined) {
      rendered += `$( ${walk.walkScript(walk, part.script, { ...scene, substituted: true }).text}\n)`;
    } else {
      markOpaque(walk, "a here-document is not understood");
      visitNested(walk, part, scene);
    }
  }
  if (!rendered.endsWith("\n")) markOpaque(walk, "a here-document is not understood");
  return { rendered: `<<<"${rendered.replace(/\n$/, "")}"` };
}

function documentString(quoted: string, empty: boolean): string {
  return empty ? "</dev/null" : `<<<${quoted}`;
}

function noteTarget(walk: Walk, operator: string, word: Word, { state: { directories } }: Scene): void {
  const copies = operator === ">&" || operator === "<&";
  if (copies && word.literal && /^(?:\d+-?|-)$/.test(word.text)) return;
  if (copies && !(word.literal && operator === ">&"))
    markOpaque(walk, "a redirection is only known when it runs");
  if (/^\/dev\/(?:tcp|udp)\//.test(word.text) || (!word.literal && /\/dev\/(?:tcp|udp)/.test(word.text)))
    markOpaque(walk, "a redirection opens a network connection");
  const target = { ...word, pathKnown: word.pathKnown && !word.glob && !word.loose };
  if (operator.startsWith("<"))
    walk.redirects.push(...toOperands([{ word: target, use: "read" }], directories));
  if (operator !== "<" && operator !== "<&")
    walk.redirects.push(...toOperands([{ word: target, use: "write" }], directories));
}
