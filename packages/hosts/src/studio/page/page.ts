import { type ComponentChild, h, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { AgentScreen } from "./agent-screen.ts";
import { CompareScreen } from "./compare-screen.ts";
import { type Route, readRoute } from "./route.ts";
import { SessionScreen } from "./session-screen.ts";
import { SessionsScreen } from "./sessions-screen.ts";
import { TeamScreen } from "./team-screen.ts";
import { exported } from "./use-events.ts";

/** Shows the screen that the address names. */
function Page(): ComponentChild {
  const [route, setRoute] = useState<Route>(() => readRoute(location.hash));
  useEffect(() => {
    const follow = (): void => {
      setRoute(readRoute(location.hash));
      scrollTo(0, 0);
    };
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);
  return screenOf(route);
}

function screenOf(route: Route): ComponentChild {
  switch (route.type) {
    case "sessions": {
      if (exported === undefined) return h(SessionsScreen, {});
      const { id } = exported.session.session;
      return h(SessionScreen, { key: id, place: { project: "export", id } });
    }
    case "session":
      return h(SessionScreen, { key: route.place.id, place: route.place });
    case "team":
      return h(TeamScreen, { key: route.place.id, place: route.place });
    case "agent":
      return h(AgentScreen, {
        key: `${route.place.id} ${route.agentId}`,
        place: route.place,
        agentId: route.agentId,
      });
    case "compare":
      return h(CompareScreen, {
        key: `${route.left.id} ${route.right.id}`,
        left: route.left,
        right: route.right,
      });
  }
}

const app = document.getElementById("app");
if (app !== null) {
  app.replaceChildren();
  render(h(Page, {}), app);
}
