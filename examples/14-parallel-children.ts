// Three children at the same time, each of which hands in a value of a checked type.
import { createRuntime } from "retinue";
import { createScriptedModel } from "retinue/testing";
import { z } from "zod";

const Rating = z.object({ city: z.string(), score: z.number().int().min(1).max(10) });
const scores = { Lisbon: 9, Oslo: 7, Turin: 8 };

const model = createScriptedModel(
  Object.entries(scores).map(([city, score]) => ({
    match: `Rate ${city}`,
    calls: [{ name: "StructuredOutput", input: { city, score } }],
  })),
);

await using runtime = createRuntime({ model });
const ratings = await Promise.all(
  Object.keys(scores).map(
    (city) => runtime.spawn("general-purpose", `Rate ${city}.`, { output: Rating }).output,
  ),
);
const [best] = ratings.toSorted((a, b) => b.score - a.score);
console.log(ratings.map(({ city, score }) => `${city} ${score}`).join(", "), "best:", best?.city);
