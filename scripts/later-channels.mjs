// Makes the channels of a bundle load when the configuration names them: the start of a daemon must not grow with each channel. In place of
// a channel, the profile imports a `laterFeature` of packages/sdk/src/later-feature.ts.
import { join, sep } from 'node:path'
import { CATALOGUE } from '../packages/sdk/src/catalogue.ts'

const PROFILES = join(import.meta.dirname, '..', 'profiles')
const NAMESPACE = 'later-channel'

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
    esbuild.onLoad({ filter: /.*/, namespace: NAMESPACE }, ({ path: id }) => ({
      contents: `import { laterFeature } from '@sluice/sdk'\nexport default laterFeature('${id}', () => import('@sluice/${id}'))`,
      resolveDir: PROFILES,
    }))
  },
})
