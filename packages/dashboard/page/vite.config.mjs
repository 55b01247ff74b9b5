// Builds the page into hashed files whose addresses are relative, so that it works under any path of a proxy.
import { defineConfig } from 'vite'

export default defineConfig({
  base: './',
  publicDir: false,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2024',
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        chunkFileNames: 'assets/[name]-[hash].js',
        entryFileNames: 'assets/[name]-[hash].js',
        // What every place needs is one file, which the first place loads; each place is another one.
        codeSplitting: { groups: [{ name: 'parts', test: /node_modules.(?!.*virtual-core)|src.(?:ui.(?!virtual)|data)./ }] },
      },
    },
  },
})
