/** Finds names that two features of a build share: one of the two would silently take the place of the other. */

import { AppError } from '../values/errors.ts'
import { rowOf, rowOfFeature } from './catalogue.ts'
import { type Feature, type Parts, sectionsOfFeature } from './feature.ts'

/** A name that a feature takes, with its kind, such as `channel 'telegram'`. */
type TakenName = string

const CHANNEL_SECTIONS = 'channels_config.'

const named = (kind: string, names: readonly string[] = []): TakenName[] => names.map((name) => `${kind} '${name}'`)

/** Throws `config_invalid` if two features have one id, or their rows, sections or store backends one name. Builds nothing. */
export function checkFeatures(features: readonly Feature[]): void {
  const ids = new Set<string>()
  for (const { id } of features) {
    if (ids.has(id)) throw new AppError('config_invalid', `the build has the feature '${id}' twice; list it once`)
    ids.add(id)
  }
  refuseSharedSections(features)
  refuseClashes(features.map((feature) => [feature.id, namesOfRow(feature)]))
}

/** Throws `config_invalid` if parts of two features that were built have one name. */
export function checkParts(built: readonly { readonly feature: Feature; readonly parts: Parts }[]): void {
  refuseClashes(built.map(({ feature, parts }) => [feature.id, namesOfParts(feature, parts)]))
}

/** Features of the catalogue share some sections on purpose, and their rows name the keys; any other has its channel section alone. */
function refuseSharedSections(features: readonly Feature[]): void {
  const owners = new Map<string, Feature>()
  for (const feature of features) {
    for (const { path } of sectionsOfFeature(feature).filter((section) => section.path.startsWith(CHANNEL_SECTIONS))) {
      const other = owners.get(path)
      if (other && !(rowOf(feature.id) && rowOf(other.id))) refuse(other.id, feature.id, `section '${path}'`)
      owners.set(path, feature)
    }
  }
}

function refuseClashes(taken: readonly (readonly [id: string, names: readonly TakenName[]])[]): void {
  const owners = new Map<TakenName, string>()
  for (const [id, names] of taken) {
    for (const name of names) {
      const other = owners.get(name)
      if (other !== undefined) refuse(other, id, name)
      owners.set(name, id)
    }
  }
}

function refuse(first: string, second: string, name: TakenName): never {
  const both = first === second ? `the feature '${first}' brings` : `the features '${first}' and '${second}' both bring`
  const cure = first === second ? 'give one of the two another name' : 'leave one of them out of the build, or give it another name'
  throw new AppError('config_invalid', `${both} the ${name}${first === second ? ' twice' : ''}; ${cure}`)
}

function namesOfRow(feature: Feature): TakenName[] {
  const row = rowOfFeature(feature)
  return [
    ...named('store backend', feature.storeBackend ? [feature.storeBackend.name] : []),
    ...(row?.namesItsTools ? [] : named('tool', row?.tools)),
    ...named('route', row?.routes),
    ...named('command', row?.commands),
    ...named('provider kind', row?.kinds),
  ]
}

function namesOfParts(feature: Feature, parts: Parts): TakenName[] {
  const namesOf = (items: readonly { readonly name: string }[] = []): string[] => items.map(({ name }) => name)
  const routes = [
    ...(parts.routes ?? []).map(({ method, path }) => `${method} ${path}`),
    ...(parts.sockets ?? []).map(({ path }) => `GET ${path}`),
  ]
  return [
    ...named('channel', namesOf(parts.channels)),
    ...(rowOfFeature(feature)?.namesItsTools ? [] : named('tool', namesOf(parts.tools))),
    ...named('sandbox backend', namesOf(parts.sandboxes)),
    ...named('observability backend', namesOf(parts.observers)),
    ...named('command', namesOf(parts.commands)),
    ...named('route', routes),
    ...named(
      'provider kind',
      parts.providers?.flatMap(({ kinds }) => kinds),
    ),
  ]
}
