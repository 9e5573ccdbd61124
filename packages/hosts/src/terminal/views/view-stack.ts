import type { KeyPress } from "../input/key-press.ts";
import { FullScreen } from "../screen/full-screen.ts";
import { createPalette, type StyleOptions } from "../screen/style.ts";
import type { DeviceListener, TerminalDevice } from "../screen/terminal-device.ts";
import type { View } from "./view.ts";

/** Views on the alternate screen without a conversation behind them, each above the one that opened it. */
export class ViewStack implements DeviceListener {
  readonly #device: TerminalDevice;
  readonly #screen: FullScreen;
  readonly #views: View[] = [];
  readonly #left = Promise.withResolvers<void>();
  #isPaused = false;

  constructor(device: TerminalDevice, style: StyleOptions) {
    this.#device = device;
    this.#screen = new FullScreen({
      write: (bytes) => device.write(bytes),
      columns: () => device.columns,
      rows: () => device.rows,
      palette: createPalette(style),
    });
  }

  /** Shows a view and what it opens; resolves when all of them are closed. */
  async run(first: View): Promise<void> {
    this.#device.begin(this, () => {
      this.#device.enterAlternate();
      this.open(first);
    });
    try {
      await this.#left.promise;
    } finally {
      this.#device.close();
    }
  }

  readonly open = (view: View): void => {
    this.#views.push(view);
    this.#screen.forget();
    this.changed();
  };

  /** Closes all of them. */
  readonly leave = (): void => {
    for (const view of this.#views.splice(0)) view.dispose?.();
    this.#left.resolve();
  };

  readonly changed = (): void => {
    const view = this.#views.at(-1);
    if (view !== undefined && !this.#isPaused)
      this.#screen.draw(view.frame(this.#device.columns, this.#device.rows));
  };

  /** Gives the terminal to another program for a while, such as an editor. */
  async pause<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#isPaused = true;
    this.#device.close();
    try {
      return await work();
    } finally {
      this.#isPaused = false;
      this.#device.open(this);
      this.#device.enterAlternate();
      this.#screen.forget();
      this.changed();
    }
  }

  key(key: KeyPress): void {
    const view = this.#views.at(-1);
    if (view?.press(key) !== "close") return;
    view.dispose?.();
    const at = this.#views.indexOf(view);
    if (at !== -1) this.#views.splice(at, 1);
    this.#screen.forget();
    if (this.#views.length === 0) this.leave();
  }

  paste(text: string): void {
    this.#views.at(-1)?.paste?.(text);
  }

  settled(): void {
    this.changed();
  }

  resized(): void {
    this.changed();
  }

  gone(): void {
    this.leave();
  }
}
