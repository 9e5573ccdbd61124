import { styleText } from "node:util";

type Style = (text: string) => string;

/** The few styles this program uses, each the text itself where colours are off. */
export interface Paint {
  readonly bold: Style;
  readonly dim: Style;
  readonly error: Style;
  readonly warning: Style;
  readonly note: Style;
  readonly good: Style;
  readonly name: Style;
}

export function createPaint(isAllowed: boolean): Paint {
  const style = (format: Parameters<typeof styleText>[0]): Style =>
    isAllowed ? (text) => (text === "" ? "" : styleText(format, text, { validateStream: false })) : asIs;
  return {
    bold: style("bold"),
    dim: style("dim"),
    error: style(["bold", "red"]),
    warning: style("yellow"),
    note: style("blue"),
    good: style("green"),
    name: style("cyan"),
  };
}

function asIs(text: string): string {
  return text;
}
