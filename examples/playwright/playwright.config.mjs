import { defineConfig } from "@playwright/test";

// The client of Postroom reads these; `postroom dev` takes any key.
process.env.POSTROOM_URL ??= "http://127.0.0.1:8025";
process.env.POSTROOM_KEY ??= "dev";
const port = process.env.PORT ?? "3000";

export default defineConfig({
  webServer: { command: "node app.mjs", url: `http://127.0.0.1:${port}`, env: { PORT: port } },
  use: {
    baseURL: `http://127.0.0.1:${port}`,
    launchOptions: { executablePath: process.env.CHROMIUM }, // unset: the browser of `npx playwright install`
  },
});
