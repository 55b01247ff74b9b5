// Makes the channels of a bundle load when the configuration names them: the start of a daemon must not grow with each channel. In place of
// a channel, the profile imports a `laterFeature` of packages/sdk/src/feature/later-feature.ts, with the defaults of its sections.
import { join, sep } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as v from 'valibot'
import { CATALOGUE } from '../packages/sdk/src/feature/catalogue.ts'

const PROFILES = join(import.meta.dirname, '..', 'profiles')
const PACKAGES = join(import.meta.dirname, '..', 'packages')
const NAMESPACE = 'later-channel'

/** Returns the values that the sections of a channel have without a configuration. A section with a key that has no default is left out. */
export async function sectionDefaults(id) {
  const { default: feature } = await import(pathToFileURL(join(PACKAGES, id, 'src', 'index.ts')).href)
  const results = [feature.section, ...(feature.moreSections ?? [])].map(({ path, schema }) => [path, v.safeParse(schema, {})])
  return Object.fromEntries(results.flatMap(([path, { success, output }]) => (success ? [[path, output]] : [])))
}

const moduleOf = async (id) =>
  [
    "import { laterFeature } from '@sluice/sdk'",
    `export default laterFeature('${id}', () => import('@sluice/${id}'), ${JSON.stringify(await sectionDefaults(id))})`,
  ].join('\n')

/** `profile` is the file of the profile, unless it is generated. */
export const laterChannels = (profile) => ({
  name: 'sluice-later-channels',
  setup(esbuild) {
    const isProfile = ({ importer, namespace }) => namespace === 'sluice' || importer === profile || importer.startsWith(PROFILES + sep)
    esbuild.onResolve({ filter: /^@sluice\/channel-[\w-]+$/ }, (args) => {
      const id = args.path.slice('@sluice/'.length)
      const isLater = args.kind === 'import-statement' && isProfile(args) && CATALOGUE[id]?.section !== undefined
      return isLater ? { path: id, namespace: NAMESPACE } : undefined
    })
    esbuild.onLoad({ filter: /.*/, namespace: NAMESPACE }, async ({ path: id }) => ({
      contents: await moduleOf(id),
      resolveDir: PROFILES,
    }))
  },
})
