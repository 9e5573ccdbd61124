/** Where new ids come from; injected, so that tests and replays know them. */
export interface IdSource {
  /** A fresh UUID. */
  uuid(): string;
}
