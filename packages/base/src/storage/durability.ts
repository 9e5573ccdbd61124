/** `sync`: a record is on the disk itself before what it announces happens. `os`: the operating system decides when. */
export const durabilities = ["sync", "os"] as const;
export type Durability = (typeof durabilities)[number];
