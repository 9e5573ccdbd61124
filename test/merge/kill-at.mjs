// Loaded before a program: ends it with SIGKILL at the process that it starts as number KILL_AT, right before or right after the start.
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";

const at = Number(process.env.KILL_AT);
const { spawn } = childProcess;
let count = 0;

childProcess.spawn = (...words) => {
  count += 1;
  if (count === at && at % 2 === 1) process.kill(process.pid, "SIGKILL");
  const child = spawn(...words);
  if (count === at) process.kill(process.pid, "SIGKILL");
  return child;
};
syncBuiltinESMExports();
