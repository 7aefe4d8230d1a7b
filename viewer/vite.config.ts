import { defineConfig } from "vite";

// One script and one style sheet, without hashes in their names: the page holds both in itself.
export default defineConfig({
  // No plugin: JSX is compiled by Vite itself.
  build: {
    target: "es2022",
    outDir: "../python/silvan/viewer/assets",
    emptyOutDir: true,
    modulePreload: false,
    reportCompressedSize: false,
    lib: {
      entry: "src/main.tsx",
      formats: ["iife"],
      name: "silvan",
      fileName: () => "viewer.js",
      cssFileName: "viewer",
    },
  },
  define: { "process.env.NODE_ENV": JSON.stringify("production") },
});
