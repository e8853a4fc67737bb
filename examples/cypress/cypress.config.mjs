import { defineConfig } from "cypress";
import { postroomTasks } from "postroom/cypress";

// `postroom dev` takes any key.
const options = { apiKey: "dev", baseUrl: process.env.POSTROOM_URL ?? "http://127.0.0.1:8025" };

export default defineConfig({
  e2e: {
    baseUrl: "http://127.0.0.1:3000",
    supportFile: false,
    setupNodeEvents: (on) => { on("task", postroomTasks(options)); },
  },
});
