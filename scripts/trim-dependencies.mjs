// Leaves out of a bundle the parts of packages that the build never runs.
import { readFile } from 'node:fs/promises'
import { sep } from 'node:path'

/** Modules that are replaced, by the name that `of` imports them with. */
const REPLACED = [
  // The HTTP adapter only compares classes with it, and the real module also loads TLS at start.
  { name: 'node:http2', source: 'export class Http2ServerRequest {}\nexport const constants = {}' },
  // The translations of zod, which the AI SDK loads with it: its errors are read by the agent, in English.
  { name: '../locales/index.js', of: 'zod', source: 'export {}' },
  // The validators that the MCP client and server load by default: both are always given one.
  {
    name: '@modelcontextprotocol/client/_shims',
    source: 'export const CORS_IS_POSSIBLE = false, DefaultJsonSchemaValidator = undefined',
  },
  {
    name: '@modelcontextprotocol/server/_shims',
    source: "export const DefaultJsonSchemaValidator = undefined\nexport { default as process } from 'node:process'",
  },
  // The client of Discord's gateway imports four names of a module that has every type of the API.
  {
    name: 'discord-api-types/v10',
    of: '@discordjs',
    source: "export * from 'discord-api-types/gateway/v10'\nexport { APIVersion, Routes } from 'discord-api-types/rest/v10'",
  },
]

/** Changes of the source of one file. A change that matches nothing ends the build, because the package has changed. */
const CHANGED = [
  // The copy of Node's `util.inspect` for browsers.
  {
    file: /[\\/]async_event_emitter[\\/]dist[\\/]index\.mjs$/,
    from: /\/\/ node_modules\/node-inspect-extracted\/dist\/inspect\.js\n[\s\S]*?\n\/\/ node_modules\/node-inspect-extracted\/index\.mjs\n[^\n]*\n/,
    to: "import * as nodeUtil from 'node:util'\nconst import_inspect = { default: nodeUtil }\n",
  },
  // An import of all of zod as one object contains every schema; an import of its namespace contains those in use.
  {
    file: /[\\/]@ai-sdk[\\/][\w-]+[\\/]dist[\\/](?:internal[\\/])?index\.js$/,
    from: /import \{ z \} from "zod\/v4";/,
    to: 'import * as z from "zod/v4";',
    optional: true,
  },
]

export const trimDependencies = {
  name: 'trim-dependencies',
  setup(esbuild) {
    const isOf = (importer, name) => name === undefined || importer.includes(`${sep}${name}${sep}`)
    esbuild.onResolve({ filter: /.*/ }, ({ path, importer, resolveDir, namespace }) => {
      const at = REPLACED.findIndex(({ name, of }) => name === path && isOf(importer, of))
      return at < 0 || namespace === 'replaced' ? undefined : { path: String(at), namespace: 'replaced', pluginData: resolveDir }
    })
    esbuild.onLoad({ filter: /.*/, namespace: 'replaced' }, ({ path, pluginData }) => ({
      contents: REPLACED[path].source,
      resolveDir: pluginData,
    }))
    // A copy of Node's streams for browsers, which the MQTT client takes.
    esbuild.onResolve({ filter: /^readable-stream$/ }, () => ({ path: 'node:stream', external: true }))
    for (const { file, from, to, optional } of CHANGED)
      esbuild.onLoad({ filter: file }, async ({ path }) => {
        const source = await readFile(path, 'utf8')
        if (!optional && !from.test(source)) throw new Error(`${path} has changed; adapt scripts/trim-dependencies.mjs`)
        return { contents: source.replace(from, () => to), loader: 'js' }
      })
  },
}
