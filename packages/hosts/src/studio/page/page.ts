import { type ComponentChild, h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApprovalsScreen } from "./approvals-screen.ts";
import { CompareScreen } from "./compare-screen.ts";
import { EvalsScreen } from "./evals-screen.ts";
import { LiveScreen, SessionsScreen } from "./live-screen.ts";
import { MergeScreen } from "./merge-screen.ts";
import { type Route, readRoute } from "./route.ts";
import { RunScreen } from "./run-screen.ts";
import { SessionScreen } from "./session-screen.ts";
import { restoreTheme, Search } from "./shell.ts";
import { TeamScreen } from "./team-screen.ts";
import { TeamsScreen } from "./teams-screen.ts";
import { exported } from "./use-events.ts";

/** Shows the screen that the address names. */
function Page(): ComponentChild {
  const [route, setRoute] = useState<Route>(() => readRoute(location.hash));
  const [search, setSearch] = useState("");
  useEffect(() => {
    const follow = (): void => {
      setRoute(readRoute(location.hash));
      scrollTo(0, 0);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return h(Search.Provider, { value: { text: search, set: setSearch } }, screenOf(route));
}

function screenOf(route: Route): ComponentChild {
  switch (route.type) {
    case "live":
    case "sessions":
    case "approvals":
    case "teams":
    case "evals": {
      if (exported === undefined) return h(screens[route.type], {});
      const { id } = exported.session.session;
      return h(SessionScreen, { key: id, place: { project: "export", id }, agentId: "main" });
    }
    case "session":
      return h(SessionScreen, { key: route.place.id, place: route.place, agentId: "main" });
    case "agent":
      return h(SessionScreen, { key: route.place.id, place: route.place, agentId: route.agentId });
    case "team":
      return h(TeamScreen, { key: route.place.id, place: route.place });
    case "merge":
      return h(MergeScreen, { key: route.place.id, place: route.place });
    case "run":
      return h(RunScreen, { key: route.runId, place: route.place, runId: route.runId });
    case "compare":
      return h(CompareScreen, {
        key: `${route.left.id} ${route.right.id}`,
        left: route.left,
        right: route.right,
      });
  }
}

const screens = {
  live: LiveScreen,
  sessions: SessionsScreen,
  approvals: ApprovalsScreen,
  teams: TeamsScreen,
  evals: EvalsScreen,
} as const;

restoreTheme();
const app = document.getElementById("app");
if (app !== null) {
  app.replaceChildren();
  render(h(Page, {}), app);
}
