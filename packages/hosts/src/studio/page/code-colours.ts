import { common, createLowlight } from "lowlight";
import { type ComponentChild, h } from "preact";

const lowlight = createLowlight(common);
const maxCharacters = 60_000;

/** What `lowlight` makes of a code: texts, and elements with classes. */
interface CodeNode {
  readonly type: string;
  readonly value?: string;
  readonly properties?: { readonly className?: unknown };
  readonly children?: readonly CodeNode[];
}

/** Code with colours; as it is where the language is not known, or the code too long to be worth it. */
export function colouredCode(code: string, language: string | undefined): ComponentChild {
  if (language === undefined || code.length > maxCharacters || !lowlight.registered(language)) return code;
  const tree: CodeNode = lowlight.highlight(language, code);
  return (tree.children ?? []).map(toElement);
}

function toElement(node: CodeNode): ComponentChild {
  if (node.type === "text") return node.value ?? "";
  const names = node.properties?.className;
  const name = Array.isArray(names) ? names.join(" ") : "";
  return h("span", { class: name }, (node.children ?? []).map(toElement));
}
