// Builds the page into hashed files whose addresses are relative, so that it works under any path of a proxy.
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { defineConfig } from 'vite'
import { channelGuides } from '../../../scripts/channel-guides.mjs'

const SOPS = resolve(import.meta.dirname, '../../../examples/sops')

/** The examples of procedures, from which new ones are made. */
const sopTemplates = () =>
  readdirSync(SOPS)
    .sort()
    .map((name) => ({
      name,
      toml: readFileSync(join(SOPS, name, 'SOP.toml'), 'utf8'),
      md: readFileSync(join(SOPS, name, 'SOP.md'), 'utf8'),
    }))

/** The texts of other folders, as modules: the steps of the READMEs of the channels, and the examples of procedures. */
const TEXTS = {
  'virtual:channel-guides': () => `export const GUIDES = ${JSON.stringify(channelGuides())}`,
  'virtual:sop-templates': () => `export const TEMPLATES = ${JSON.stringify(sopTemplates())}`,
}

const texts = {
  name: 'texts',
  resolveId: (id) => (id in TEXTS ? `\0${id}` : undefined),
  load: (id) => TEXTS[id.slice(1)]?.(),
}

export default defineConfig({
  base: './',
  publicDir: false,
  plugins: [texts],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2024',
    // The first versions with light-dark(): what replaces it in older ones ignores the switch of the theme.
    cssTarget: ['chrome123', 'edge123', 'firefox120', 'safari17.5'],
    assetsDir: 'assets',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      // A slow machine would print a hint about the times of plugins into the output of `npm start`.
      checks: { bundlerTimings: false },
      output: {
        chunkFileNames: 'assets/[name]-[hash].js',
        entryFileNames: 'assets/[name]-[hash].js',
        // The manifest names the icon, which has its version in its name.
        assetFileNames: ({ names: [name = ''] }) => (name.endsWith('.png') ? 'assets/[name].[ext]' : 'assets/[name]-[hash].[ext]'),
        // What every place needs is one file with the first place; each other place is a file of its own, and so is what draws charts.
        codeSplitting: {
          includeDependenciesRecursively: false,
          groups: [
            {
              name: 'start',
              test: /node_modules.(?!.*(?:virtual-core|uplot))|src.(?:ui.(?!virtual|plot|markdown|rich-text|message)|data.(?!theme-choice|event-log|settings|log-follower|json-lines)|start|app|chat.outgoing|pages.(?:overview|sign-in))/,
            },
          ],
        },
      },
    },
  },
})
