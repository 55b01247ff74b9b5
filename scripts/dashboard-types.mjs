// Writes the types of the API that the page of the dashboard imports, unless they are newer than every source. They are not in git: the
// check of types makes them.
import { existsSync, globSync, statSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const ROOT = resolve(import.meta.dirname, '..')
const FILE = join(ROOT, 'packages/dashboard/page/src/data/api-types.ts')
/** The features whose routes the page may call, in addition to the features of every build. */
const SHOWN = [
  'dashboard',
  'webauthn',
  'web-push',
  'tool-schedule',
  'mcp',
  'tool-skills',
  'hardware-boards',
  'hardware-safety',
  'channel-chatapp',
]

function isFresh() {
  if (!existsSync(FILE)) return false
  const writtenAt = statSync(FILE).mtimeMs
  const sources = globSync(['packages/*/src/**/*.ts', 'packages/*/package.json', 'profiles/always.ts', 'scripts/*.mjs'], { cwd: ROOT })
  return sources.every((file) => statSync(join(ROOT, file)).mtimeMs <= writtenAt)
}

async function types() {
  const { always } = await import('../profiles/always.ts')
  const { apiTypes } = await import('./api-types.mjs')
  const { documentOf } = await import('./openapi.mjs')
  const optional = SHOWN.filter((id) => !always.some((feature) => feature.id === id))
  const more = await Promise.all(optional.map(async (id) => (await import(`@sluice/${id}`)).default))
  return apiTypes(
    await documentOf(
      [...always, ...more],
      '[security.webauthn]\nenabled = true\n[web_push]\nenabled = true\ncontact = "mailto:a@example.com"\n[mcp.serve]\nenabled = true\n',
    ),
  )
}

if (!isFresh()) writeFileSync(FILE, await types())
