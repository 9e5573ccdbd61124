import { createRoot } from "react-dom/client";
import { Chat } from "./chat.tsx";

createRoot(document.body.appendChild(document.createElement("div"))).render(<Chat />);
