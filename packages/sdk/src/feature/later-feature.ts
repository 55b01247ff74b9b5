/** Channels whose code is loaded only when the configuration names them. A bundle has them in place of the channels that a profile lists. */
import * as v from 'valibot'
import type { Section } from '../values/section.ts'
import { CATALOGUE, type CatalogueId, type Row } from './catalogue.ts'
import type { Feature } from './feature.ts'

/** The values that the sections of a feature have when nothing sets one of their keys, by path, as JSON. Absent where a key has no default. */
export type SectionDefaults = Readonly<Record<string, object>>

interface Later {
  isLoaded: boolean
  readonly defaults: SectionDefaults
  load(): Promise<void>
}

const laters = new WeakMap<Feature, Later>()

/**
 * Returns a feature without its code. Until `loadFeatures` has loaded it, its section has a path and no keys, and it cannot be built.
 * A build writes the defaults of its sections next to it, so that `sluice config get` shows them without loading it.
 */
export function laterFeature(id: CatalogueId, load: () => Promise<{ readonly default: Feature }>, defaults: SectionDefaults = {}): Feature {
  const { section: path, moreSections: morePaths } = CATALOGUE[id] as Pick<Row, 'section' | 'moreSections'>
  if (path === undefined) throw new Error(`${id} has no section whose absence would leave it out`)
  const emptyAt = (at: string): Section => ({ path: at, schema: v.object({}) })
  const [empty, more] = [emptyAt(path), morePaths?.map(emptyAt)]
  let loaded: Feature | undefined
  const feature: Feature = {
    id,
    get section() {
      return loaded?.section ?? empty
    },
    checkSections: (values) => loaded?.checkSections?.(values) ?? [],
    build(host, config, ...rest) {
      if (!loaded) throw new Error(`${id} is built before it is loaded`)
      return loaded.build(host, config as never, ...rest)
    },
  }
  // Its presence says that the feature has several sections.
  if (more) Object.defineProperty(feature, 'moreSections', { get: () => loaded?.moreSections ?? more, enumerable: true })
  const later: Later = {
    isLoaded: false,
    defaults,
    async load() {
      loaded = (await load()).default
      later.isLoaded = true
    },
  }
  laters.set(feature, later)
  return feature
}

/** Whether the code of a feature is in the build and not loaded. */
export const isUnloaded = (feature: Feature): boolean => laters.get(feature)?.isLoaded === false

/** Returns the defaults of a section whose feature is not loaded; undefined where a key has no default. */
export const unloadedDefaults = (feature: Feature, path: string): object | undefined =>
  isUnloaded(feature) ? laters.get(feature)?.defaults[path] : undefined

/** Loads the features that are not loaded and that `isWanted` accepts; default: all. Resolves to true if there were any. */
export async function loadFeatures(features: readonly Feature[], isWanted: (feature: Feature) => boolean = () => true): Promise<boolean> {
  const wanted = features.filter((feature) => isUnloaded(feature) && isWanted(feature))
  await Promise.all(wanted.map((feature) => laters.get(feature)?.load()))
  return wanted.length > 0
}
