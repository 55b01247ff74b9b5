/** Finds environment variables with the prefix of Sluice that no key reads, such as mistyped ones. */

import { nearestName } from '@sluice/kit'
import type { Key, KeyReader } from '../toml/schema-keys.ts'
import type { OwnedSection } from '../types.ts'
import type { Environment } from './env-overlay.ts'

const PREFIX = 'SVC_'
/** Variables that the command line and the scripts of the repository read. */
const OTHERS = ['SVC_DATA_DIR', 'SVC_TOOLCHAIN_DIR', 'SVC_FORCE_TOOLCHAIN']

/** Returns one sentence for each such variable. Variables of features that this build leaves out are unknown. */
export function unknownVariables(env: Environment, sections: readonly OwnedSection[], keyOf: KeyReader): string[] {
  const set = Object.keys(env).filter((name) => name.startsWith(PREFIX) && env[name] !== '')
  if (set.length === 0) return []
  const known = new Set([...OTHERS, ...sections.flatMap(({ section }) => variablesOf(keyOf(section.schema)))])
  return set
    .filter((name) => !known.has(name))
    .map((name) => {
      const near = nearestName(name, known)
      return `the environment variable ${name} is set, but no key of this build reads it${near === undefined ? '' : `; did you mean ${near}?`}`
    })
}

function variablesOf({ metadata, shape }: Key): string[] {
  const below = shape.kind === 'table' ? [...shape.keys.values()].flatMap(variablesOf) : []
  return [...(metadata.env ?? []), ...below]
}
