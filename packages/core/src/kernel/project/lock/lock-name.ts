/** The name of the file, for hosts. */
export { lockName } from "@retinue/config/lock/lock-file.ts";
