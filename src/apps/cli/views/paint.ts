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

/** FORCE_COLOR decides, then NO_COLOR, then whether a terminal that knows colours is there. */
export function allowsColour(
  isTerminal: boolean,
  environment: Readonly<Record<string, string | undefined>>,
): boolean {
  const { FORCE_COLOR: force, NO_COLOR: none, TERM: terminal } = environment;
  if (force !== undefined && force !== "") return force !== "0" && force !== "false";
  if (none !== undefined && none !== "") return false;
  return isTerminal && terminal !== "dumb";
}

function asIs(text: string): string {
  return text;
}
