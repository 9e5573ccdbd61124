import type { BenignGroup } from "./run-benign.ts";

export const benignGroups: readonly BenignGroup[] = [];
