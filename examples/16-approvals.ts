// Two people with a session each; each is asked about the calls of their own agent.
import { createApprovalQueue, createRuntime, defineTool } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const pay = defineTool({
  name: "pay",
  description: "Pays an amount.",
  effect: "network",
  input: z.object({ amount: z.number() }),
  call: ({ amount }) => `Paid ${amount}.`,
});
const model = createScriptedModel([
  { match: "Pay 5", calls: [{ name: "pay", input: { amount: 5 } }], times: 2 },
  { match: "Paid 5.", text: "It is paid." },
  { text: "I was not allowed to pay." },
]);

const approver = createApprovalQueue();
await using runtime = createRuntime({ model, tools: [pay], approver });
const ada = await runtime.open();
const bob = await runtime.open();

// On a server this is the request in which a person answers; `approver.pending(sessionId)` is what a page shows.
approver.onChange((change) => {
  if (change.type !== "asked") return;
  const { id, sessionId, tool } = change.approval;
  const isAda = sessionId === ada.id;
  console.log(isAda ? "ada" : "bob", "is asked about", tool);
  approver.answer(id, isAda ? { type: "allow", for: "call" } : { type: "deny", message: "Too much." });
});

console.log("ada:", await ada.run("Pay 5.").text);
console.log("bob:", await bob.run("Pay 5.").text);
